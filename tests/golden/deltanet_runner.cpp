#include "kernels/ops/delta_rule/delta_rule.h"
#include "kernels/ops/l2_norm/l2_norm.h"
#include "kernels/ops/log_decay/log_decay.h"
#include "kernels/ops/sigmoid_gate/sigmoid_gate.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

/// core_*: the rule alone; fused_*: L2 norms and gates in front of it.
GoldenResult run_rule(const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena,
                    [&](Tape& tape, const Tensors& x) {
                      const auto at = [&](const char* name) { return x.contains(name) ? x.at(name) : Tensor(); };
                      DeltaRule in{
                          .q = at("q"), .k = at("k"), .v = at("v"), .beta = at("beta"), .g = at("g"), .scale = c.attributes.at("scale")};
                      if (x.contains("q_raw")) {
                        in.q = l2_norm(tape, at("q_raw"), c.attributes.at("l2_eps"));
                        in.k = l2_norm(tape, at("k_raw"), c.attributes.at("l2_eps"));
                        in.beta = sigmoid_gate(tape, at("beta_raw"));
                        if (x.contains("a_raw")) in.g = log_decay(tape, at("a_raw"), at("A_log"), at("dt_bias"));
                      }
                      in.state = {at("S0"), true, false};
                      const DeltaRuleOutput out = delta_rule(tape, in);
                      return Tensors{{"y", out.o}, {"final_state", out.end}};
                    },
                    {"beta", "g", "S0"});
}

const ParameterNames names{{"Wq", "query"},          {"Wk", "key"},          {"Wv", "value"},          {"Wb", "beta"},
                           {"conv_q", "conv_query"}, {"conv_k", "conv_key"}, {"conv_v", "conv_value"}, {"o_norm_w", "output_norm"},
                           {"Wo", "output"},         {"Wa", "decay"},        {"A_log", "a_log"},       {"dt_bias", "decay_bias"},
                           {"Wg", "output_gate"}};

GoldenRunner layer(const std::string& id) {
  return [id](const GoldenCase& c, DType dtype, Arena& arena) {
    return run_golden_mixer(c, dtype, arena, id, {{"heads", c.attributes.at("H")}}, names);
  };
}

GoldenRunner model(const std::string& id) {
  return [id](const GoldenCase& c, DType dtype, Arena& arena) {
    return run_golden_model(
        c, dtype, arena,
        {{"block", "llama"}, {"mixer", id}, {"heads", c.attributes.at("H")}, {"mlp_width", c.inputs.at("layer0.mlp.W_up").shape[0]}},
        model_names(names, llama_names()));
  };
}

const RegisterGolden delta("delta_rule", run_rule);
const RegisterGolden gated_delta("gated_delta_rule", run_rule);
const RegisterGolden deltanet_layer("layers/deltanet", layer("deltanet"));
const RegisterGolden gated_layer("layers/gated_deltanet", layer("gated_deltanet"));
const RegisterGolden deltanet_model("models/deltanet", model("deltanet"));
const RegisterGolden gated_model("models/gated_deltanet", model("gated_deltanet"));

}  // namespace
}  // namespace saccade::test
