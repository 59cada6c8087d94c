#pragma once
#include "kernels/attention.h"
#include "kernels/token_position.h"

namespace saccade {

/// Attention of the n newest tokens of sequences in progress (specification 1.3, 2), queries at positions first … first + n − 1.
/// q [B or 1, n, H, d]; k [B or 1, capacity, H, d] and v [B, capacity, H, d] hold the keys and values of all tokens so far, the new
/// ones included. Nothing is kept for backward.

/// The cache's rows first … first + n − 1 become `rows`: rows [B, n, …], cache [B, capacity, …].
void append_rows(Tape& tape, const Tensor& rows, const Tensor& cache, const TokenPosition& position);
/// The sequences have n tokens more: position.on_device += n, where there is one.
void advance(Tape& tape, const TokenPosition& position, int64_t n);

/// Softmax attention: the rows that `attention` gives for these queries, [B, n, H, d].
Tensor cached_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                        const TokenPosition& position);

struct CachedElement {
  Tensor o;         ///< [B, n, H, d]
  Tensor selected;  ///< i32 [B, H, n]
};
/// Top-1 Element Selection: v of the key with the greatest score, ties to the smaller position.
CachedElement cached_top1_element(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                                  const TokenPosition& position);

}  // namespace saccade
