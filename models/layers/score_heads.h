#pragma once
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/head_projection/head_projection.h"
#include "models/layers/head_cache.h"
#include "models/layers/time_mix.h"
#include "models/mixer.h"
#include "models/settings.h"

namespace saccade {

/// How a query and a key become a score (arXiv:2505.18522, section 3), the same for every mixer that has one.
struct ScoreSettings {
  explicit ScoreSettings(std::string norm) : qk_norm(std::move(norm)) {}
  std::string qk_norm;
  double temperature = 1;
};

/// "qk-norm l2 temperature 0.5": what differs from the usual, for titles.
std::string score_variant(const ScoreSettings& settings, const ScoreSettings& usual);

/// Queries, keys and values of H heads, normed and turned, ready to be scored; and the projection back.
///
/// q = rope(norm(W_q x)), k = rope(norm(W_k x)), v = W_v x;   s_tj = scale · q_t · k_j [− slope_h (t − j)]
/// scale = 1 / (sqrt(d) τ), for unit vectors (l2) 1 / τ. A block may give q, k and v inputs of their own and gate the output (TimeMix).
class ScoreHeads {
 public:
  /// Which of the two sides of the score come from the text: the others are trained tables C[t] in R^{Tmax x H x d}, the
  /// same for every sequence. Both constant: the factorised random synthesizer.
  enum class Relation { query_key, constant_keys, constant_both };

  /// Parameters layerN.query, .key (or .query_table, .key_table), .value, .output [D, D], their biases where the block has
  /// them, and .query_gain, .key_gain [d] for rms.
  ScoreHeads(const ModelShape& shape, const ScoreSettings& settings, ParameterMaker& make, int64_t layer,
             Relation relation = Relation::query_key);

  struct Heads {
    Tensor q, k, v;  ///< [B, T, H, d]; a constant q or k is [1, T, H, d]
  };
  /// x [B, T, D] from pass.position on; before [B, D]: the token in front of it where tokens are shifted, empty at the start.
  Heads operator()(Tape& tape, const Tensor& x, Pass& pass, const Tensor& before = {}) const;
  /// With the attention that follows, from position 0 on; `score` as score() but for the window.
  AttendedHeads attend(Tape& tape, const Tensor& x, const ScoreOptions& score, Pass& pass) const;
  /// The next rows of sequences in progress, x normed where the pass leaves that to it (Pass::input_norm), whose keys and values go to the
  /// cache; of single tokens behind others they may be there alone. With pass.last_only x is [1, n, D] and there is a query for its last
  /// row only, q [1, 1, H, d].
  Heads extend(Tape& tape, const Tensor& x, Pass& pass, HeadCache& cache) const;
  /// o [B, T, H, d] → W_o o, [B, T, D], gated where the pass says, plus its residual, which is taken.
  Tensor output(Tape& tape, const Tensor& o, Pass& pass) const;

  /// An empty cache of what they keep of every token.
  HeadCache begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const;

  const ScoreOptions& score() const { return score_; }  ///< window 0: the mixer's business
  int64_t kept_per_token() const;                       ///< numbers decoding keeps of a token: its key and its value
  int64_t layer() const { return layer_; }

 private:
  struct Projection {
    Tensor weight, bias;
  };
  Projection projection(ParameterMaker& make, const std::string& name, double deviation) const;
  Tensor last_query(Tape& tape, const Tensor& x, const TokenPosition& position) const;
  Heads with_last_query(Tape& tape, const Tensor& x, const TokenPosition& position) const;
  bool from_one_input() const { return relation_ == Relation::query_key && !shape_.biases && !time_mix_; }
  std::vector<Tensor> project(Tape& tape, const Tensor& x, const std::vector<Projection>& all) const;
  std::vector<Tensor> project_all(Tape& tape, const Tensor& x, Pass& pass, const Tensor& before) const;
  Tensor side(Tape& tape, const Tensor& table, const Tensor& projected, int64_t length, const TokenPosition& position) const;
  Tensor constant(Tape& tape, const Tensor& table, int64_t length, const TokenPosition& position) const;
  Tensor prepare(Tape& tape, const Tensor& heads, const Tensor& norm_weight, const TokenPosition& position) const;
  HeadOptions options(const TokenPosition& position) const;
  HeadProjection head_projection(const TokenPosition& position) const;

  ModelShape shape_;
  ScoreSettings settings_;
  int64_t layer_;
  Relation relation_;
  ScoreOptions score_;
  TimeMix time_mix_;
  Projection query_, key_, value_, output_;
  Tensor query_table_, key_table_, query_norm_weight_, key_norm_weight_;
};

/// Fields "qk_norm" and "temperature" of a mixer's own struct derived from ScoreSettings.
template <class S>
Field<S> qk_norm_field() {
  return choice_field<S>("qk_norm", &S::qk_norm, {"none", "l2", "rms"},
                         "Norm of queries and keys: l2 makes the score a cosine, rms has a trained weight.",
                         "arXiv:2505.18522, sections 3.2.3 and 4.1");
}
template <class S>
Field<S> temperature_field() {
  return field<S>("temperature", &S::temperature, {1e-4, 1e4}, "Divides the score; below 1 sharpens.",
                  "arXiv:2505.18522, section 3.2.3, figures 3f and 4");
}

}  // namespace saccade
