#pragma once
#include "kernels/engine/token_position.h"
#include "kernels/ops/avey/ranker.h"

namespace saccade::avey {

/// Incremental decoding (arXiv:2506.11305, section 2): the context of the last split of sequences in progress. Nothing is saved for
/// backward. On CUDA, kernels read positions there where TokenPosition names a counter, and launch sizes do not depend on them: a captured
/// step serves every position. Throws std::invalid_argument where a shape differs from what is said here.

/// Tokens of sequences in progress, all of one split: `count` of them, the first of sequence b at position.of(b) + from.
struct SplitTokens {
  TokenPosition position = {};
  int64_t from = 0, count = 1;

  int64_t first(int64_t b) const { return position.of(b) + from; }  ///< on the CPU
  int64_t last(int64_t b) const { return first(b) + count - 1; }    ///< on the CPU
  int64_t greatest_last() const { return position.first + from + count - 1; }
};

/// 1 / (|x| + 1e-8) of rows x [B, n, D]: [B, n] of accumulation_dtype(x).
Tensor inverse_lengths(Tape& tape, const Tensor& x);

/// Scores [B, N] of the splits p < i, i being the split of S tokens that `tokens` belong to:
///   scores_p = Σ_a max_{c in split p} cos(x_a, x_c)
/// With RankerQuery::split the tokens of split i ask, as far as they are known: scores grow by those of `tokens`, and begin anew with the
/// first of a split. With RankerQuery::causal all tokens of split i − 1 ask: done with the first token of split i. Scores of other splits
/// are left as they are. x [B, capacity, D] holds all tokens so far, inverse [B, capacity] their inverse_lengths; scores and inverse of
/// accumulation_dtype(x). Sums are in the order of the tokens.
void add_maxsim(Tape& tape, const Tensor& x, const Tensor& inverse, const RankerOptions& options, const SplitTokens& tokens,
                const Tensor& scores);

/// What the split of `tokens` chooses by scores [B, N] of the splits before it: `rank` for one split. chosen i32 and weights [B, k].
Ranked rank_split(Tape& tape, const Tensor& scores, const RankerOptions& options, const SplitTokens& tokens);

/// The context of a split as rows, of which some may stay over at the end:
///   [zeros: S · top_k − S · count rows, none where `packed` | w_p X_p of the `count` chosen splits | X_i as far as it is known | zeros]
/// With i the split of `tokens`, count = min(i, top_k); top_k 0: the own tokens only.
struct SplitContext {
  int64_t split = 64, top_k = 7;
  bool packed = false;
  int64_t rows = 512;  ///< of a sequence; at least as many as there are before the last zeros
  SplitTokens tokens = {};
};
/// [B, rows, D] of x [B, capacity, D]. `ranked` as rank_split gives it; empty tensors with top_k 0.
Tensor split_context(Tape& tape, const Tensor& x, const Ranked& ranked, const SplitContext& context);
/// The zeros in front again where other numbers stand now: Z [B · rows, r] of a context that is not packed.
void clear_padding(Tape& tape, const Tensor& Z, const SplitContext& context);
/// Of rows [B, rows, D] of contexts those of the last n of `tokens`: [B, n, D].
Tensor rows_of_last(Tape& tape, const Tensor& rows, const SplitContext& context, int64_t n);

}  // namespace saccade::avey
