// Based (Arora et al. 2024, arXiv:2402.18668), as in "base capabilities" (arXiv:2505.18522), appendix A: gated convolutions, linear
// attention with the Taylor series of the exponential, and attention in a small window take turns.
//
//   conv:    u | w = W_in x + b;   out = W_out(silu(conv(u)) ∘ w) + b
//   linear:  p_tj = 1 + s + s²/2, s = q_t · k_j / √d;   o_t = Σ_{j≤t} p_tj v_j / Σ_{j≤t} p_tj
//   window:  softmax attention with rotary positions over the last keys
#include <algorithm>

#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/mask_source.h"
#include "kernels/ops/heads/heads.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/linear_split/linear_split.h"
#include "kernels/ops/split/split.h"
#include "kernels/ops/taylor_attention/mask_write.h"
#include "kernels/ops/taylor_attention/taylor_attention.h"
#include "models/architectures/registry.h"
#include "models/layers/head_cache.h"
#include "models/layers/head_probe.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"
#include "models/layers/stateful_mixer.h"

namespace saccade {
namespace {

struct Settings {
  std::vector<std::string> layout{"conv", "linear", "window", "conv", "conv"};
  int64_t feature_width = 16, window = 65, filter = 3;
};

const Schema<Settings> schema{
    list_field("layout", &Settings::layout, "Mixers of the layers that Based stands in, repeated to the last one: conv, linear or window.",
               "arXiv:2505.18522, appendix A; arXiv:2402.18668, appendix E.1"),
    field("feature_width", &Settings::feature_width, {1, 256}, "Width of queries and keys in linear attention.",
          "arXiv:2402.18668, section 4"),
    field("window", &Settings::window, {1, 1 << 20}, "Attention window in tokens, the query's own included.",
          "arXiv:2402.18668, section 4"),
    field("filter", &Settings::filter, {1, 64}, "Kernel size of the causal convolution, in tokens.", "arXiv:2402.18668, appendix E.1"),
};

/// What the three mixers share.
struct BasedLayer {
  ModelShape shape;
  Settings settings;
  int64_t layer;
  std::string name(const char* word) const { return layer_name(layer, word); }
  double per_token(int64_t values) const { return static_cast<double>(values) / static_cast<double>(shape.sequence_length); }
};

struct ConvState : LayerState {
  Tensor inputs;

  void each(const std::function<void(Tensor&, Kept)>& f) override { f(inputs, Kept::sum); }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
};

class ConvMixer : public StatefulMixer<ConvState> {
 public:
  ConvMixer(const BasedLayer& place, ParameterMaker& make) : place_(place) {
    const int64_t width = place.shape.width, inner = 2 * width;
    in_ = make.normal(place.name("in_proj"), {2 * inner, width}, kDeviation);
    in_bias_ = make.constant(place.name("in_bias"), {2 * inner}, 0);
    conv_ = ShortConv(make.uniform(place.name("conv"), {inner, place.settings.filter}, fan_in_bound(place.settings.filter)), {});
    out_ = make.normal(place.name("output"), {width, inner}, residual_deviation(place.shape));
    out_bias_ = make.constant(place.name("output_bias"), {width}, 0);
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const override {
    auto state = std::make_unique<ConvState>();
    state->inputs = conv_.begin(arena, dtype, batch);
    return state;
  }
  double state_values_per_token() const override { return place_.per_token(conv_.kept()); }

 private:
  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, ConvState* state) const override {
    const int64_t inner = 2 * place_.shape.width;
    const std::vector<Tensor> p = split(tape, linear(tape, x, in_, in_bias_), {inner, inner});
    return linear(tape, gated(tape, conv_(tape, p[0], state ? &state->inputs : nullptr), p[1], Activation::none), out_, out_bias_,
                  pass.take_residual());
  }

  BasedLayer place_;
  ShortConv conv_;
  Tensor in_, in_bias_, out_, out_bias_;
};

struct LinearState : LayerState {
  Tensor s;  ///< [B, H, F, V + 1]

  void each(const std::function<void(Tensor&, Kept)>& f) override { f(s, Kept::sum); }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
};

class LinearMixer : public StatefulMixer<LinearState> {
 public:
  LinearMixer(const BasedLayer& place, ParameterMaker& make) : place_(place) {
    const int64_t width = place.shape.width, keys = place.shape.heads * place.settings.feature_width;
    query_ = make.normal(place.name("query"), {keys, width}, kDeviation);
    key_ = make.normal(place.name("key"), {keys, width}, kDeviation);
    value_ = make.normal(place.name("value"), {width, width}, kDeviation);
    output_ = make.normal(place.name("output"), {width, width}, residual_deviation(place.shape));
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const override {
    auto state = std::make_unique<LinearState>();
    state->s = zero_state(arena, {batch, place_.shape.heads, taylor_features(place_.settings.feature_width), place_.shape.head_width() + 1},
                          accumulation_dtype(dtype));
    return state;
  }
  double state_values_per_token() const override {
    return place_.per_token(place_.shape.heads * taylor_features(place_.settings.feature_width) * (place_.shape.head_width() + 1));
  }

 private:
  Tensor mix(Tape& tape, const Tensor& x, Pass& pass, LinearState* state) const override {
    const std::vector<Tensor> p = linears(tape, x, {query_, key_, value_});
    const auto heads = [&](const Tensor& y, int64_t width) { return y.reshape({x.dim(0), x.dim(1), place_.shape.heads, width}); };
    const Tensor q = heads(p[0], place_.settings.feature_width), k = heads(p[1], place_.settings.feature_width);
    const Tensor v = heads(p[2], place_.shape.head_width()), o = taylor_attention(tape, q, k, v, state ? state->s : Tensor());
    if (const auto masked = pass.take(place_.layer, Counterfactual::Kind::mask, place_.shape.heads))
      mask_taylor_write(tape, q, k, v, masked->head, masked->source, o);
    if (pass.probe) report(tape, q, k, *pass.probe);
    return linear(tape, o.reshape(x.shape()), output_, {}, pass.take_residual());
  }

  void report(Tape& tape, const Tensor& q, const Tensor& k, Probe& probe) const {
    HeadProbe(probe, place_.layer).signed_weights(tape, {q.dim(0), q.dim(2), q.dim(1)}, [&](const Sequences& s) {
      return taylor_weights(tape, q, k, s);
    });
  }

  BasedLayer place_;
  Tensor query_, key_, value_, output_;
};

class WindowMixer : public Mixer {
 public:
  WindowMixer(const BasedLayer& place, ParameterMaker& make) : place_(place) {
    const int64_t width = place.shape.width;
    qkv_ = make.normal(place.name("query_key_value"), {3 * width, width}, kDeviation);
    output_ = make.normal(place.name("output"), {width, width}, residual_deviation(place.shape));
  }

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const override {
    const Heads h = heads(tape, x, {});
    const ScoreOptions score = score_for(x.dim(1));
    const Attention a = attention(tape, h.q, h.k, h.v, score, pass.probe && pass.probe->wants_statistics());
    if (const auto masked = pass.take(place_.layer, Counterfactual::Kind::mask, place_.shape.heads))
      mask_source(tape, h.q, h.k, h.v, score, {masked->head, masked->query, masked->source}, a.o);
    if (pass.probe) report(tape, h.q, h.k, a, score, *pass.probe);
    return out(tape, a.o, x, pass);
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    auto cache = std::make_unique<HeadCache>();
    const Shape rows{batch, capacity, place_.shape.heads, place_.shape.head_width()};
    cache->k = arena.allocate(rows, dtype);
    cache->v = arena.allocate(rows, dtype);
    return cache;
  }
  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const override {
    HeadCache& cache = dynamic_cast<HeadCache&>(state);
    const Heads h = heads(tape, x, pass.position);
    cache.append(tape, h.k, h.v, pass.position);
    const bool prompt = pass.position.first == 0;
    const ScoreOptions score = score_for(prompt ? x.dim(1) : cache.v.dim(1));
    const Tensor o = prompt ? attention(tape, h.q, h.k, h.v, score).o : cached_attention(tape, h.q, cache.k, cache.v, score, pass.position);
    return out(tape, o, x, pass);
  }

  double state_values_per_token() const override {
    return place_.per_token(2 * place_.shape.width * std::min(place_.settings.window, place_.shape.sequence_length));
  }

 private:
  struct Heads {
    Tensor q, k, v;  // [B, T, H, d], turned
  };
  Heads heads(Tape& tape, const Tensor& x, const TokenPosition& position) const {
    const int64_t width = place_.shape.width;
    const std::vector<Tensor> p = linear_split(tape, x, qkv_, {width, width, width});
    const auto split = [&](const Tensor& y) { return y.reshape({x.dim(0), x.dim(1), place_.shape.heads, place_.shape.head_width()}); };
    HeadOptions options;
    options.rotary_base = place_.shape.rotary_base;
    options.position = position;
    return {prepare_heads(tape, split(p[0]), {}, options), prepare_heads(tape, split(p[1]), {}, options), split(p[2])};
  }
  /// For sequences of at most `length` tokens.
  ScoreOptions score_for(int64_t length) const {
    ScoreOptions score;
    score.scale = fan_in_bound(place_.shape.head_width());
    score.window = place_.settings.window < length ? place_.settings.window : 0;
    return score;
  }
  Tensor out(Tape& tape, const Tensor& o, const Tensor& x, Pass& pass) const {
    return linear(tape, o.reshape(x.shape()), output_, {}, pass.take_residual());
  }

  void report(Tape& tape, const Tensor& q, const Tensor& k, const Attention& a, const ScoreOptions& score, Probe& probe) const {
    HeadProbe(probe, place_.layer).weights(tape, a.entropy, [&](const Sequences& s) { return attention_weights(tape, q, k, score, s); });
  }

  BasedLayer place_;
  Tensor qkv_, output_;
};

std::unique_ptr<Mixer> make_mixer(const ModelShape& shape, const nlohmann::json& values, ParameterMaker& make, int64_t layer) {
  const BasedLayer place{shape, schema.read(values, "/architecture"), layer};
  const auto nth = static_cast<size_t>(shape.nth("based", layer));
  const std::string& kind = place.settings.layout[nth % place.settings.layout.size()];
  if (kind == "linear") return std::make_unique<LinearMixer>(place, make);
  if (kind == "window") return std::make_unique<WindowMixer>(place, make);
  return std::make_unique<ConvMixer>(place, make);
}

void check(const ModelShape& shape, const nlohmann::json& values, const std::string& pointer) {
  const Settings s = schema.read(values, pointer);
  if (s.layout.empty()) throw UsageError(pointer + "/layout is empty, expected mixers such as conv, linear, window");
  for (const std::string& kind : s.layout)
    if (kind != "conv" && kind != "linear" && kind != "window")
      throw UsageError(pointer + "/layout has \"" + kind + "\", expected conv, linear or window");
  if (shape.head_width() % 2 != 0)
    throw UsageError(pointer + "/heads is " + std::to_string(shape.heads) + ": window attention turns pairs, but heads are " +
                     std::to_string(shape.head_width()) + " wide");
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "based",
    .title = "Based",
    .paper = "Arora et al. 2024, arXiv:2402.18668; as in arXiv:2505.18522, appendix A",
    .settings = schema.settings(),
    .defaults = {{"position", nullptr}, {"activation", "silu"}},
    .check = check,
    .make_mixer = make_mixer,
}};

}  // namespace
}  // namespace saccade
