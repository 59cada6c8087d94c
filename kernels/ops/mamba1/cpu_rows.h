#pragma once
/// Mamba's steps around its recurrence, for one row of channels, called inside SACCADE_SIMD functions. Without __restrict and with more
/// than one statement per loop they are not vectorised.
#include "kernels/cpu/smooth.h"

namespace saccade::cpu {

template <class T>
SACCADE_INLINE void step_row(const T* __restrict__ raw, const T* __restrict__ bias, const T* __restrict__ u, int64_t n,
                             T* __restrict__ step, T* __restrict__ input) {
  for (int64_t d = 0; d < n; ++d) step[d] = softplus(raw[d] + bias[d]);
  for (int64_t d = 0; d < n; ++d) input[d] = step[d] * u[d];
}

/// y = (sum + D u) silu(z)
template <class T>
SACCADE_INLINE void gate_row(const T* __restrict__ sum, const T* __restrict__ skip, const T* __restrict__ u, const T* __restrict__ z,
                             int64_t n, T* __restrict__ y) {
  for (int64_t d = 0; d < n; ++d) y[d] = (sum[d] + skip[d] * u[d]) * silu(z[d]);
}

/// dy silu(z)
template <class T>
SACCADE_INLINE void gated_row(const T* __restrict__ dy, const T* __restrict__ z, int64_t n, T* __restrict__ to) {
  for (int64_t d = 0; d < n; ++d) to[d] = dy[d] * silu(z[d]);
}

/// dz = dy (sum + D u) silu'(z)
template <class T>
SACCADE_INLINE void gate_slope_row(const T* __restrict__ dy, const T* __restrict__ sum, const T* __restrict__ skip, const T* __restrict__ u,
                                   const T* __restrict__ z, int64_t n, T* __restrict__ to) {
  for (int64_t d = 0; d < n; ++d) to[d] = dy[d] * (sum[d] + skip[d] * u[d]) * silu_slope(z[d]);
}

/// d_raw = (u d_input + d_step) σ(raw + bias)
template <class T>
SACCADE_INLINE void step_slope_row(const T* __restrict__ u, const T* __restrict__ d_input, const T* __restrict__ d_step,
                                   const T* __restrict__ raw, const T* __restrict__ bias, int64_t n, T* __restrict__ to) {
  for (int64_t d = 0; d < n; ++d) to[d] = (u[d] * d_input[d] + d_step[d]) * sigmoid(raw[d] + bias[d]);
}

/// The same without d_step.
template <class T>
SACCADE_INLINE void step_slope_row(const T* __restrict__ u, const T* __restrict__ d_input, const T* __restrict__ raw,
                                   const T* __restrict__ bias, int64_t n, T* __restrict__ to) {
  for (int64_t d = 0; d < n; ++d) to[d] = u[d] * d_input[d] * sigmoid(raw[d] + bias[d]);
}

/// du = D gated + Δ d_input
template <class T>
SACCADE_INLINE void input_slope_row(const T* __restrict__ skip, const T* __restrict__ gated, const T* __restrict__ step,
                                    const T* __restrict__ d_input, int64_t n, T* __restrict__ to) {
  for (int64_t d = 0; d < n; ++d) to[d] = skip[d] * gated[d] + step[d] * d_input[d];
}

/// to (+)= from; nothing where `to` is null
template <class T>
SACCADE_INLINE void put_row(const T* __restrict__ from, int64_t n, bool add, T* __restrict__ to) {
  if (!to) return;
  if (add)
    for (int64_t d = 0; d < n; ++d) to[d] += from[d];
  else
    for (int64_t d = 0; d < n; ++d) to[d] = from[d];
}

template <class T>
SACCADE_INLINE void add_products(const T* __restrict__ a, const T* __restrict__ b, int64_t n, T* __restrict__ to) {
  for (int64_t d = 0; d < n; ++d) to[d] += a[d] * b[d];
}

}  // namespace saccade::cpu
