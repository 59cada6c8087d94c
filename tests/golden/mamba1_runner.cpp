#include "kernels/ops/mamba1/mamba1_scan.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

const RegisterGolden scan("mamba1_scan", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena,
                    [&](Tape& tape, const Tensors& x) {
                      const auto at = [&](const char* name) { return x.contains(name) ? x.at(name) : Tensor(); };
                      const Mamba1Output out = mamba1_scan(tape, {.u = at("u"),
                                                                  .dt = at("dt_raw"),
                                                                  .z = at("z"),
                                                                  .b = at("B"),
                                                                  .c = at("C"),
                                                                  .skip = at("D"),
                                                                  .dt_bias = at("dt_bias"),
                                                                  .a_log = at(x.contains("shared_raw") ? "shared_A_log" : "A_log"),
                                                                  .shared_dt = at("shared_raw"),
                                                                  .shared_bias = at("shared_bias"),
                                                                  .state = {at("h0"), true, false}});
                      return Tensors{{"y", out.y}, {"final_state", out.end}};
                    },
                    {"h0"});
});

const ParameterNames names{{"in_proj", "in_proj"},
                           {"conv_w", "conv"},
                           {"conv_b", "conv_bias"},
                           {"x_proj", "x_proj"},
                           {"dt_proj_w", "dt_proj"},
                           {"dt_proj_b", "dt_bias"},
                           {"A_log", "a_log"},
                           {"D", "skip"},
                           {"out_proj", "out_proj"},
                           {"shared_dt_w", "shared_dt"},
                           {"shared_dt_b", "shared_dt_bias"},
                           {"shared_A_log", "shared_a_log"}};

const RegisterGolden layer("layers/mamba1", [](const GoldenCase& c, DType dtype, Arena& arena) {
  const std::string decay = c.inputs.contains("A_log") ? "full" : c.inputs.contains("shared_A_log") ? "one" : "none";
  return run_golden_mixer(c, dtype, arena, "mamba1",
                          {{"state", c.attributes.at("N")},
                           {"step_rank", c.attributes.at("dt_rank")},
                           {"decay", decay},
                           {"convolution", c.inputs.contains("conv_w")}},
                          names);
});

const RegisterGolden model("models/mamba1", [](const GoldenCase& c, DType dtype, Arena& arena) {
  const int64_t states = c.inputs.at("layer0.mix.A_log").shape[1], rank = c.inputs.at("layer0.mix.dt_proj_w").shape[1];
  return run_golden_model(c, dtype, arena, {{"block", "mamba"}, {"mixer", "mamba1"}, {"state", states}, {"step_rank", rank}},
                          model_names(names, {{"emb", "embedding"}, {"norm_f_w", "final_norm"}, {"norm1_w", "norm"}}));
});

}  // namespace
}  // namespace saccade::test
