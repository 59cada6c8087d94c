#pragma once
/// Where the rows of Avey's contexts stand, on the device.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/avey/layout.h"

namespace saccade::cuda {

/// A ContextLayout in 32 bits: where rows are moved or contexts are short, divisions of 64 bits take longer than all else.
struct Layout32 {
  int batch, tokens, split, top_k;
  bool padding;

  Layout32(const avey::ContextLayout& l)  // NOLINT: the same, smaller
      : batch(static_cast<int>(l.batch)),
        tokens(static_cast<int>(l.tokens)),
        split(static_cast<int>(l.split)),
        top_k(static_cast<int>(l.top_k)),
        padding(l.padding),
        splits_(static_cast<int>(l.splits())),
        chosen_rows_(static_cast<int>(l.chosen_rows())) {}

  __host__ __device__ int splits() const { return splits_; }
  __host__ __device__ int context_width() const { return split * (top_k + 1); }
  __host__ __device__ int chosen_count(int i) const { return i < top_k ? i : top_k; }
  __host__ __device__ int own_count(int i) const { return tokens - i * split < split ? tokens - i * split : split; }
  __host__ __device__ int padding_before(int i) const { return split * (top_k - chosen_count(i)); }
  __host__ __device__ int pad_rows() const { return padding ? split * top_k : 0; }
  __host__ __device__ int own_rows() const { return batch * tokens; }
  __host__ __device__ int first_own_row() const { return pad_rows() + batch * chosen_rows_; }
  __host__ __device__ int chosen_row(int b, int i) const {
    const int j = i <= top_k ? i : top_k + 1;
    return pad_rows() + b * chosen_rows_ + split * (j * (j - 1) / 2 + (i - j) * top_k);
  }
  __host__ __device__ int own_row(int b, int i) const { return first_own_row() + b * tokens + i * split; }

 private:
  int splits_, chosen_rows_;
};

/// Row of the matrix at position p of context (b, i), positions counted as those of A; −1: none (masked padding, or a token
/// behind the last one).
template <class Layout>
__device__ __forceinline__ int64_t row_at(const Layout& l, decltype(l.split) b, decltype(l.split) i, decltype(l.split) p) {
  const auto before = l.padding_before(i), own = l.split * l.top_k;
  if (p < before) return l.padding ? p : -1;
  if (p < own) return l.chosen_row(b, i) + p - before;
  return p - own < l.own_count(i) ? l.own_row(b, i) + p - own : -1;
}

/// By a warp: calls f(entry) in every lane for each entry of list[first … last) that is `wanted`, in ascending order.
template <class F>
__device__ __forceinline__ void each_entry(const int32_t* list, int64_t first, int64_t last, int32_t wanted, F&& f) {
  for (int64_t base = first; base < last; base += 32) {
    const int64_t e = base + threadIdx.x % 32;
    for (unsigned hits = __ballot_sync(0xffffffffu, e < last && list[e] == wanted); hits; hits &= hits - 1)
      f(base + __ffs(static_cast<int>(hits)) - 1);
  }
}

/// Warps of a block that gather a row of D floats each in shared memory.
inline int gathering_warps(int64_t D) { return static_cast<int>(std::clamp<int64_t>(12288 / D, 1, 4)); }

}  // namespace saccade::cuda
