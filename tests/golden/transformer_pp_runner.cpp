#include "models/architectures/registry.h"
#include "tests/support/golden_file.h"

namespace saccade::test {
namespace {

/// The case's model as the registry makes it from settings.
nlohmann::json settings_of_case(const GoldenCase& c) {
  nlohmann::json settings = {{"host", "llama"}, {"mixer", "attention"}};
  settings["width"] = c.inputs.at("embedding").shape[1];
  settings["mlp_width"] = c.inputs.at("layer0.gate").shape[0];
  for (const char* key : {"layers", "heads", "position", "rotary_base", "qk_norm", "temperature"}) settings[key] = c.attributes.at(key);
  if (const int64_t window = c.attributes.at("window"); window > 0) settings["window"] = window;
  return settings;
}

void set_parameter(const Parameter& parameter, const Array& values) {
  dispatch(parameter.value.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.values.size(); ++i) parameter.value.data<T>()[i] = static_cast<T>(values.values[i]);
  });
}

GoldenResult run_transformer(const GoldenCase& c, DType dtype, Arena& arena) {
  const int64_t length = c.inputs.at("tokens").shape[1], vocabulary = c.inputs.at("embedding").shape[0];
  const auto model = make_model(resolve_architecture(settings_of_case(c), length), vocabulary, length, arena, dtype, 1, true);
  for (const Parameter& p : model->parameters()) set_parameter(p, c.inputs.at(p.name));
  const Tensor tokens = to_tensor(c.inputs.at("tokens"), DType::i32, arena), targets = to_tensor(c.inputs.at("targets"), DType::i32, arena);

  GoldenResult result;
  Tape tape(arena, true), plain(arena, false);
  model->bind_gradients(tape);
  const Tensor loss = model->loss(tape, tokens, targets);
  result.outputs["loss"] = to_array(loss);
  result.outputs["logits"] = to_array(model->logits(plain, tokens));
  tape.backward(loss, c.grad_outputs.at("loss").values[0]);
  for (const Parameter& p : model->parameters()) result.grads[p.name] = to_array(p.grad);
  return result;
}

const RegisterGolden runner("transformer_pp", run_transformer);

}  // namespace
}  // namespace saccade::test
