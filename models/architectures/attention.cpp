// Softmax attention with every score variant of "base capabilities" (arXiv:2505.18522) section 3 as a setting.
//
//   s_tj = scale · q_t · k_j [− slope_h (t − j)],  t − W < j ≤ t      p_t = softmax_j s_tj      o_t = Σ_j p_tj v_j
//
// Relation: the key, or query and key, can be trained tables C[t] that know positions only (figure 3e).
#include "kernels/ops/attention/attention.h"

#include <algorithm>

#include "kernels/ops/attention/mask_source.h"
#include "models/architectures/registry.h"
#include "models/layers/head_probe.h"
#include "models/layers/score_heads.h"

namespace saccade {
namespace {

constexpr int64_t kWholeSequence = 1 << 20;  ///< as long as a sequence can be: no window

struct Settings : ScoreSettings {
  Settings() : ScoreSettings("none") {}
  int64_t window = kWholeSequence;
  std::string relation = "query-key";
};

const Schema<Settings> schema{
    field<Settings>("window", &Settings::window, {0, static_cast<double>(kWholeSequence)},
                    "Attention window in tokens, the query's own included; 0, the sequence length or more is full attention.",
                    "arXiv:2505.18522, section 3.2.1, figure 3d"),
    choice_field<Settings>("relation", &Settings::relation, {"query-key", "constant-keys", "constant-both"},
                           "What scores compare: constant keys (and queries) are trained tables of the position.",
                           "arXiv:2505.18522, section 3.2.2, figure 3e"),
    qk_norm_field<Settings>(),
    temperature_field<Settings>(),
};

ScoreHeads::Relation parse_relation(const std::string& name) {
  if (name == "constant-keys") return ScoreHeads::Relation::constant_keys;
  return name == "constant-both" ? ScoreHeads::Relation::constant_both : ScoreHeads::Relation::query_key;
}

class AttentionMixer : public Mixer {
 public:
  AttentionMixer(const ModelShape& shape, const Settings& settings, ParameterMaker& make, int64_t layer)
      : heads_(shape, settings, make, layer, parse_relation(settings.relation)), length_(shape.sequence_length), window_(settings.window) {}

  Tensor forward(Tape& tape, const Tensor& x, Pass& pass) const override {
    const ScoreOptions score = score_for(x.dim(1));
    const auto [heads, a] = heads_.attend(tape, x, score, pass);
    if (const auto masked = pass.take(heads_.layer(), Counterfactual::Kind::mask, heads.v.dim(2)))
      mask_source(tape, heads.q, heads.k, heads.v, score, {masked->head, masked->query, masked->source}, a.o);
    if (pass.probe) report(tape, heads.q, heads.k, a, score, *pass.probe);
    return heads_.output(tape, a.o, pass);
  }

  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
    return std::make_unique<HeadCache>(heads_.begin(arena, dtype, batch, capacity));
  }

  Tensor extend(Tape& tape, const Tensor& x, Pass& pass, LayerState& state) const override {
    HeadCache& cache = dynamic_cast<HeadCache&>(state);
    const auto [q, k, v] = heads_.extend(tape, x, pass, cache);
    const bool prompt = pass.position.first == 0 && !pass.last_only;
    const ScoreOptions score = score_for(prompt ? x.dim(1) : cache.v.dim(1));
    const Tensor o =
        prompt ? attention(tape, q, k, v, score).o : cached_attention(tape, q, cache.k, cache.v, score, pass.queries(x.dim(1)));
    return heads_.output(tape, o, pass);
  }

  bool norms_input() const override { return true; }

  double state_values_per_token() const override {
    const double seen = static_cast<double>(std::min(window_, length_)) / static_cast<double>(length_);
    return seen * static_cast<double>(heads_.kept_per_token());
  }

 private:
  /// For sequences of at most `length` tokens.
  ScoreOptions score_for(int64_t length) const {
    ScoreOptions score = heads_.score();
    score.window = window_ < length ? window_ : 0;
    return score;
  }

  void report(Tape& tape, const Tensor& q, const Tensor& k, const Attention& a, const ScoreOptions& score, Probe& probe) const {
    HeadProbe(probe, heads_.layer()).weights(tape, a.entropy, [&](const Sequences& s) { return attention_weights(tape, q, k, score, s); });
  }

  ScoreHeads heads_;
  int64_t length_, window_;
};

std::string variant(const nlohmann::json& values) {
  const Settings s = schema.read(values, "");
  std::string words;
  if (s.window < kWholeSequence) add_words(words, "window " + std::to_string(s.window));
  if (s.relation != "query-key") add_words(words, s.relation);
  add_words(words, score_variant(s, Settings()));
  return words;
}

/// 0 is another way to write full attention.
void complete(nlohmann::json& values, const ModelShape&, const std::string&) {
  if (values.at("window") == 0) values["window"] = kWholeSequence;
}

const RegisterArchitecture entry{{
    .kind = Architecture::Kind::mixer,
    .id = "attention",
    .title = "Attention",
    .paper = "Vaswani et al. 2017, arXiv:1706.03762; variants: arXiv:2505.18522, section 3",
    .settings = schema.settings(),
    .takes_block_inputs = true,
    .variant = variant,
    .complete = complete,
    .make_mixer = maker_of<AttentionMixer>(schema),
}};

}  // namespace
}  // namespace saccade
