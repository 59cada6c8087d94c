#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/ops/attention/alibi.h"
#include "kernels/ops/attention/attention.h"

namespace saccade {

/// Sizes of queries, keys and values [B, T, H, d], and where the rows of one head begin in memory.
struct HeadShape {
  int64_t batch, length, heads, width;

  /// Elements between consecutive positions of one head.
  int64_t stride() const { return heads * width; }
  int64_t sequences() const { return batch * heads; }

  /// Row 0 of head h of sequence b in x [B or 1, T, H, d]; batch 1 is shared by all sequences.
  template <class T>
  T* rows(const Tensor& x, int64_t b, int64_t h) const {
    return x.data<T>() + ((x.dim(0) == 1 ? 0 : b) * length * heads + h) * width;
  }
  /// Element 0 of head h of sequence b in x [B, H, T]; null for an empty tensor.
  template <class T>
  T* of_head(const Tensor& x, int64_t b, int64_t h) const {
    return x ? x.data<T>() + (b * heads + h) * length : nullptr;
  }

  /// Tape::note_tensor_cores of the heads' width.
  void note_width(Tape& tape, const char* op, DType type) const;
};

/// Checks the shapes and dtypes of an attention-type op: v [B, T, H, d], q and k the same or with B = 1, all of one dtype. Throws
/// UsageError where they are not; `op` names the op in it.
HeadShape head_shape(const char* op, const Tensor& q, const Tensor& k, const Tensor& v);

/// Throws UsageError for a negative window.
void check_window(const char* op, const ScoreOptions& options);

/// ALiBi slope of head h (0-based) as the options say (attention/alibi.h), or 0 without it.
inline double alibi_slope(const ScoreOptions& options, int64_t h, int64_t heads) {
  if (!options.alibi) return 0.0;
  const AlibiSlope slope = alibi_slope_of(h, heads, options.released_alibi);
  return std::exp2(-8.0 * static_cast<double>(slope.numerator) / static_cast<double>(slope.denominator));
}

/// Number of (query, key) pairs with j <= t inside the window.
inline double visible_pairs(int64_t length, int64_t window) {
  const double full = static_cast<double>(window > 0 ? std::min(window, length) : length);
  return full * (full + 1) / 2 + (static_cast<double>(length) - full) * full;
}

namespace cpu {

/// Workspace of one thread, reused between tasks; grows to the largest request. Each `Purpose` has its own. Throws std::bad_alloc.
template <class T, int Purpose>
T* scratch(int64_t size) {
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<T, Free> memory;
  thread_local int64_t capacity = 0;
  if (capacity < size) {
    const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
    memory.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
    if (!memory) throw std::bad_alloc();
    capacity = size;
  }
  return memory.get();
}

}  // namespace cpu
}  // namespace saccade
