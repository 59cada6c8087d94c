// Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464), as in "base capabilities" (arXiv:2505.18522), appendix A.
//
//   q, k, v = silu(conv(W x)),  q and k unit vectors,  β = σ(W_β x) or 2 σ(W_β x),  g = −e^{A_log} softplus(W_a x + bias)
//   S̄ = e^{g_t} S_{t−1},  S_t = S̄ + k_t (β_t (v_t − S̄ᵀ k_t))ᵀ      o_t = S_tᵀ q_t / √K
//   out = W_o( RMSNorm(o) ∘ silu(W_g x) )
#include "kernels/ops/delta_rule/delta_rule.h"

#include <cmath>

#include "kernels/ops/gated_norm/gated_norm.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/log_decay/log_decay.h"
#include "models/architectures/registry.h"
#include "models/layers/delta_heads.h"
#include "models/layers/initialise.h"
#include "models/suggest.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-6;
constexpr double kSmallestDecay = 1e-3, kLargestDecay = 16;

struct Settings {
  int64_t key_width = 0, value_width = 0, filter = 4;
  bool convolution = true;
  bool negative_eigenvalues = false;
};

const Schema<Settings> schema{
    field("key_width", &Settings::key_width, {0, 4096}, "Width of a head's keys, 0: all heads together 3/4 of the model's.",
          "arXiv:2412.06464, section 3.4"),
    field("value_width", &Settings::value_width, {0, 8192}, "Width of a head's values, 0: twice that of its keys.",
          "arXiv:2412.06464, section 3.4"),
    field("filter", &Settings::filter, {1, 64}, "Kernel size of the causal convolutions, in tokens.", "arXiv:2412.06464, section 3.4"),
    field("convolution", &Settings::convolution, "Causal convolutions of queries, keys and values.", "arXiv:2412.06464, table S.1"),
    field("negative_eigenvalues", &Settings::negative_eigenvalues,
          "β = 2 σ(W_β x): a token may turn what stands along its key round, not only take it away (parity needs that).",
          "arXiv:2411.12537, section 4.1"),
};

DeltaHeads::Sizes sizes(const ModelShape& shape, const Settings& s) {
  const int64_t keys = s.key_width > 0 ? s.key_width : 3 * shape.width / (4 * shape.heads);
  return {shape.width,           shape.heads, keys, s.value_width > 0 ? s.value_width : 2 * keys, s.convolution ? s.filter : 0,
          s.negative_eigenvalues};
}

class GatedDeltaNetMixer : public DeltaMixer {
 public:
  GatedDeltaNetMixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : DeltaMixer(shape.sequence_length, {sizes(shape, settings), make, layer}) {
    const auto name = [&](const char* word) { return layer_name(layer, word); };
    const int64_t head_values = sizes(shape, settings).values, values = shape.heads * head_values;
    decay_ = make.normal(name("decay"), {shape.heads, shape.width}, kDeviation);
    a_log_ =
        make.drawn(name("a_log"), {shape.heads}, [](double u) { return std::log(kSmallestDecay + (kLargestDecay - kSmallestDecay) * u); });
    decay_bias_ = make.drawn(name("decay_bias"), {shape.heads}, step_bias);
    gate_ = make.normal(name("output_gate"), {values, shape.width}, kDeviation);
    norm_ = make.constant(name("output_norm"), {head_values}, 1);
    output_ = make.normal(name("output"), {shape.width, values}, kDeviation);
  }

 private:
  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, DeltaHeads::State* state) const override {
    std::vector<Tensor> more{decay_, gate_};
    DeltaRule rule = heads_(tape, x, pass, state, more);
    rule.g = log_decay(tape, more[0], a_log_, decay_bias_);
    const Tensor o = delta_rule(tape, rule).o;  // [B, T, H, V]
    if (pass.probe) heads_.report(tape, rule, *pass.probe);
    const Tensor y = rms_norm_before_gate(tape, o, more[1].reshape(o.shape()), norm_, kEpsilon);
    return linear(tape, y.reshape(more[1].shape()), output_, {}, pass.take_residual());
  }

  Tensor decay_, a_log_, decay_bias_, gate_, norm_, output_;
};

void check(const ModelShape& shape, const nlohmann::json& values, const std::string& pointer) {
  if (schema.read(values, pointer).key_width == 0 && 3 * shape.width % (4 * shape.heads) != 0)
    throw UsageError(pointer + "/key_width is 0, but 3/4 of the width " + std::to_string(shape.width) + " does not divide into " +
                     std::to_string(shape.heads) + " heads");
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "gated_deltanet",
    .title = "Gated DeltaNet",
    .paper = "Yang et al. 2024, arXiv:2412.06464; as in arXiv:2505.18522, appendix A",
    .settings = schema.settings(),
    .defaults =
        {{"position", nullptr}, {"rotary_base", nullptr}, {"activation", "silu"}, {"norm_epsilon", 1e-6}, {"scaled_residual", false}},
    .own_head_width = true,
    .variant =
        [](const nlohmann::json& values) {
          std::string words = values.at("convolution").get<bool>() ? "" : "without convolution";
          if (values.at("negative_eigenvalues").get<bool>()) add_words(words, "eigenvalues to −1");
          return words;
        },
    .check = check,
    .make_mixer = maker_of<GatedDeltaNetMixer>(schema),
}};

}  // namespace
}  // namespace saccade
