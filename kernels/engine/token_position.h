#pragma once
#include "kernels/engine/tensor.h"

namespace saccade {

/// Position of the first of some tokens in a sequence (incremental decoding, prefill): the tokens seen before it. Sequences side by side
/// have one position, or each its own.
struct TokenPosition {
  int64_t first = 0;  ///< the greatest one where each sequence has its own
  /// i32 [1] with the same number, or [B] with a position for each of B > 1 sequences. Kernels on a GPU read this one when it is there, so
  /// that one captured graph (cuda::CapturedGraph) serves every position; launch sizes do not depend on it. On the CPU [1] is not read.
  Tensor on_device = {};

  bool differs() const { return on_device && on_device.size() > 1; }
  /// Of sequence b; on the CPU.
  int64_t of(int64_t b) const { return differs() ? on_device.data<int32_t>()[b] : first; }
};

/// f(first sequence, number of sequences, their position) on the CPU: once for all of `batch` sequences, or where positions differ for
/// each.
template <class F>
void for_positions(const TokenPosition& position, int64_t batch, F&& f) {
  if (!position.differs()) return f(int64_t{0}, batch, position.first);
  for (int64_t b = 0; b < batch; ++b) f(b, int64_t{1}, position.of(b));
}
/// Sequences b … b + n − 1 of x [B, …], sharing memory; all of x where it stands for every sequence (B = 1), empty where x is.
inline Tensor sequences_of(const Tensor& x, int64_t b, int64_t n) { return x && x.dim(0) > 1 ? x.slice(b, b + n) : x; }

}  // namespace saccade
