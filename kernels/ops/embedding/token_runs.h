#pragma once
/// For loops over tokens that write several gradients at once.
#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/tape.h"

namespace saccade::cpu {

/// Target of a gradient; `to` is null where it is not wanted.
template <class T>
struct Into {
  T* to;
  bool add;
};

/// Elements computed at a time into local arrays: the compiler vectorises short loops over few pointers, not loops over many pointers that
/// may alias.
constexpr int64_t kRun = 64;

/// d[at …] (+)= values, n of them.
template <class T>
SACCADE_INLINE void put(const Into<T>& d, int64_t at, const T* values, int64_t n) {
  if (!d.to) return;
  T* to = d.to + at;
  if (d.add)
    for (int64_t i = 0; i < n; ++i) to[i] += values[i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = values[i];
}

/// Calls body(first, count) for runs of at most kRun of n elements.
template <class Body>
SACCADE_INLINE void for_runs(int64_t n, Body body) {
  for (int64_t at = 0; at < n; at += kRun) body(at, at + kRun < n ? kRun : n - at);
}

template <class T>
Into<T> into(const GradTarget& target, int64_t at) {
  return {target ? target.tensor.data<T>() + at : nullptr, target.add};
}

constexpr int64_t kTokensATask = 64;
inline int64_t token_tasks(int64_t tokens) { return (tokens + kTokensATask - 1) / kTokensATask; }

/// Calls body(task, first element) for every token of x [..., C], in blocks of tokens.
template <class Body>
void for_tokens(const Tensor& x, Body body) {
  const int64_t n = x.dim(-1), tokens = x.size() / n;
  parallel_for(token_tasks(tokens), [&](int64_t task) {
    for (int64_t t = task * kTokensATask; t < std::min(tokens, (task + 1) * kTokensATask); ++t) body(task, t * n);
  });
}

/// The row of `task` in parts [tasks, C], zeros when the token at element `at` is the task's first.
template <class T>
T* part_of(const Tensor& parts, int64_t task, int64_t at) {
  const int64_t n = parts.dim(1);
  T* part = parts.data<T>() + task * n;
  if (at / n % kTokensATask == 0) std::fill_n(part, n, T(0));
  return part;
}

}  // namespace saccade::cpu
