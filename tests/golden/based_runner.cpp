#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/taylor_attention/taylor_attention.h"
#include "tests/golden/stateful_case.h"
#include "tests/models/mixed_precision.h"

namespace saccade::test {
namespace {

const RegisterGolden taylor("based_linear_attention", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    return Tensors{{"y", taylor_attention(tape, x.at("q"), x.at("k"), x.at("v"))}};
  });
});

const ParameterNames names{{"in_w", "in_proj"}, {"in_b", "in_bias"}, {"conv_w", "conv"}, {"out_w", "output"}, {"out_b", "output_bias"},
                           {"Wq", "query"},     {"Wk", "key"},       {"Wv", "value"},    {"Wo", "output"},    {"Wqkv", "query_key_value"}};

GoldenRunner layer(const std::string& kind) {
  return [kind](const GoldenCase& c, DType dtype, Arena& arena) {
    nlohmann::json values = {{"layout", {kind}}, {"heads", c.attributes.value("H", int64_t{1})}};
    if (c.attributes.contains("d")) values["feature_width"] = c.attributes.at("d");
    if (c.attributes.contains("left")) values["window"] = c.attributes.at("left").get<int64_t>() + 1;
    return run_golden_mixer(c, dtype, arena, "based", values, names);
  };
}

const RegisterGolden conv_layer("layers/based_conv", layer("conv"));
const RegisterGolden linear_layer("layers/based_linear", layer("linear"));
const RegisterGolden window_layer("layers/based_window", layer("window"));

const RegisterGolden mlp("layers/swiglu_mlp", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    std::vector<Parameter> weights;
    for (const char* name : {"W_gate", "W_up", "W_down"}) weights.push_back({name, x.at(name), {}});
    compute_in(tape, arena, weights, dtype);
    const std::vector<Tensor> h = linears(tape, x.at("x"), {x.at("W_gate"), x.at("W_up")});
    return Tensors{{"y", linear(tape, gated(tape, h[0], h[1], Activation::silu), x.at("W_down"))}};
  });
});

const RegisterGolden model("models/based", [](const GoldenCase& c, DType dtype, Arena& arena) {
  const int64_t heads = c.attributes.at("H"), keys = c.inputs.at("layer1.mix.Wq").shape[0];
  return run_golden_model(c, dtype, arena,
                          {{"block", "llama"},
                           {"mixer", "based"},
                           {"heads", heads},
                           {"feature_width", keys / heads},
                           {"window", c.attributes.at("left").get<int64_t>() + 1},
                           {"mlp_width", c.inputs.at("layer0.mlp.W_up").shape[0]}},
                          model_names(names, llama_names()));
});

}  // namespace
}  // namespace saccade::test
