#pragma once
#include <algorithm>

#include "kernels/engine/tape.h"

namespace saccade::cpu {

/// Gradients of parameters are summed per task first: d (+)= Σ over the rows of parts [tasks, n], in order. Does nothing where d is empty.
template <class T>
void sum_parts(const Tensor& parts, const GradTarget& d) {
  if (!d) return;
  const int64_t n = d.tensor.size(), tasks = parts.size() / n;
  const T* part = parts.data<T>();
  T* sum = d.tensor.data<T>();
  if (!d.add) std::fill_n(sum, n, T(0));
  for (int64_t task = 0; task < tasks; ++task)
    for (int64_t i = 0; i < n; ++i) sum[i] += part[task * n + i];
}

/// The same for the columns column … column + size(d) − 1 of parts [tasks, n].
template <class T>
void sum_parts(const Tensor& parts, int64_t column, const GradTarget& d) {
  if (!d) return;
  const int64_t n = d.tensor.size(), row = parts.dim(-1), tasks = parts.size() / row;
  const T* part = parts.data<T>() + column;
  T* sum = d.tensor.data<T>();
  if (!d.add) std::fill_n(sum, n, T(0));
  for (int64_t task = 0; task < tasks; ++task)
    for (int64_t i = 0; i < n; ++i) sum[i] += part[task * row + i];
}

}  // namespace saccade::cpu
