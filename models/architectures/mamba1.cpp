// Mamba (Gu and Dao 2023, arXiv:2312.00752), as in "base capabilities" (arXiv:2505.18522) with its ablations.
//
//   u | z = W_in x;   u = silu(conv(u));   ρ | B | C = W_x u;   Δ = softplus(W_Δ ρ + bias)
//   h_t = e^{Δ_t A} h_{t−1} + Δ_t B_t u_t;   y_t = (C_t h_t + D u_t) silu(z_t);   out = W_out y
#include "kernels/ops/mamba1/mamba1_scan.h"

#include <algorithm>
#include <cmath>

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

constexpr int64_t kShownChannels = 8;

struct Settings {
  int64_t expansion = 2, state = 16, step_rank = 0, filter = 4;
  std::string decay = "full";
  bool convolution = true;
};

const Schema<Settings> schema{
    field("expansion", &Settings::expansion, {1, 16}, "Inner width of the mixer in widths of the model.", "arXiv:2312.00752, section 3.4"),
    field("state", &Settings::state, {1, 1024}, "States N of each inner channel.", "arXiv:2312.00752, section 3.3"),
    field("step_rank", &Settings::step_rank, {0, 4096}, "Rank of the projection that makes the step sizes, 0: a sixteenth of the width.",
          "arXiv:2312.00752, section 3.6"),
    field("filter", &Settings::filter, {1, 64}, "Kernel size of the causal convolution, in tokens.", "arXiv:2312.00752, section 3.4"),
    choice_field("decay", &Settings::decay, {"full", "one", "none"},
                 "Decay: a factor for each channel and state (full), one factor for each token (one), or none.",
                 "arXiv:2505.18522, section 3.1.1"),
    field("convolution", &Settings::convolution, "Causal convolution of u.", "arXiv:2505.18522, section 3.1.1"),
};

struct State : LayerState {
  Tensor inputs;  ///< last inputs of the convolution
  Tensor h;       ///< [B, D, N]

  void each(const std::function<void(Tensor&, Kept)>& f) override { f(inputs, Kept::sum), f(h, Kept::sum); }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
};

class Mamba1Mixer : public StatefulMixer<State> {
 public:
  Mamba1Mixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : settings_(settings),
        layer_(layer),
        length_(shape.sequence_length),
        inner_(settings.expansion * shape.width),
        rank_(settings.step_rank > 0 ? settings.step_rank : (shape.width + 15) / 16) {
    const auto name = [&](const char* word) { return layer_name(layer, word); };
    const int64_t states = settings.state;
    in_proj_ = make.uniform(name("in_proj"), {2 * inner_, shape.width}, fan_in_bound(shape.width));
    if (settings.convolution) {
      const Tensor weight = make.uniform(name("conv"), {inner_, settings.filter}, fan_in_bound(settings.filter));
      conv_ = ShortConv(weight, make.uniform(name("conv_bias"), {inner_}, fan_in_bound(settings.filter)));
    }
    x_proj_ = make.uniform(name("x_proj"), {rank_ + 2 * states, inner_}, fan_in_bound(inner_));
    dt_proj_ = make.uniform(name("dt_proj"), {inner_, rank_}, fan_in_bound(rank_));
    dt_bias_ = make.drawn(name("dt_bias"), {inner_}, step_bias);
    if (settings.decay == "full")
      a_log_ = make.formula(name("a_log"), {inner_, states},
                            [states](uint64_t i) { return std::log(static_cast<double>(i % static_cast<uint64_t>(states)) + 1); });
    if (settings.decay == "one") {
      shared_dt_ = make.uniform(name("shared_dt"), {1, rank_}, fan_in_bound(rank_));
      shared_bias_ = make.constant(name("shared_dt_bias"), {1}, inverse_softplus(0.01));
      a_log_ = make.constant(name("shared_a_log"), {1}, 0);
    }
    skip_ = make.constant(name("skip"), {inner_}, 1);
    out_proj_ = make.uniform(name("out_proj"), {shape.width, inner_}, fan_in_bound(inner_) / std::sqrt(static_cast<double>(shape.layers)));
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const override {
    auto state = std::make_unique<State>();
    state->inputs = conv_.begin(arena, dtype, batch);
    state->h = zero_state(arena, {batch, inner_, settings_.state}, accumulation_dtype(dtype));
    return state;
  }

  double state_values_per_token() const override {
    return static_cast<double>(inner_ * settings_.state + conv_.kept()) / static_cast<double>(length_);
  }

 private:
  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, State* state) const override {
    const std::vector<Tensor> uz = linear_split(tape, x, in_proj_, {inner_, inner_});
    const Tensor u = conv_(tape, uz[0], state ? &state->inputs : nullptr);
    const std::vector<Tensor> p = linear_split(tape, u, x_proj_, {rank_, settings_.state, settings_.state});  // ρ, B, C
    const Mamba1Scan scan{.u = u,
                          .dt = linear(tape, p[0], dt_proj_),
                          .z = uz[1],
                          .b = written(tape, p[1], pass),
                          .c = p[2],
                          .skip = skip_,
                          .dt_bias = dt_bias_,
                          .a_log = a_log_,
                          .shared_dt = shared_dt_ ? linear(tape, p[0], shared_dt_) : Tensor(),
                          .shared_bias = shared_bias_,
                          .state = state ? CarriedState{state->h, false, true} : CarriedState{}};
    const Tensor y = mamba1_scan(tape, scan).y;
    if (pass.probe) report(tape, scan, *pass.probe);
    return linear(tape, y, out_proj_, {}, pass.take_residual());
  }

  /// B [B, T, N], without that of a token whose write the pass masks, in all channels.
  Tensor written(Tape& tape, const Tensor& b, const Pass& pass) const {
    const auto masked = pass.take(layer_, Counterfactual::Kind::mask, std::min(kShownChannels, inner_));
    if (!masked) return b;
    return mask_value(tape, b.reshape({b.dim(0), b.dim(1), 1, b.dim(2)}), 0, masked->source).reshape(b.shape());
  }

  /// Every channel reads in its own way; some of them, evenly spaced, stand for all. Reads are those of the recurrence: the skip D u_t
  /// is no read from the past, and stands beside them as a statistic.
  void report(Tape& tape, const Mamba1Scan& scan, Probe& probe) const {
    const int64_t shown = std::min(kShownChannels, inner_);
    std::vector<int64_t> channels;
    for (int64_t i = 0; i < shown; ++i) channels.push_back(i * inner_ / shown);
    Mamba1Scan recurrence = scan;
    recurrence.skip = tape.zeros(skip_.shape(), skip_.dtype());
    HeadProbe heads(probe, layer_);
    heads.signed_weights(tape, {scan.u.dim(0), shown, scan.u.dim(1)},
                         [&](const Sequences& s) { return mamba1_weights(tape, recurrence, s, channels); });
    if (!heads.wants_statistics() || heads.plans()) return;
    const std::vector<double> skip = to_doubles(skip_);
    std::vector<double> of_channels;
    for (const int64_t channel : channels) of_channels.push_back(skip[static_cast<size_t>(channel)]);
    heads.heads("skip", "1", std::move(of_channels));
  }

  Settings settings_;
  int64_t layer_, length_, inner_, rank_;
  ShortConv conv_;
  Tensor in_proj_, x_proj_, dt_proj_, dt_bias_, a_log_, shared_dt_, shared_bias_, skip_, out_proj_;
};

std::string variant(const nlohmann::json& values) {
  const Settings s = schema.read(values, "");
  std::string words;
  if (s.decay != "full") add_words(words, "decay " + s.decay);
  if (!s.convolution) add_words(words, "without convolution");
  return words;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "mamba1",
    .title = "Mamba",
    .paper = "Gu and Dao 2023, arXiv:2312.00752; ablations: arXiv:2505.18522, section 3.1.1",
    .settings = schema.settings(),
    .defaults = {{"heads", nullptr}, {"position", nullptr}, {"rotary_base", nullptr}},
    .home = "mamba",
    .variant = variant,
    .make_mixer = maker_of<Mamba1Mixer>(schema),
}};

}  // namespace
}  // namespace saccade
