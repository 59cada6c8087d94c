// Avey, "Don't Pay Attention" (arXiv:2506.11305), section 2 and appendix A. Letters follow the paper.
//
//   X = E[token]                                                               cut into splits of S tokens
//   h = contexts: [w_p X_p of the k splits p < i of greatest MaxSim(i, p) | X_i]                       ranker, 2.1
//   per layer   Z = relu²(norm(h) U + b) = [Z_r | Z_l | Z_h]                                          enricher, 2.2.1
//               Y = (tril(A) * Cos(Z_r)) Z_r                                                     contextualizer, 2.2.2
//               h += [Y * Z_l | Z_h] O + c                                                                fuser, 2.2.3
//   logits = E · norm(h of the split's own tokens)
#include <cmath>
#include <optional>

#include "kernels/engine/transfer.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/avey/contexts.h"
#include "kernels/ops/avey/contextualizer.h"
#include "kernels/ops/avey/decoding.h"
#include "kernels/ops/avey/enricher.h"
#include "kernels/ops/avey/fuser.h"
#include "kernels/ops/avey/masked_split.h"
#include "kernels/ops/avey/neural_processor.h"
#include "kernels/ops/avey/ranker.h"
#include "kernels/ops/avey/reads.h"
#include "kernels/ops/decoding/decoding.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/embedding/embedding.h"
#include "kernels/ops/heads/heads.h"
#include "kernels/ops/linear/linear.h"
#include "kernels/ops/norm/norm.h"
#include "models/architectures/registry.h"
#include "models/layers/block.h"
#include "models/layers/head_probe.h"
#include "models/layers/initialise.h"
#include "models/layers/short_conv.h"

namespace saccade {
namespace {

using nlohmann::json;

constexpr double kRmsEpsilon = 1e-10, kLayerNormEpsilon = 1e-5;

struct Settings {
  int64_t split = 64, top_k = 7, expansion = 4;
  double tail = 0.5;
  bool ranker = true, weighting = true, bypass = true, dynamic = true, mask_padding = false;
  std::string weight_reference = "max", ranker_query = "split", processor = "contextualizer", norm = "rms";
  std::string enricher_activation = "relu2", contextualizer_activation = "none";
  std::string initialisation = "uniform";
};

const Choices activations{"none", "gelu", "relu", "relu2", "silu"};

const Schema<Settings> schema{
    field("split", &Settings::split, {1, 65536}, "Tokens in a split, S.", "arXiv:2506.11305, section 2.1, appendix G"),
    field("top_k", &Settings::top_k, {1, 64}, "Earlier splits in the context of a split, k.", "arXiv:2506.11305, section 2.1, appendix G"),
    field("ranker", &Settings::ranker, "Off: one context, the whole sequence.", "arXiv:2506.11305, appendix K, table 12"),
    choice_field("ranker_query", &Settings::ranker_query, {"split", "causal"},
                 "Ranks with the whole current split (published; sees ahead inside it) or with the one before.",
                 "arXiv:2506.11305, section 2.1"),
    field("weighting", &Settings::weighting, "Weight chosen splits by their normalised scores; off: 1.",
          "arXiv:2506.11305, section 2.1, appendix K"),
    choice_field("weight_reference", &Settings::weight_reference, {"max", "first"},
                 "Scores are divided by the best chosen one (paper) or the earliest chosen one (released code).",
                 "arXiv:2506.11305, section 2.1"),
    field("mask_padding", &Settings::mask_padding, "Contexts do not see the zero rows in front of them (published: they do).", ""),
    field("expansion", &Settings::expansion, {1, 16}, "Width of the enriched embedding over the model width.",
          "arXiv:2506.11305, section 2.2.1, appendix D"),
    choice_field("enricher_activation", &Settings::enricher_activation, activations, "Activation of the enricher.",
                 "arXiv:2506.11305, appendix B"),
    field("bypass", &Settings::bypass, "The head of each enriched embedding bypasses the contextualizer; off: tail is all of it.",
          "arXiv:2506.11305, section 2.2.1, appendix K"),
    field("tail", &Settings::tail, {0.0, 1.0}, "Share of the enriched features that the contextualizer mixes.",
          "arXiv:2506.11305, section 2.2.1, appendix E"),
    choice_field("processor", &Settings::processor, {"contextualizer", "attention"},
                 "What mixes the rows of a context; attention has `heads` heads and takes `position`.",
                 "arXiv:2506.11305, section 2.2.2, appendix K"),
    field("dynamic", &Settings::dynamic, "The contextualizer's weights are multiplied by cosines; off: they are fixed.",
          "arXiv:2506.11305, section 2.2.2, appendix K"),
    choice_field("contextualizer_activation", &Settings::contextualizer_activation, activations,
                 "Activation of the contextualized features.", "arXiv:2506.11305, appendix C"),
    choice_field("norm", &Settings::norm, {"rms", "layer"}, "RMSNorm or LayerNorm, before each layer and at the end.",
                 "arXiv:2506.11305, appendix H"),
    choice_field(
        "initialisation", &Settings::initialisation, {"uniform", "xavier"},
        "Of enricher, fuser and attention: uniform in ±1/sqrt(fan-in), biases too (released code), or Xavier normal and zero biases.",
        "released code of arXiv:2506.11305"),
};

int64_t enriched_columns(const Settings& s, int64_t width) { return s.expansion * width; }

/// Columns of Z_r and Z_l together: an even number.
int64_t tail_columns(const Settings& s, int64_t width) {
  const int64_t m = enriched_columns(s, width), even = m - m % 2;
  if (!s.bypass) return even;
  const auto tail = static_cast<int64_t>(static_cast<double>(m) * s.tail);
  return std::min(tail + tail % 2, even);
}

struct Norm {
  Tensor weight, bias;  // [D]; bias for LayerNorm
  Tensor operator()(Tape& tape, const Tensor& x) const {
    return bias ? layer_norm(tape, x, weight, bias, kLayerNormEpsilon) : rms_norm(tape, x, weight, kRmsEpsilon);
  }
};

struct Layer {
  Norm norm;
  Tensor U, b;               // [m, D], [m]
  Tensor A;                  // [C, C]
  Tensor query, key, value;  // [r, r] in place of A
  Tensor O, c;               // [D, r + m − tail], [D]
};

class Avey : public Model {
 public:
  Avey(const ModelShape& shape, const Settings& settings, ParameterMaker& make) : shape_(shape), s_(settings) {
    const int64_t D = shape.width, m = enriched_columns(s_, D), r = tail_columns(s_, D) / 2;
    const int64_t C = layout(1, 1).context_width();
    const auto norm = [&](const std::string& name) {
      return Norm{make.constant(name, {D}, 1), s_.norm == "layer" ? make.constant(name + "_bias", {D}, 0) : Tensor()};
    };
    const bool uniform = s_.initialisation == "uniform";
    const auto weight = [&](const std::string& name, const Shape& size) {
      return uniform ? make.uniform(name, size, fan_in_bound(size[1])) : make.xavier_normal(name, size);
    };
    const auto bias = [&](const std::string& name, int64_t size, int64_t inputs) {
      return uniform ? make.uniform(name, {size}, fan_in_bound(inputs)) : make.constant(name, {size}, 0);
    };
    E_ = make.xavier_normal("embedding", {shape.vocabulary, D});
    for (int64_t l = 0; l < shape.layers; ++l) {
      Layer& layer = layers_.emplace_back();
      layer.norm = norm(layer_name(l, "norm"));
      layer.U = weight(layer_name(l, "enricher.weight"), {m, D});
      layer.b = bias(layer_name(l, "enricher.bias"), m, D);
      if (attends()) {
        layer.query = weight(layer_name(l, "query"), {r, r});
        layer.key = weight(layer_name(l, "key"), {r, r});
        layer.value = weight(layer_name(l, "value"), {r, r});
      } else {
        layer.A = make.xavier_normal(layer_name(l, "contextualizer"), {C, C});
      }
      layer.O = weight(layer_name(l, "fuser.weight"), {D, m - r});
      layer.c = bias(layer_name(l, "fuser.bias"), D, m - r);
    }
    final_norm_ = norm("final_norm");
    parameters_ = make.take();
  }

  Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const override {
    const avey::ContextLayout contexts = layout(tokens.dim(0), tokens.dim(1));
    const Tensor X = embedding(tape, E_, tokens);  // [B, T, D]
    avey::RankerOptions options = ranker_options();
    if (const auto c = probe && s_.ranker ? probe->take(-1, Counterfactual::Kind::force, 1, 0) : std::nullopt)
      options.forced = {0, c->query, c->source};
    const avey::Ranked ranked = s_.ranker ? avey::rank(tape, X, options) : avey::Ranked{};
    if (probe && s_.ranker) report_ranker(ranked, *probe);
    Tensor h = avey::contexts(tape, X, ranked, contexts);  // [rows of all contexts, D]
    Pass pass{probe, {}};
    for (size_t l = 0; l < layers_.size(); ++l)
      h = run_block(tape, h, pass, [=, this, &tape](const Tensor& in, Pass&) { return block(tape, l, in, contexts, ranked, probe); });
    return final_norm_(tape, h).reshape(X.shape());
  }

  DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    if (!s_.ranker) layout(batch, capacity);  // throws where that is too long
    DecodingState state = DecodingState::empty(arena, batch, capacity);
    auto seen = std::make_unique<Seen>();
    seen->anywhere = static_cast<bool>(state.length_on_device);
    seen->x = arena.allocate({batch, capacity, shape_.width}, dtype);
    if (s_.ranker) {
      seen->inverse = arena.allocate({batch, capacity}, accumulation_dtype(dtype));
      seen->scores = zero_state(arena, {batch, capacity / s_.split + 1}, accumulation_dtype(dtype));
    }
    state.layers.push_back(std::move(seen));
    return state;
  }

  /// Each row as `hidden` of all tokens so far gives it: with the published ranker a position is seen with its split as far as that has
  /// come, not with the split's later tokens as in training. Contexts of earlier splits are not made again.
  Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const override {
    const int64_t n = tokens.dim(1);
    const TokenPosition position = state.pass(n).position;
    Seen& seen = dynamic_cast<Seen&>(*state.layers.front());
    if (position.differs() && !seen.anywhere) return extend_apart(tape, tokens, state);
    const Tensor x = embedding(tape, E_, tokens);
    append_rows(tape, x, seen.x, position);
    if (s_.ranker) append_rows(tape, avey::inverse_lengths(tape, x), seen.inverse, position);
    const bool one = state.last_only && state.batch == 1;
    const Tensor all = one ? Tensor() : tape.empty(x.shape(), x.dtype());
    Tensor rows;
    for (const avey::SplitTokens& piece : one ? last_piece(position, n) : pieces(position, n)) {
      rows = split_rows(tape, seen, piece, one ? 1 : piece.count);
      if (!one) append_rows(tape, rows, all, {piece.from});
    }
    state.advance(tape, n);
    return one ? rows : all;
  }

  Tensor output_weight() const override { return E_; }

  /// Embeddings of all tokens, and for the ranker their lengths.
  double state_values_per_token() const override { return static_cast<double>(shape_.width + (s_.ranker ? 1 : 0)); }

 private:
  /// What is kept of sequences in progress.
  struct Seen : LayerState {
    Tensor x;        ///< [B, capacity, D]
    Tensor inverse;  ///< [B, capacity]: avey::inverse_lengths of x
    Tensor scores;   ///< [B, splits]: avey::add_maxsim of the split that the last token stands in, up to that
    /// A step serves every position: where kernels read positions on a GPU, so that it is captured once.
    bool anywhere = false;

    void each(const std::function<void(Tensor&, Kept)>& f) override {
      f(x, Kept::tokens), f(inverse, Kept::tokens);
      f(scores, Kept::sum);
    }
    std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
  };

  /// Tokens that a split has at most; without the ranker a sequence is one split.
  int64_t split_tokens() const { return s_.ranker ? s_.split : shape_.sequence_length; }

  /// The n tokens that follow, split by split; one by one where splits end at different tokens.
  std::vector<avey::SplitTokens> pieces(const TokenPosition& position, int64_t n) const {
    std::vector<avey::SplitTokens> all;
    for (int64_t from = 0, S = split_tokens(); from < n; from += all.back().count)
      all.push_back({position, from, position.differs() ? 1 : std::min(n - from, S - (position.first + from) % S)});
    return all;
  }
  std::vector<avey::SplitTokens> last_piece(const TokenPosition& position, int64_t n) const { return {pieces(position, n).back()}; }

  /// Each sequence as if alone: their splits end at different tokens.
  Tensor extend_apart(Tape& tape, const Tensor& tokens, DecodingState& state) const {
    const TokenPosition position = state.pass(tokens.dim(1)).position;
    const Tensor all = tape.empty({state.batch, tokens.dim(1), shape_.width}, dynamic_cast<Seen&>(*state.layers.front()).x.dtype());
    for (int64_t b = 0; b < state.batch; ++b) {
      DecodingState one = state.sequence(b, position.of(b));
      append_rows(tape, extend(tape, tokens.slice(b, b + 1), one), all.slice(b, b + 1), {});
    }
    state.length += tokens.dim(1);
    return all;
  }

  /// Contexts as rows: with room for a full split where a step serves every position. There padding that is masked stays where it is, but
  /// for attention, which counts positions from the first row that there is.
  avey::SplitContext split_context(const Seen& seen, const avey::SplitTokens& tokens) const {
    const int64_t S = split_tokens(), k = s_.ranker ? s_.top_k : 0, last = tokens.greatest_last();
    const bool packed = s_.ranker && s_.mask_padding && (attends() || !seen.anywhere);
    const int64_t before = S * (packed ? std::min(last / S, k) : k), all = s_.ranker ? S * (k + 1) : seen.x.dim(1);
    return {S, k, packed, seen.anywhere ? all : before + last % S + 1, tokens};
  }

  /// Final-normed states [B, n, D] of the last n of `tokens`.
  Tensor split_rows(Tape& tape, Seen& seen, const avey::SplitTokens& tokens, int64_t n) const {
    avey::Ranked ranked;
    if (s_.ranker) {
      avey::add_maxsim(tape, seen.x, seen.inverse, ranker_options(), tokens, seen.scores);
      ranked = avey::rank_split(tape, seen.scores, ranker_options(), tokens);
    }
    const avey::SplitContext context = split_context(seen, tokens);
    const int64_t batch = seen.x.dim(0), i = tokens.greatest_last() / context.split;
    const int64_t masked = context.packed && !attends() ? context.split * (context.top_k - std::min(i, context.top_k)) : 0;
    const avey::ContextLayout layout{batch, context.rows, context.split * (context.top_k + 1), 0, false, masked};
    Tensor h = avey::split_context(tape, seen.x, ranked, context).reshape({batch * context.rows, shape_.width});
    const bool hides = s_.ranker && s_.mask_padding && !context.packed;
    for (size_t l = 0; l < layers_.size(); ++l)
      h = hides ? hiding_block(tape, l, h, layout, context) : block(tape, l, h, layout, {}, nullptr);
    return final_norm_(tape, avey::rows_of_last(tape, h.reshape({batch, context.rows, shape_.width}), context, n));
  }

  /// `block` of contexts whose padding is there, but is not seen.
  Tensor hiding_block(Tape& tape, size_t l, const Tensor& h, const avey::ContextLayout& contexts, const avey::SplitContext& context) const {
    const Layer& layer = layers_[l];
    const Activation g = parse_activation(s_.enricher_activation), f = parse_activation(s_.contextualizer_activation);
    const avey::Enriched z = avey::enrich(tape, layer.norm(tape, h), layer.U, layer.b, g, tail_columns(s_, shape_.width), contexts.rows());
    avey::clear_padding(tape, z.r, context);
    return avey::fuse(tape, h, avey::contextualize(tape, z.r, layer.A, contexts, s_.dynamic, false), z, layer.O, layer.c, f);
  }

  Tensor block(Tape& tape, size_t l, const Tensor& h, const avey::ContextLayout& contexts, const avey::Ranked& ranked, Probe* probe) const {
    // Nobody reads what the last layer makes of rows that are not the split's own.
    const bool own_only = l + 1 == layers_.size();
    const Layer& layer = layers_[l];
    const Activation g = parse_activation(s_.enricher_activation), f = parse_activation(s_.contextualizer_activation);
    const int64_t tail = tail_columns(s_, shape_.width);
    const Tensor x = layer.norm(tape, h);
    std::optional<HeadProbe> watch;
    if (probe) watch.emplace(*probe, static_cast<int64_t>(l));
    const auto masked =
        probe && s_.ranker && !attends() ? probe->take(static_cast<int64_t>(l), Counterfactual::Kind::mask, 1, 0) : std::nullopt;
    if (!attends() && !masked) {
      const avey::Processed out =
          avey::neural_processor(tape, h, x, {layer.U, layer.b, layer.A, layer.O, layer.c}, contexts, {g, f, tail, s_.dynamic, own_only});
      if (watch) report_contextualizer(out.Z_r, layer, contexts, ranked, *watch);
      return out.y;
    }
    const avey::Enriched z = avey::enrich(tape, x, layer.U, layer.b, g, tail, own_only ? contexts.own_rows() : contexts.rows());
    if (masked) {  // neural_processor stage by stage
      const Tensor Y = avey::contextualize(tape, z.r, layer.A, contexts, s_.dynamic, own_only);
      const Tensor without = avey::without_split(tape, Y, z.r, layer.A, ranked, contexts, {masked->query, masked->source}, s_.dynamic);
      if (watch) report_contextualizer(z.r, layer, contexts, ranked, *watch);
      return avey::fuse(tape, h, without, z, layer.O, layer.c, f);
    }
    return avey::fuse(tape, h, attend(tape, z.r, layer, contexts, own_only, ranked, watch), z, layer.O, layer.c, f);
  }

  bool attends() const { return s_.processor == "attention"; }

  avey::ContextLayout layout(int64_t batch, int64_t tokens) const {
    if (s_.ranker) return {batch, tokens, s_.split, s_.top_k, !s_.mask_padding};
    if (tokens > shape_.sequence_length)
      throw UsageError("a sequence of " + std::to_string(tokens) + " tokens; without the ranker Avey's context is its sequence length, " +
                       std::to_string(shape_.sequence_length));
    return {batch, tokens, shape_.sequence_length, 0, false};
  }

  avey::RankerOptions ranker_options() const {
    return {s_.split, s_.top_k, s_.weighting, avey::parse_weight_reference(s_.weight_reference), avey::parse_ranker_query(s_.ranker_query),
            {}};
  }

  void report_contextualizer(const Tensor& Z, const Layer& layer, const avey::ContextLayout& contexts, const avey::Ranked& ranked,
                             HeadProbe& watch) const {
    if (watch.plans())
      return plan_reads(contexts, 1, Z.dtype(), Z.device().engine == Engine::cuda ? 4 * (Z.size() + layer.A.size()) : 0, watch);
    OnHost host;
    const Tensor z = host(Z), a = host(layer.A);
    report_reads(host, contexts, ranked, 1, watch,
                 [&](int64_t b, int64_t i) { return avey::contextualizer_weights(host.tape, z, a, contexts, s_.dynamic, b, i); });
  }

  /// Softmax self-attention over each context in place of the contextualizer: q, k, v = W Z_r in H heads.
  Tensor attend(Tape& tape, const Tensor& Z, const Layer& layer, const avey::ContextLayout& contexts, bool own_only,
                const avey::Ranked& ranked, std::optional<HeadProbe>& watch) const {
    const int64_t r = Z.dim(1), H = shape_.heads, d = r / H;
    const std::vector<Tensor> qkv = linears(tape, Z, {layer.query, layer.key, layer.value});  // [rows, r]
    const auto heads = [&](const Tensor& x, bool turned) {
      const Tensor in_contexts = avey::to_rectangles(tape, x, contexts);  // [B·N, C, r]
      const Tensor y = in_contexts.reshape({in_contexts.dim(0), in_contexts.dim(1), H, d});
      HeadOptions options;
      options.rotary_base = shape_.rotary_base;
      return turned && shape_.position == "rotary" ? prepare_heads(tape, y, {}, options) : y;
    };
    const Tensor q = heads(qkv[0], true), k = heads(qkv[1], true), v = heads(qkv[2], false);
    ScoreOptions score;
    score.scale = 1 / std::sqrt(static_cast<double>(d));
    score.alibi = shape_.position == "alibi" || shape_.position == "alibi-released";
    score.released_alibi = shape_.position == "alibi-released";
    if (watch) {
      OnHost host;
      const auto weights = [&](int64_t b, int64_t i) { return attention_weights(tape, q, k, score, b * contexts.splits() + i); };
      if (watch->plans())
        plan_reads(contexts, H, weights(0, 0).dtype(), 0, *watch);
      else
        report_reads(host, contexts, ranked, H, *watch,
                     [&](int64_t b, int64_t i) { return own_part(host.tape, host(weights(b, i)), avey::context_rows(contexts, b, i)); });
    }
    const Tensor o = attention(tape, q, k, v, score).o;
    return avey::from_rectangles(tape, o.reshape({o.dim(0), o.dim(1), r}), contexts, own_only);
  }

  /// Of weights [H, C, C] those of the context's own tokens: [H, own, n].
  static Tensor own_part(Tape& tape, const Tensor& weights, const avey::ContextRows& rows) {
    const int64_t H = weights.dim(0), C = weights.dim(1), n = rows.size(), own = rows.runs[2].count;
    const Tensor part = tape.empty({H, own, n}, weights.dtype());
    tape.run("avey.own_part", {0, 2 * static_cast<double>(part.bytes())}, [&] {
      dispatch(part.dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t row = 0; row < H * own; ++row)
          std::copy_n(weights.data<T>() + (row / own * C + n - own + row % own) * C, n, part.data<T>() + row * n);
      });
    });
    return part;
  }

  /// What is looked at is looked at on the CPU: a tape there, and the way to it.
  struct OnHost {
    Arena arena{Device::cpu()};
    Tape tape{arena, false};
    Tensor operator()(const Tensor& x) { return on_host(arena, x); }
    avey::Ranked operator()(const avey::Ranked& ranked) {
      return {(*this)(ranked.chosen), (*this)(ranked.weights), (*this)(ranked.maxsim)};
    }
  };

  void report_ranker(const avey::Ranked& ranked, Probe& probe) const {
    HeadProbe whole(probe, -1);
    Arena host(Device::cpu());
    if (whole.wants_statistics() && !whole.plans()) {
      const Tensor maxsim = on_host(host, ranked.maxsim);
      std::vector<std::vector<double>> margins;
      for (int64_t b = 0; b < maxsim.dim(0); ++b)
        margins.push_back({avey::ranker_margin({ranked.chosen.slice(b, b + 1), {}, maxsim.slice(b, b + 1)})});
      whole.sequences("margin", "1", margins);
      whole.chose(ranked.chosen.reshape({ranked.chosen.dim(0), 1, ranked.chosen.dim(1), ranked.chosen.dim(2)}));
    }
    if (!whole.wants_maps()) return;
    whole.selects({Selection::Unit::split, s_.split});
    whole.map_of_first(MapKind::maxsim, ranked.maxsim);
    whole.map_of_first(MapKind::chosen, ranked.chosen);
    whole.map_of_first(MapKind::split_weights, ranked.weights);
  }

  static void report_reads(OnHost& host, const avey::ContextLayout& contexts, const avey::Ranked& on_device, int64_t heads,
                           HeadProbe& watch, const avey::ContextWeights& weights) {
    const avey::Ranked ranked = host(on_device);
    const auto map = [&](int64_t b) { return avey::read_map(host.tape, weights, ranked, contexts, heads, b); };
    if (watch.wants_statistics()) {
      watch.entropy(avey::read_entropy(host.tape, weights, ranked, contexts, heads));
      watch.reads(host.tape, {contexts.batch, heads, contexts.tokens}, [&](const Sequences& s) { return map(s.first); });  // one at a time
    }
    if (watch.wants_maps()) watch.map(MapKind::weights, map(0));
  }

  /// Reads are put together on the CPU: a map of a sequence, beside what statistics or the capture make of it and what is `copied` there.
  static void plan_reads(const avey::ContextLayout& contexts, int64_t heads, DType dtype, int64_t copied, HeadProbe& watch) {
    const int64_t T = contexts.tokens;
    watch.needs_memory(copied + heads * T * T * std::max<int64_t>(4, byte_size(dtype)));
    if (watch.wants_maps()) watch.map(MapKind::weights, {heads, T, T}, {});
  }

  ModelShape shape_;
  Settings s_;
  Tensor E_;  // [V, D]
  std::vector<Layer> layers_;
  Norm final_norm_;
};

void check(const ModelShape& shape, const json& values, const std::string& pointer) {
  const Settings s = schema.read(values, pointer);
  const auto fail = [&](const std::string& key, const std::string& rest) {
    throw UsageError(pointer + "/" + key + " is " + values.at(key).dump() + rest);
  };
  if (s.ranker && s.split > shape.sequence_length)
    fail("split", "; expected at most the sequence length, " + std::to_string(shape.sequence_length));
  const int64_t tail = tail_columns(s, shape.width);
  if (tail < 2)
    fail("tail", ", which leaves nothing to contextualize of " + std::to_string(enriched_columns(s, shape.width)) + " features");
  if (s.processor == "contextualizer") {
    if (shape.position != "none")
      fail("position", "; the contextualizer knows positions by its weights, expected \"none\" or processor \"attention\"");
    return;
  }
  if (!s.dynamic) fail("dynamic", ", which only the contextualizer has; processor is \"attention\"");
  if (shape.position == "absolute") fail("position", "; expected none, alibi or rotary in Avey's contexts");
  if (tail / 2 % shape.heads != 0)
    fail("heads", ", which does not divide the " + std::to_string(tail / 2) + " features that attention mixes (half the tail)");
  if (shape.position == "rotary" && tail / 2 / shape.heads % 2 != 0)
    fail("position", ", which needs heads of even width; they are " + std::to_string(tail / 2 / shape.heads) + " wide");
}

std::string looks_ahead(const json& values) {
  const Settings s = schema.read(values, "/architecture");
  if (!s.ranker || s.ranker_query == "causal") return "";
  return "The published ranker compares with all tokens of the current split, so the choice of splits for a token depends on later "
         "tokens of its own split; ranker_query \"causal\" ranks with the split before.";
}

std::string variant(const json& values) {
  const Settings s = schema.read(values, "/architecture"), plain;
  std::string words;
  const auto add = [&](bool differs, const std::string& word) { words += differs ? (words.empty() ? "" : " ") + word : ""; };
  add(!s.ranker, "without ranker");
  add(s.ranker && s.ranker_query == "causal", "causal ranker");
  add(s.ranker && !s.weighting, "without weighting");
  add(s.ranker && s.weighting && s.weight_reference == "first", "weights of the first");
  add(s.ranker && s.mask_padding, "masked padding");
  add(!s.bypass, "without bypass");
  add(s.processor == "attention", "with attention");
  add(!s.dynamic, "static");
  add(s.norm != plain.norm, "layer norm");
  add(s.initialisation != plain.initialisation, "xavier");
  add(s.enricher_activation != plain.enricher_activation, "enricher " + s.enricher_activation);
  add(s.contextualizer_activation != plain.contextualizer_activation, "contextualizer " + s.contextualizer_activation);
  return words;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::whole,
    .id = "avey",
    .title = "Avey",
    .paper = "Hammoud and Acharya, \"Don't Pay Attention\", arXiv:2506.11305, section 2",
    .settings = schema.settings(),
    .defaults = {{"position", "none"}, {"heads", 4}, {"rotary_base", 10000.0}},
    .variant = variant,
    .looks_ahead = looks_ahead,
    .check = check,
    .make_model = [](const ModelShape& shape, const json& values,
                     ParameterMaker& make) { return std::make_unique<Avey>(shape, schema.read(values, "/architecture"), make); },
}};

}  // namespace
}  // namespace saccade
