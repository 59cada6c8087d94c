#include "models/architectures/registry.h"
#include "tests/golden/case_model.h"

namespace saccade::test {
namespace {

/// The case's model as the registry makes it from settings.
nlohmann::json settings_of_case(const GoldenCase& c) {
  nlohmann::json settings = {{"block", "llama"}, {"mixer", "attention"}};
  settings["width"] = c.inputs.at("embedding").shape[1];
  settings["mlp_width"] = c.inputs.at("layer0.gate").shape[0];
  for (const char* key : {"layers", "heads", "position", "rotary_base", "qk_norm", "temperature"}) settings[key] = c.attributes.at(key);
  if (const int64_t window = c.attributes.at("window"); window > 0) settings["window"] = window;
  return settings;
}

GoldenResult run_transformer(const GoldenCase& c, DType dtype, Arena& arena) {
  const int64_t length = c.inputs.at("tokens").shape[1], vocabulary = c.inputs.at("embedding").shape[0];
  const auto model =
      make_model(resolve_architecture(settings_of_case(c), length), vocabulary, length, arena, accumulation_dtype(dtype), 1, true);
  set_parameters(*model, c);
  return run_model(*model, c, dtype, arena);
}

const RegisterGolden runner("transformer_pp", run_transformer);

}  // namespace
}  // namespace saccade::test
