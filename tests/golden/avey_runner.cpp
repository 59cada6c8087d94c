#include "kernels/avey/ranker.h"
#include "kernels/embedding.h"
#include "models/architectures/registry.h"
#include "tests/support/golden_file.h"

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
  std::unique_ptr<Model> model = architecture("avey").make_model(shape, values, make, {});
  for (const Parameter& p : model->parameters()) {
    const Tensor from = to_tensor(c.inputs.at(p.name), dtype, arena);
    if (from.shape() != p.value.shape())
      throw std::runtime_error(p.name + " is " + to_string(p.value.shape()) + ", the file has " + to_string(from.shape()));
    std::copy_n(static_cast<const char*>(from.raw()), from.bytes(), static_cast<char*>(p.value.raw()));
  }
  return model;
}

GoldenResult run_avey(const GoldenCase& c, DType dtype, Arena& arena) {
  const std::unique_ptr<Model> model = make_case_model(c, dtype, arena);
  const Tensor tokens = to_tensor(c.inputs.at("tokens"), dtype, arena), targets = to_tensor(c.inputs.at("targets"), dtype, arena);
  GoldenResult result;
  {
    Tape tape(arena, true);
    model->bind_gradients(tape);
    const Tensor loss = model->loss(tape, tokens, targets);
    result.outputs["loss"] = to_array(loss);
    tape.backward(loss, c.grad_outputs.at("loss").values.at(0));
  }
  for (const Parameter& p : model->parameters()) result.grads[p.name] = to_array(p.grad);

  Tape tape(arena, false);
  result.outputs["logits"] = to_array(model->logits(tape, tokens));
  const auto& a = c.attributes;
  const avey::Ranked ranked =
      avey::rank(tape, embedding(tape, model->parameter("embedding").value, tokens),
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
