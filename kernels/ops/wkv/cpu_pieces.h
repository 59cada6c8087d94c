#pragma once
/// Shared by the CPU versions of the WKV recurrences: sequences are processed in blocks of kPiece tokens, whose rows are copied side by
/// side and padded with zeros to whole vectors.
#include <algorithm>

#include "kernels/cpu/lanes.h"
#include "kernels/ops/attention/head_shape.h"

namespace saccade::cpu {

constexpr int64_t kPiece = 16;   ///< tokens
constexpr int64_t kColumns = 8;  ///< columns of the state in registers in a backward step

/// Head width rounded up to whole pairs of vectors.
template <class T>
constexpr int64_t padded_width(int64_t width) {
  return (width + 2 * kLanes<T> - 1) / (2 * kLanes<T>)*(2 * kLanes<T>);
}

/// Rows of one head of x [B, T, H, N], tokens first … first+count−1, into rows of `padded`.
template <class T>
void copy_in(const HeadShape& shape, const T* head, int64_t first, int64_t count, int64_t padded, T* rows) {
  for (int64_t t = 0; t < count; ++t, rows += padded) {
    std::copy_n(head + (first + t) * shape.stride(), shape.width, rows);
    std::fill(rows + shape.width, rows + padded, T(0));
  }
}

/// The reverse copy; adds or writes.
template <class T>
void copy_out(const HeadShape& shape, const T* rows, int64_t first, int64_t count, int64_t padded, bool add, T* head) {
  for (int64_t t = 0; t < count; ++t, rows += padded) {
    T* to = head + (first + t) * shape.stride();
    for (int64_t c = 0; c < shape.width; ++c) to[c] = add ? to[c] + rows[c] : rows[c];
  }
}

/// Copies a state [N, N] into rows of `padded`, transposed or not; zeros where state is null.
template <class T>
void copy_state_in(const T* state, int64_t width, int64_t padded, bool transposed, T* rows) {
  std::fill_n(rows, padded * padded, T(0));
  for (int64_t i = 0; state && i < width; ++i)
    for (int64_t j = 0; j < width; ++j) rows[i * padded + j] = transposed ? state[j * width + i] : state[i * width + j];
}
template <class T>
void copy_state_out(const T* rows, int64_t width, int64_t padded, bool transposed, bool add, T* state) {
  for (int64_t i = 0; i < width; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const T value = transposed ? rows[j * padded + i] : rows[i * padded + j];
      state[i * width + j] = add ? state[i * width + j] + value : value;
    }
}

/// State of head h of sequence b in [B, H, N, N]; null for an empty tensor.
template <class T>
T* head_state(const HeadShape& shape, const Tensor& state, int64_t b, int64_t h) {
  return state ? state.data<T>() + (b * shape.heads + h) * shape.width * shape.width : nullptr;
}

/// Allocates consecutive parts of one block of memory.
template <class T>
struct Carve {
  T* next;
  T* take(int64_t size) {
    T* part = next;
    next += size;
    return part;
  }
};

}  // namespace saccade::cpu
