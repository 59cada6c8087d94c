#include "kernels/ops/avey/ranker.h"
#include "kernels/ops/embedding/embedding.h"
#include "models/architectures/registry.h"
#include "tests/golden/case_model.h"

namespace saccade::test {
namespace {

/// The model of a golden case, its parameters taken from the case.
std::unique_ptr<Model> make_case_model(const GoldenCase& c, DType dtype, Arena& arena) {
  const auto& a = c.attributes;
  const Shape& embedding = c.inputs.at("embedding").shape;
  ModelShape shape;
  shape.vocabulary = embedding[0], shape.width = embedding[1], shape.layers = a.at("layers"), shape.position = "none";
  nlohmann::json values{{"split", a.at("split")},
                        {"top_k", a.at("top_k")},
                        {"expansion", a.at("expansion")},
                        {"tail", a.at("tail_fraction")},
                        {"dynamic", a.at("dynamic") != 0},
                        {"weighting", a.at("weighting") != 0},
                        {"weight_reference", a.at("weight_reference")},
                        {"ranker_query", a.at("ranker_query")}};
  ParameterMaker make(arena, dtype, 1, true);
  std::unique_ptr<Model> model = architecture("avey").make_model(shape, values, make);
  set_parameters(*model, c);
  return model;
}

GoldenResult run_avey(const GoldenCase& c, DType dtype, Arena& arena) {
  const std::unique_ptr<Model> model = make_case_model(c, accumulation_dtype(dtype), arena);
  GoldenResult result = run_model(*model, c, dtype, arena);
  Tape tape(arena, false);
  if (dtype == DType::bf16) tape.set_activation_dtype(dtype);
  const auto& a = c.attributes;
  const avey::Ranked ranked =
      avey::rank(tape, embedding(tape, model->parameter("embedding").value, to_tensor(c.inputs.at("tokens"), DType::i32, arena)),
                 {a.at("split"), a.at("top_k"), a.at("weighting") != 0, avey::parse_weight_reference(a.at("weight_reference")),
                  avey::parse_ranker_query(a.at("ranker_query"))});
  result.outputs["chosen"] = to_array(ranked.chosen);
  result.outputs["weights"] = to_array(ranked.weights);
  result.outputs["maxsim"] = to_array(ranked.maxsim);
  return result;
}

const RegisterGolden avey_runner{"avey", run_avey};

}  // namespace
}  // namespace saccade::test
