#pragma once
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/engine/captured_graph.h"
#include "kernels/engine/host_copies.h"
#include "models/evaluation/frozen_batches.h"
#include "models/model.h"

namespace saccade {

/// Mean loss over the targets of S frozen sequences of at most T tokens, in nats per token. With l_st the loss at position t of sequence
/// s, n_s the number of its targets and m_s = Σ_t l_st / n_s:
///   loss           m̄ = Σ_s n_s m_s / Σ_s n_s
///   standard error sqrt(S / (S − 1) · Σ_s n_s² (m_s − m̄)²) / Σ_s n_s   (of a ratio; with n_s = T sqrt(Σ_s (m_s − m̄)² / (S (S − 1))))
/// The sequences are the independent units, for the tokens of one share their context.
struct Evaluation {
  double loss = 0;
  double standard_error = std::numeric_limits<double>::quiet_NaN();  ///< NaN for one sequence
  double bits_per_byte = std::numeric_limits<double>::quiet_NaN();   ///< Σ l_st / ln 2 over the text's bytes; NaN: not known
  std::vector<double> by_position;                                   ///< [≤ T] mean over the sequences that have a target there, 0: none
  std::vector<double> by_sequence;                                   ///< [S] m_s
  std::vector<int64_t> targets;                                      ///< [S] n_s
  std::vector<int64_t> targets_at;                                   ///< [≤ T] sequences with a target at each position
  double accuracy = std::numeric_limits<double>::quiet_NaN();        ///< share of targets that are likeliest; of answers only (FrozenBatch)
  std::vector<bool> right;                                           ///< [S · T] likewise: the target is the first of the likeliest tokens
};

/// Mean loss over positions begin … end-1 of a sequence.
struct PositionLoss {
  int64_t begin = 0, end = 0;
  double loss = 0;  ///< nats per token
};
/// Of positions 0, 1, 2 … 3, 4 … 7 and so on in powers of two, the last bin as long as there are positions. `targets_at`: as in
/// Evaluation; empty: as many everywhere.
std::vector<PositionLoss> loss_by_position(const std::vector<double>& by_position, const std::vector<int64_t>& targets_at = {});

/// The standard error of the mean of independent numbers, each a mean of `weights` of its own (empty: all of as many), as in Evaluation;
/// NaN for fewer than two.
double standard_error(std::span<const double> values, std::span<const int64_t> weights = {});

/// Continuations of contexts that are read once. Rows may end in padding, whose targets are kNoTarget.
struct Continuations {
  int64_t context_length = 0, length = 0;
  std::vector<int32_t> contexts;         ///< [contexts · context_length] tokens
  std::vector<int32_t> context_of;       ///< [rows]
  std::vector<int32_t> tokens, targets;  ///< [rows · length]: what follows the context, and what follows each token
};
/// What a pass says of every target.
struct TokenScores {
  std::vector<double> losses;  ///< [sequences · length] nats
  std::vector<bool> right;     ///< likewise: the target is the first of the likeliest tokens; empty unless asked for
};

/// Forward passes over frozen sequences, in pieces; on the weights alone (InferenceModel) as well as on a model in training. On a
/// GPU the pieces of a shape are captured as a graph and replayed (cuda::CapturedGraph).
class EvaluationPass {
 public:
  /// `prepare` makes a tape compute as the model's own does (mixed precision). A piece has as many sequences as `piece_tokens`
  /// hold, at least one; the training micro-batch is a size that fits.
  EvaluationPass(const Model& model, Arena& arena, std::function<void(Tape&)> prepare, int64_t piece_tokens);

  /// No gradient, no effect on training; `progress` hears how many sequences are done. Throws DataError for a batch without tokens,
  /// of other sizes than it says, or with tokens outside the vocabulary. Of answers logits of so many positions are made as there can be.
  Evaluation evaluate(const FrozenBatch& batch, const std::function<void(int64_t sequences)>& progress = {});
  /// The same of several, one after the other, those of one shape in common pieces; a GPU goes on to the next piece while the losses of
  /// those before it are added up. `progress` counts the sequences of all.
  std::vector<Evaluation> evaluate(std::span<const FrozenBatch> batches, const std::function<void(int64_t sequences)>& progress = {});

  /// Of one piece, whose rows may end in padding: 0 nats and never right where the target is kNoTarget. `right`: that is asked for, too.
  TokenScores token_scores(const int32_t* tokens, const int32_t* targets, int64_t sequences, int64_t length, bool right);
  /// The same of continuations, by decoding: the state behind a context is copied for each of them. Throws UsageError where the model does
  /// not decode (`decodes`).
  TokenScores continuation_scores(const Continuations& batch, bool right);
  /// Whether the model decodes sequences of `length` tokens on this device.
  bool decodes(int64_t length) const;
  /// Sequences of this length in a piece.
  int64_t piece_sequences(int64_t length) const;

  /// What a piece of sequences of this length costs (device `plan`), by FrozenBatch::most_answers.
  struct Planned {
    int64_t sequences = 0;  ///< in a piece
    Cost cost;
    std::string refusal;  ///< Tape::refusal
  };
  Planned plan(int64_t length, int64_t most_answers = 0);

 private:
  /// Sequences, length, whether the likeliest tokens are told, most targets, and what else lives in the arena: where a piece's tensors lie
  /// depends on nothing else.
  using Key = std::tuple<int64_t, int64_t, bool, int64_t, int64_t>;

  /// What a piece tells of every position. On the CPU it is there when `computed` is reached.
  struct Told {
    Tensor losses;     ///< f64 [sequences · length] nats of the targets
    Tensor likeliest;  ///< i32, the first of the likeliest tokens, −1 without a target; empty unless asked for
    HostCopies::Mark computed;
  };
  /// Logits of most_targets positions are made, of those with a target (0: of all).
  Told begin_piece(const int32_t* tokens, const int32_t* targets, int64_t sequences, int64_t length, bool likeliest, int64_t most_targets);
  Told room_for(int64_t positions, bool likeliest);
  void forward(Tape& tape, const Tensor& tokens, const Tensor& targets, const Told& told, int64_t most_targets) const;

  const Model& model_;
  Arena& arena_;
  std::function<void(Tape&)> prepare_;
  int64_t piece_tokens_;
  std::map<Key, cuda::CapturedGraph> graphs_;
  std::optional<HostCopies> copies_;  ///< of losses, where they are computed on a GPU
};

/// Throws DataError unless a batch has tokens, as many as it says, all below `vocabulary`, and targets in every sequence, which come first
/// unless they are answers, of which there are no more than most_answers.
void check_batch(const FrozenBatch& batch, int64_t vocabulary);

}  // namespace saccade
