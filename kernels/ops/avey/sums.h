#pragma once
#include "kernels/engine/tape.h"

namespace saccade::avey {

/// d_weight [out, in] = (or +=) d_yᵀ x, the sum over many rows. Narrow products are cut along the rows as well, into parts
/// that depend on the shape only and are summed in order: all threads work, and the result does not depend on their number.
class WeightGradient {
 public:
  /// Takes the memory of the parts from the tape.
  WeightGradient(Tape& tape, int64_t rows, int64_t out, int64_t in, DType dtype);

  /// d_y [rows, out], x [rows, in] contiguous; d_weight with row stride `stride`. Call inside a run.
  template <class T>
  void operator()(const T* d_y, const T* x, T* d_weight, int64_t stride, bool add) const;

 private:
  int64_t rows_, out_, in_, cuts_;
  Tensor parts_;  ///< [cuts, out, in] when there is more than one
};

/// d_bias [columns] = (or +=) Σ rows of d_y [rows, columns], in a fixed order.
template <class T>
void column_sums(const T* d_y, int64_t rows, int64_t columns, T* d_bias, bool add);

}  // namespace saccade::avey
