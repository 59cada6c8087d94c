// RWKV-5 (Eagle): Peng et al. 2024, arXiv:2404.05892, section 3; initial values of RWKV-LM (github.com/BlinkDL/RWKV-LM).
//
//   x_• = x ∘ μ_• + x⁻ ∘ (1 − μ_•) for r, k, v, g      decay e^λ per channel, λ = −exp(decay), constant
//   y = WKV(W_r x_r, W_k x_k, W_v x_v),   out = W_o( groupnorm(y) ∘ silu(W_g x_g) )
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/token_shift/token_shift.h"
#include "kernels/ops/wkv/wkv.h"
#include "models/architectures/registry.h"
#include "models/layers/masked_write.h"
#include "models/layers/rwkv_heads.h"

namespace saccade {
namespace {

class Rwkv5Mixer : public RwkvMixer {
 public:
  Rwkv5Mixer(const ModelShape& shape, ParameterMaker& make, int64_t layer) : RwkvMixer(shape, make, layer) {
    const RwkvDepth d = heads_.depth();
    const auto blend = [&](const char* name, double exponent, double more) {
      return heads_.formula(make, name, {d.width}, [=](uint64_t i) { return d.curve(i, exponent) + more; });
    };
    blends_ = {blend("mix_receptance", d.rest() / 2, 0), blend("mix_key", d.rest(), 0), blend("mix_value", d.rest(), 0.3 * d.depth()),
               blend("mix_gate", d.rest() / 2, 0)};
    decay_ =
        heads_.formula(make, "decay", heads_.by_head(), [d](uint64_t i) { return -6 + 5 * std::pow(d.place(i), 0.7 + 1.3 * d.depth()); });
    bonus_ = heads_.formula(make, "bonus", heads_.by_head(),
                            [d](uint64_t i) { return d.depth() * (1 - d.place(i)) + 0.1 * (static_cast<double>((i + 1) % 3) - 1); });
    receptance_ = heads_.matrix(make, "receptance", 1);
    key_ = heads_.matrix(make, "key", 0.1);
    value_ = heads_.matrix(make, "value", 1);
    gate_ = heads_.matrix(make, "output_gate", 0.1);
  }

 private:
  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, RwkvState* state) const override {
    const std::vector<Tensor> s = token_shift(tape, x, state ? state->before : Tensor(), blends_, ShiftWeight::current);
    const Tensor r = heads_.split(linear(tape, s[0], receptance_)), k = heads_.split(linear(tape, s[1], key_)),
                 v = heads_.split(linear(tape, s[2], value_)), g = linear(tape, s[3], gate_);
    const Wkv out =
        wkv(tape, r, k, without_masked_write(tape, v, pass, heads_.depth().layer), decay_, bonus_, state ? state->state : Tensor());
    if (state) heads_.keep(tape, *state, x, out.state);
    if (pass.probe)
      heads_.report(tape, *pass.probe, out.y, [&](const Sequences& some) { return wkv_weights(tape, r, k, decay_, bonus_, some); });
    return heads_.output(tape, gated(tape, g, heads_.norm(tape, out.y), Activation::silu));
  }

  std::vector<Tensor> blends_;              // of r, k, v, g: [C]
  Tensor decay_, bonus_;                    // [H, N]
  Tensor receptance_, key_, value_, gate_;  // [C, C]
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "rwkv5",
    .title = "RWKV-5",
    .paper = "Peng et al. 2024, arXiv:2404.05892, section 3",
    .settings = {},
    .defaults = {{"position", nullptr}, {"rotary_base", nullptr}, {"channel_mix", "5"}},
    .home = "rwkv",
    .make_mixer = [](const ModelShape& shape, const nlohmann::json&, ParameterMaker& make,
                     int64_t layer) { return std::make_unique<Rwkv5Mixer>(shape, make, layer); },
}};

}  // namespace
}  // namespace saccade
