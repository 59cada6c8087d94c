// RWKV-6 (Finch): Peng et al. 2024, arXiv:2404.05892, section 4; initial values of RWKV-LM (github.com/BlinkDL/RWKV-LM).
//
//   z = x + (x⁻ − x) ∘ μ_x,   x_• = x + (x⁻ − x) ∘ (μ_• + B_• tanh(A_• z)) for w, k, v, r, g
//   decay e^λ per channel and token, λ = −exp(decay + D_up tanh(D_down x_w))
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

constexpr double kLowRankBound = 0.01;

struct Settings {
  int64_t mix_rank = 32;
  int64_t decay_rank = 64;
};

const Schema<Settings> schema{
    field("mix_rank", &Settings::mix_rank, {1, 4096}, "Rank of what the token adds to each blend of the token shift.",
          "arXiv:2404.05892, section 4"),
    field("decay_rank", &Settings::decay_rank, {1, 4096}, "Rank of what the token adds to the decay.", "arXiv:2404.05892, section 4"),
};

/// One blend of the token shift: its vector and the low-rank pair.
struct Blend {
  Tensor mix, down, up;  // [C], [R, C], [C, R]
};

class Rwkv6Mixer : public RwkvMixer {
 public:
  Rwkv6Mixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer) : RwkvMixer(shape, make, layer) {
    const RwkvDepth d = heads_.depth();
    const auto mix = [&](const char* name, double exponent, double less) {
      return heads_.formula(make, name, {d.width}, [=](uint64_t i) { return 1 - (d.curve(i, exponent) + less); });
    };
    mix_input_ = mix("mix_input", d.rest(), 0);
    const auto blend = [&](const std::string& name, double exponent, double less) {
      return Blend{mix(name.c_str(), exponent, less), make.zeros(heads_.name(name + "_down"), {settings.mix_rank, d.width}),
                   make.uniform(heads_.name(name + "_up"), {d.width, settings.mix_rank}, kLowRankBound)};
    };
    blends_ = {blend("mix_decay", d.rest(), 0), blend("mix_key", d.rest(), 0), blend("mix_value", d.rest(), 0.3 * d.depth()),
               blend("mix_receptance", d.rest() / 2, 0), blend("mix_gate", d.rest() / 2, 0)};
    decay_ = heads_.formula(make, "decay", {d.width}, [d](uint64_t i) { return -6 + 5 * std::pow(d.place(i), 0.7 + 1.3 * d.depth()); });
    decay_down_ = make.zeros(heads_.name("decay_down"), {settings.decay_rank, d.width});
    decay_up_ = make.uniform(heads_.name("decay_up"), {d.width, settings.decay_rank}, kLowRankBound);
    bonus_ = heads_.formula(make, "bonus", heads_.by_head(),
                            [d](uint64_t i) { return d.depth() * (1 - d.place(i)) + 0.1 * (static_cast<double>((i + 1) % 3) - 1); });
    receptance_ = heads_.matrix(make, "receptance", 1);
    key_ = heads_.matrix(make, "key", 0.1);
    value_ = heads_.matrix(make, "value", 1);
    gate_ = heads_.matrix(make, "output_gate", 0.1);
  }

 private:
  /// x_w, x_k, x_v, x_r, x_g.
  std::vector<Tensor> shift(Tape& tape, const Tensor& x, const Tensor& before) const {
    const Tensor z = token_shift(tape, x, before, {mix_input_}, ShiftWeight::previous)[0];
    std::vector<Tensor> downs, weights;
    for (const Blend& b : blends_) downs.push_back(b.down);
    const std::vector<Tensor> low = linears(tape, z, downs);
    for (size_t i = 0; i < blends_.size(); ++i)
      weights.push_back(linear(tape, activate(tape, low[i], Activation::tanh), blends_[i].up, blends_[i].mix));
    return token_shift(tape, x, before, weights, ShiftWeight::previous);
  }

  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, RwkvState* state) const override {
    const std::vector<Tensor> s = shift(tape, x, state ? state->before : Tensor());
    const Tensor w = heads_.split(linear(tape, activate(tape, linear(tape, s[0], decay_down_), Activation::tanh), decay_up_, decay_));
    const Tensor k = heads_.split(linear(tape, s[1], key_)), v = heads_.split(linear(tape, s[2], value_)),
                 r = heads_.split(linear(tape, s[3], receptance_)), g = linear(tape, s[4], gate_);
    const Wkv out = wkv(tape, r, k, without_masked_write(tape, v, pass, heads_.depth().layer), w, bonus_, state ? state->state : Tensor());
    if (state) heads_.keep(tape, *state, x, out.state);
    if (pass.probe)
      heads_.report(tape, *pass.probe, out.y, [&](const Sequences& some) { return wkv_weights(tape, r, k, w, bonus_, some); });
    return heads_.output(tape, gated(tape, g, heads_.norm(tape, out.y), Activation::silu));
  }

  Tensor mix_input_;
  std::vector<Blend> blends_;               // of w, k, v, r, g
  Tensor decay_, decay_down_, decay_up_;    // [C], [R, C], [C, R]
  Tensor bonus_;                            // [H, N]
  Tensor receptance_, key_, value_, gate_;  // [C, C]
};

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "rwkv6",
    .title = "RWKV-6",
    .paper = "Peng et al. 2024, arXiv:2404.05892, section 4",
    .settings = schema.settings(),
    .defaults = {{"position", nullptr}, {"rotary_base", nullptr}, {"channel_mix", "6"}},
    .home = "rwkv",
    .make_mixer = maker_of<Rwkv6Mixer>(schema),
}};

}  // namespace
}  // namespace saccade
