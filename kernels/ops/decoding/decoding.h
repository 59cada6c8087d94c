#pragma once
#include "kernels/engine/token_position.h"
#include "kernels/ops/attention/attention.h"

namespace saccade {

/// Incremental decoding and prefill with a KV cache (arXiv:1911.02150, section 2.4): attention of the n newest tokens, whose queries stand
/// at positions t = first … first + n − 1, first = position.first.
/// q [B or 1, n, H, d]   k [B or 1, capacity, H, d] and v [B, capacity, H, d] hold the keys and values of all tokens so far, the new ones
/// included; all of one dtype. Sequences may each have a position of their own (TokenPosition). Nothing is saved for backward.
/// Throws std::invalid_argument where a shape differs from these or first + n > capacity; DeviceError on CUDA for d above 256.

/// cache[:, first … first + n − 1] = rows   rows [B, n, …], cache [B or 1, capacity, …] of one dtype; into a cache that stands for all
/// sequences they write the same. Throws std::invalid_argument as above.
void append_rows(Tape& tape, const Tensor& rows, const Tensor& cache, const TokenPosition& position);
/// to_b = from_a, a = index_b: of every sequence the first n elements. from [A, …], to [B, …] of one dtype, with as many elements, n or
/// more, in a sequence; index i32 [B]. Where one `to` stands for all sequences, so does one `from`. Throws std::invalid_argument as above;
/// on the CPU std::logic_error for an index outside 0 … A − 1 (CUDA does not check).
void copy_sequences(Tape& tape, const Tensor& from, const Tensor& index, const Tensor& to, int64_t n);
/// The counter that TokenPosition::on_device names: i32 [1], zero, on a GPU (and in its plan); empty elsewhere.
Tensor position_on_device(Arena& arena);
/// position.on_device += n where there is one: the sequences have n tokens more. Throws nothing of its own.
void advance(Tape& tape, const TokenPosition& position, int64_t n);

/// o_t = Σ_{j ≤ t} softmax_j(s_tj) v_j, the rows that `attention` gives for these queries: [B, n, H, d] of v's dtype.
Tensor cached_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                        const TokenPosition& position);

struct CachedElement {
  Tensor o;         ///< [B, n, H, d] of v's dtype
  Tensor selected;  ///< i32 [B, H, n]
};
/// Top-1 Element Selection (arXiv:2505.18522, section 4.1): o_t = v_{a(t)}, selected a(t) = argmax_{j ≤ t} s_tj, ties to the smaller j.
CachedElement cached_top1_element(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                                  const TokenPosition& position);

}  // namespace saccade
