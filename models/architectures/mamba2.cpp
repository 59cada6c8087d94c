// Mamba-2 (Dao and Gu 2024, arXiv:2405.21060), as in "base capabilities" (arXiv:2505.18522) with its ablations.
//
//   z | x | B | C | Δ = W_in u;   x | B | C = silu(conv(x | B | C));   y = SSD(x, Δ, A, B, C) + D x
//   out = W_out( RMSNorm(y ∘ silu(z)) )
#include "kernels/ops/mamba2/mamba2_ssd.h"

#include <cmath>

#include "kernels/ops/gated_norm/gated_norm.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/linear_split/linear_split.h"
#include "kernels/ops/mask_value/mask_value.h"
#include "models/architectures/registry.h"
#include "models/layers/head_probe.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"
#include "models/layers/stateful_mixer.h"

namespace saccade {
namespace {

constexpr double kEpsilon = 1e-5;

struct Settings {
  int64_t expansion = 2, state = 128, groups = 1, filter = 4;
  std::string decay = "full";
  bool convolution = true, norm = true;
};

const Schema<Settings> schema{
    field("expansion", &Settings::expansion, {1, 16}, "Inner width of the mixer in widths of the model.", "arXiv:2405.21060, section 7"),
    field("state", &Settings::state, {1, 4096}, "Keys N of the state, which is N by head width for each head.",
          "arXiv:2405.21060, section 6"),
    field("groups", &Settings::groups, {1, 1024}, "Groups of heads that share B and C; divides the heads.",
          "arXiv:2405.21060, section 7.1"),
    field("filter", &Settings::filter, {1, 64}, "Kernel size of the causal convolution, in tokens.", "arXiv:2405.21060, section 7"),
    choice_field("decay", &Settings::decay, {"full", "one", "none"},
                 "Decay: a factor for each head (full), one factor for each token (one), or none.", "arXiv:2505.18522, section 3.1.1"),
    field("convolution", &Settings::convolution, "Causal convolution of x, B and C.", "arXiv:2505.18522, section 3.1.1"),
    field("norm", &Settings::norm, "Norm after the gate.", "arXiv:2505.18522, section 3.1.1"),
};

struct State : LayerState {
  Tensor inputs;  ///< last inputs of the convolution
  Tensor s;       ///< [B, H, N, P]

  void each(const std::function<void(Tensor&, Kept)>& f) override { f(inputs, Kept::sum), f(s, Kept::sum); }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
};

class Mamba2Mixer : public StatefulMixer<State> {
 public:
  Mamba2Mixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : settings_(settings),
        layer_(layer),
        length_(shape.sequence_length),
        width_(shape.width),
        inner_(settings.expansion * shape.width),
        heads_(shape.heads),
        keys_(settings.groups * settings.state) {
    const auto name = [&](const char* word) { return layer_name(layer, word); };
    const bool one = settings.decay == "one";
    in_proj_ = make.uniform(name("in_proj"), {2 * inner_ + 2 * keys_ + heads_ + (one ? 1 : 0), width_}, fan_in_bound(width_));
    if (settings.convolution) {
      const Tensor weight = make.uniform(name("conv"), {convolved(), settings.filter}, fan_in_bound(settings.filter));
      conv_ = ShortConv(weight, make.uniform(name("conv_bias"), {convolved()}, fan_in_bound(settings.filter)));
    }
    dt_bias_ = make.drawn(name("dt_bias"), {heads_}, step_bias);
    if (settings.decay == "full") a_log_ = make.drawn(name("a_log"), {heads_}, [](double u) { return std::log(1 + 15 * u); });
    if (one) {
      a_log_ = make.constant(name("shared_a_log"), {1}, 0);
      shared_bias_ = make.constant(name("shared_dt_bias"), {1}, inverse_softplus(0.01));
    }
    skip_ = make.constant(name("skip"), {heads_}, 1);
    if (settings.norm) norm_ = make.constant(name("gated_norm"), {inner_}, 1);
    out_proj_ = make.uniform(name("out_proj"), {width_, inner_}, fan_in_bound(inner_) / std::sqrt(static_cast<double>(shape.layers)));
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const override {
    auto state = std::make_unique<State>();
    state->inputs = conv_.begin(arena, dtype, batch);
    state->s = zero_state(arena, {batch, heads_, settings_.state, inner_ / heads_}, accumulation_dtype(dtype));
    return state;
  }

  double state_values_per_token() const override {
    return static_cast<double>(inner_ * settings_.state + conv_.kept()) / static_cast<double>(length_);
  }

 private:
  int64_t convolved() const { return inner_ + 2 * keys_; }

  Tensor mix(Tape& tape, const Tensor& u, Pass& pass, State* state) const override {
    const int64_t batch = u.dim(0), length = u.dim(1);
    std::vector<int64_t> widths{inner_, convolved(), heads_};
    if (shared_bias_) widths.push_back(1);
    const std::vector<Tensor> p = linear_split(tape, u, in_proj_, widths);  // z, x | B | C, Δ
    const std::vector<Tensor> xbc = conv_.pieces(tape, p[1], {inner_, keys_, keys_}, state ? &state->inputs : nullptr);
    const Shape keys{batch, length, settings_.groups, settings_.state};
    const Mamba2Ssd ssd{.x = xbc[0].reshape({batch, length, heads_, inner_ / heads_}),
                        .dt = p[2],
                        .b = xbc[1].reshape(keys),
                        .c = xbc[2].reshape(keys),
                        .skip = skip_,
                        .dt_bias = dt_bias_,
                        .a_log = a_log_,
                        .shared_dt = shared_bias_ ? p[3] : Tensor(),
                        .shared_bias = shared_bias_,
                        .state = state ? CarriedState{state->s, false, true} : CarriedState{}};
    const Tensor y = scan(tape, ssd, pass).reshape(p[0].shape());
    if (pass.probe) report(tape, ssd, *pass.probe);
    const Tensor gate =
        norm_ ? rms_norm_after_gate(tape, y, p[0], norm_, settings_.groups, kEpsilon) : gated(tape, p[0], y, Activation::silu);
    return linear(tape, gate, out_proj_, {}, pass.take_residual());
  }

  /// y of the recurrence; where the pass masks a token's write, without what that would have written. Its skip D x_t is no write and stays.
  Tensor scan(Tape& tape, const Mamba2Ssd& ssd, const Pass& pass) const {
    const auto masked = pass.take(layer_, Counterfactual::Kind::mask, heads_);
    if (!masked) return mamba2_ssd(tape, ssd).y;
    Mamba2Ssd without = ssd;
    without.x = mask_value(tape, ssd.x, masked->head, masked->source);
    const Tensor y = mamba2_ssd(tape, without).y;
    tape.run("mamba2.masked_skip", {}, [&] {
      dispatch(y.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const int64_t width = y.dim(3), row = (masked->source * heads_ + masked->head) * width;
        for (int64_t i = 0; i < width; ++i) y.data<T>()[row + i] += skip_.data<T>()[masked->head] * ssd.x.data<T>()[row + i];
      });
    });
    return y;
  }

  /// Reads are those of the recurrence: the skip D x_t is no read from the past, and stands beside them as a statistic.
  void report(Tape& tape, const Mamba2Ssd& ssd, Probe& probe) const {
    Mamba2Ssd recurrence = ssd;
    recurrence.skip = tape.zeros(skip_.shape(), skip_.dtype());
    HeadProbe heads(probe, layer_);
    heads.signed_weights(tape, {ssd.x.dim(0), heads_, ssd.x.dim(1)},
                         [&](const Sequences& s) { return mamba2_weights(tape, recurrence, s); });
    if (heads.wants_statistics()) heads.heads("skip", "1", skip_);
  }

  Settings settings_;
  int64_t layer_, length_, width_, inner_, heads_, keys_;  // keys_: G N
  ShortConv conv_;
  Tensor in_proj_, dt_bias_, a_log_, shared_bias_, skip_, norm_, out_proj_;
};

std::string variant(const nlohmann::json& values) {
  const Settings s = schema.read(values, "");
  std::string words;
  if (s.decay != "full") add_words(words, "decay " + s.decay);
  if (!s.convolution) add_words(words, "without convolution");
  if (!s.norm) add_words(words, "without norm");
  return words;
}

void check(const ModelShape& shape, const nlohmann::json& values, const std::string& pointer) {
  const Settings s = schema.read(values, pointer);
  if (shape.heads % s.groups != 0)
    throw UsageError(pointer + "/groups is " + std::to_string(s.groups) + ", which does not divide the " + std::to_string(shape.heads) +
                     " heads");
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "mamba2",
    .title = "Mamba-2",
    .paper = "Dao and Gu 2024, arXiv:2405.21060; ablations: arXiv:2505.18522, section 3.1.1",
    .settings = schema.settings(),
    .defaults = {{"position", nullptr}, {"rotary_base", nullptr}},
    .home = "mamba",
    .variant = variant,
    .check = check,
    .make_mixer = maker_of<Mamba2Mixer>(schema),
}};

}  // namespace
}  // namespace saccade
