// RWKV-7 (Goose): Peng et al. 2025, arXiv:2503.14456, section 3; initial values and ranks of RWKV-LM (github.com/BlinkDL/RWKV-LM).
//
//   x_• = x + (x⁻ − x) ∘ μ_• for r, w, k, v, a, g;   low ranks: d = w0 + W2 tanh(W1 x_w), rate = a0 + A2 A1 x_a, g = G2 σ(G1 x_g)
//   values blend with those of layer 0 (in hybrid stacks: of the first RWKV-7 layer): v ← v + (v_first − v) ∘ σ(v0 + V2 V1 x_v)
//   S_t = diag(w_t) S_{t−1} − (κ_t ∘ η_t)(S_{t−1}ᵀ κ_t)ᵀ + k'_t v_tᵀ,   y_t = S_tᵀ r_t      w = exp(−e^{−1/2} σ(d)), η = σ(rate)
//   out = W_o( (groupnorm(y) + (Σ_head r ∘ k' ∘ bonus) v) ∘ g )
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/group_norm/group_norm.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/rwkv7/rwkv7_gates.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "kernels/ops/wkv7/wkv7.h"
#include "models/architectures/registry.h"
#include "models/layers/low_rank.h"
#include "models/layers/masked_write.h"
#include "models/layers/rwkv_heads.h"

namespace saccade {
namespace {

constexpr double kUnitFloor = 1e-12;  ///< of the norm of a removal key

struct Settings {
  int64_t decay_rank = 0, rate_rank = 0, value_rank = 0, gate_rank = 0;
};

constexpr const char* kSource = "arXiv:2503.14456, section 3";
const Schema<Settings> schema{
    field("decay_rank", &Settings::decay_rank, {0, 4096}, "Rank of the decay, 0: 2.5 √width, to the nearest multiple of 32.", kSource),
    field("rate_rank", &Settings::rate_rank, {0, 4096}, "Rank of the in-context learning rate, 0: 2.5 √width, likewise.", kSource),
    field("value_rank", &Settings::value_rank, {0, 4096}, "Rank of the blend with layer 0's values, 0: 1.7 √width, likewise.", kSource),
    field("gate_rank", &Settings::gate_rank, {0, 4096}, "Rank of the output gate, 0: 5 √width, likewise.", kSource),
};

class Rwkv7Mixer : public RwkvMixer {
 public:
  Rwkv7Mixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer) : RwkvMixer(shape, make, layer) {
    const RwkvDepth d = heads_.depth();
    const int64_t head_width = shape.head_width();
    const auto blend = [&](const char* name, double factor) { return rwkv7_blend(make, d, name, factor); };
    blends_ = {blend("mix_receptance", 0.2), blend("mix_decay", 0.9), blend("mix_key", 0.7),
               blend("mix_value", 0.7),      blend("mix_rate", 0.9),  blend("mix_gate", 0.2)};
    const auto of_rank = [&](const char* name, int64_t rank, const std::function<double(uint64_t)>& start) {
      return make_low_rank(make, heads_.name(name), d.width, low_rank(rank, 2.5, d.width), start);
    };
    const auto linear_in = [d](uint64_t i) { return d.place(i) - 0.5; };
    const auto zigzag = [head_width](uint64_t i) {
      const double half = static_cast<double>(head_width - 1) / 2;
      const double z = half > 0 ? (static_cast<double>(i % static_cast<uint64_t>(head_width)) - half) / half : 0;
      return z * std::abs(z);
    };
    decay_ = of_rank("decay", settings.decay_rank,
                     [=](uint64_t i) { return -6 + 6 * std::pow(d.place(i), 1 + std::pow(d.depth(), 0.3)) + 0.5 + 2.5 * zigzag(i); });
    rate_ = of_rank("rate", settings.rate_rank, [=](uint64_t i) { return -0.19 + 0.3 * zigzag(i) + 0.4 * linear_in(i); });
    if (shape.nth(kBlendedValues, layer) > 0) value_blend_ = rwkv7_value_blend(make, d, settings.value_rank);
    gate_ = rwkv7_output_gate(make, d, settings.gate_rank);
    removal_scale_ = heads_.formula(make, "removal_scale", {d.width}, [=](uint64_t i) { return 0.71 - 0.1 * linear_in(i); });
    rate_scale_ = make.constant(heads_.name("rate_scale"), {d.width}, 1.02);
    bonus_ = make.constant(heads_.name("bonus"), heads_.by_head(), -0.04);
    receptance_ = heads_.matrix(make, "receptance", 1);
    key_ = heads_.matrix(make, "key", 0.1);
    value_ = heads_.matrix(make, "value", 1);
  }

 private:
  /// W_v x_v, blended with that of the first RWKV-7 layer in all later ones. In a hybrid stack the paper's layer 0 is that first one.
  Tensor values(Tape& tape, const Tensor& x, Pass& pass) const {
    const Tensor v = linear(tape, x, value_);
    if (!value_blend_.down) return pass.first_values = v;
    return blend_values(tape, v, pass.first_values, value_blend_(tape, x, Activation::none));
  }

  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, RwkvState* state) const override {
    const std::vector<Tensor> s = token_shift(tape, x, state ? state->before : Tensor(), blends_, ShiftWeight::previous);
    const Tensor r = linear(tape, s[0], receptance_), k = linear(tape, s[2], key_), v = values(tape, s[3], pass);
    const Tensor d = decay_(tape, s[1], Activation::tanh), rate = rate_(tape, s[4], Activation::none);
    const Tensor g = gate_(tape, s[5], Activation::sigmoid);
    const Tensor kappa = unit_norm(tape, heads_.split(k), removal_scale_.reshape(heads_.by_head()), kUnitFloor).reshape(k.shape());
    const Rwkv7Gates gates = rwkv7_gates(tape, d, rate, k, kappa, rate_scale_);
    const auto split = [&](const Tensor& t) { return heads_.split(t); };
    const Tensor written = without_masked_write(tape, split(v), pass, heads_.depth().layer);
    const Wkv7 out =
        wkv7(tape, split(r), split(gates.log_w), split(gates.k), written, split(gates.a), split(gates.b), state ? state->state : Tensor());
    if (state) heads_.keep(tape, *state, x, out.state);
    if (pass.probe)
      heads_.report(tape, *pass.probe, out.y, [&](const Sequences& some) {
        return wkv7_weights(tape, split(r), split(gates.log_w), split(gates.k), split(gates.a), split(gates.b), some);
      });
    return heads_.output(tape, rwkv7_output(tape, heads_.norm(tape, out.y), r, gates.k, v, g, bonus_));
  }

  std::vector<Tensor> blends_;                 // of r, w, k, v, a, g: [C]
  LowRank decay_, rate_, value_blend_, gate_;  // value_blend_: not in the first
  Tensor removal_scale_, rate_scale_, bonus_;  // k_k [C], k_a [C], r_k [H, N]
  Tensor receptance_, key_, value_;            // [C, C]
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "rwkv7",
    .title = "RWKV-7",
    .paper = "Peng et al. 2025, arXiv:2503.14456, section 3",
    .settings = schema.settings(),
    .defaults = {{"position", nullptr}, {"rotary_base", nullptr}, {"channel_mix", "7"}},
    .home = "rwkv",
    .blends_values = true,
    .make_mixer = maker_of<Rwkv7Mixer>(schema),
}};

}  // namespace
}  // namespace saccade
