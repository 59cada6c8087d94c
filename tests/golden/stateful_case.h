#pragma once
#include "models/architectures/registry.h"
#include "tests/support/golden_file.h"

namespace saccade::test {

/// Cases of the stateful architectures: parameters stand in the group "params" under the golden file's names, a case is found
/// by "file/case" (find_golden_runner), `layers.h5` holds whole mixers and `models.h5` whole models.
using Tensors = std::map<std::string, Tensor>;

/// The project's name of a parameter of the golden files: "mix.Wq" → "query".
using ParameterNames = std::map<std::string, std::string>;

/// A model's names: the mixer's as "mix.…", and those of its block.
ParameterNames model_names(const ParameterNames& mixer, ParameterNames block);
/// Names of the block "llama".
ParameterNames llama_names();

/// A mixer or another part of a model. `make` takes its parameters from the maker and returns what to run; parameters are then
/// filled from the case: golden file's name n is the parameter `prefix` + names.at(n). What is no parameter is an input.
using PartForward = std::function<Tensors(Tape&, const Tensors& inputs)>;
GoldenResult run_golden_part(const GoldenCase& c, DType dtype, Arena& arena, const ParameterNames& names,
                             const std::function<PartForward(ParameterMaker&)>& make, const std::string& prefix = "layer0.");

/// A mixer of the registry as layer 0 of a model of that width: x → y. `values` are the mixer's settings and "heads".
GoldenResult run_golden_mixer(const GoldenCase& c, DType dtype, Arena& arena, const std::string& id, const nlohmann::json& values,
                              const ParameterNames& names);

/// A whole model, as the registry makes it from `architecture` (width and layers are taken from the case): logits, loss and
/// every parameter's gradient. "layer1.mix.Wq" is looked up as "mix.Wq" and becomes "layer1.query".
GoldenResult run_golden_model(const GoldenCase& c, DType dtype, Arena& arena, nlohmann::json architecture, const ParameterNames& names);

}  // namespace saccade::test
