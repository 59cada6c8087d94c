#pragma once
#include "kernels/ops/avey/ranker.h"

namespace saccade::avey {

/// Incremental decoding (arXiv:2506.11305, section 2): the context of the last split of sequences in progress. On the CPU only.
/// Throws nothing of its own; shapes are those of the model that calls.

/// Rows of unit length of x [B, n, D], in x's shape and dtype:
///   y = x / (|x| + 1e-8)
Tensor unit_rows(Tape& tape, const Tensor& x);

/// scores[b, p] += Σ_{a = from}^{to − 1} max_{c in split p} cos(x_a, x_c) for the complete splits p < candidates of S tokens: a split's
/// MaxSim grows with the tokens that ask. units [B, capacity, D] of unit_rows, scores [B, N] of the same dtype.
void add_maxsim(Tape& tape, const Tensor& units, int64_t split, int64_t candidates, int64_t from, int64_t to, const Tensor& scores);

/// What split i chooses by scores [B, N] of the splits before it: `rank` for one split. chosen i32 and weights [B, k].
Ranked rank_split(Tape& tape, const Tensor& scores, int64_t i, const RankerOptions& options);

/// The context of split i as rows [B, zeros + S · chosen + own, D]: zeros, w_p X_p of the chosen splits, rows i S … of x [B, capacity, D].
/// `ranked` as rank_split gives it, with `count` splits chosen; none: empty tensors.
struct SplitContext {
  int64_t zeros = 0, split = 64, count = 0, first_own = 0, own = 0;
  int64_t rows() const { return zeros + split * count + own; }
};
Tensor split_context(Tape& tape, const Tensor& x, const Ranked& ranked, const SplitContext& context);

/// The last n rows of every sequence of x [B, T, D]: [B, n, D].
Tensor last_rows(Tape& tape, const Tensor& x, int64_t n);

}  // namespace saccade::avey
