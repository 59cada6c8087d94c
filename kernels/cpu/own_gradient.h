#pragma once
#include "kernels/engine/parallel.h"
#include "kernels/engine/tape.h"

namespace saccade {

/// Memory for a gradient that a kernel overwrites: the target itself where that is to be written, else a buffer that `deliver` adds to the
/// target. Empty for an empty x.
struct OwnGradient {
  GradTarget target;
  Tensor tensor;

  OwnGradient(Tape& t, const Tensor& x) : target(t.grad_target(x)) {
    if (x) tensor = target && !target.add ? target.tensor : t.empty(x.shape(), x.dtype());
  }
  template <class T>
  void deliver() const {
    if (!target || !target.add) return;
    const T* from = tensor.data<T>();
    T* to = target.tensor.data<T>();
    parallel_ranges(tensor.size(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  }
};

}  // namespace saccade
