#include "kernels/ops/mamba2/mamba2_ssd.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

const RegisterGolden ssd("mamba2_ssd", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena,
                    [&](Tape& tape, const Tensors& x) {
                      const auto at = [&](const char* name) { return x.contains(name) ? x.at(name) : Tensor(); };
                      const Mamba2Output out = mamba2_ssd(tape, {.x = at("x"),
                                                                 .dt = at("dt_raw"),
                                                                 .b = at("B"),
                                                                 .c = at("C"),
                                                                 .skip = at("D"),
                                                                 .dt_bias = at("dt_bias"),
                                                                 .a_log = at(x.contains("shared_raw") ? "shared_A_log" : "A_log"),
                                                                 .shared_dt = at("shared_raw"),
                                                                 .shared_bias = at("shared_bias"),
                                                                 .state = {at("S0"), true, false}});
                      return Tensors{{"y", out.y}, {"final_state", out.end}};
                    },
                    {"S0"});
});

const ParameterNames names{{"in_proj", "in_proj"},           {"conv_w", "conv"},       {"conv_b", "conv_bias"},
                           {"dt_bias", "dt_bias"},           {"A_log", "a_log"},       {"D", "skip"},
                           {"norm_w", "gated_norm"},         {"out_proj", "out_proj"}, {"shared_A_log", "shared_a_log"},
                           {"shared_dt_b", "shared_dt_bias"}};

const RegisterGolden layer("layers/mamba2", [](const GoldenCase& c, DType dtype, Arena& arena) {
  const std::string decay = c.inputs.contains("A_log") ? "full" : c.inputs.contains("shared_A_log") ? "one" : "none";
  return run_golden_mixer(c, dtype, arena, "mamba2",
                          {{"heads", c.attributes.at("H")},
                           {"groups", c.attributes.at("G")},
                           {"state", c.attributes.at("N")},
                           {"decay", decay},
                           {"convolution", c.inputs.contains("conv_w")},
                           {"norm", c.inputs.contains("norm_w")}},
                          names);
});

const RegisterGolden model("models/mamba2", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden_model(c, dtype, arena,
                          {{"block", "mamba"},
                           {"mixer", "mamba2"},
                           {"heads", c.attributes.at("H")},
                           {"groups", c.attributes.at("G")},
                           {"state", c.attributes.at("N")}},
                          model_names(names, {{"emb", "embedding"}, {"norm_f_w", "final_norm"}, {"norm1_w", "norm"}}));
});

}  // namespace
}  // namespace saccade::test
