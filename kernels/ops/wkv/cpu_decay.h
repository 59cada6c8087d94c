#pragma once
#include "kernels/cpu/simd.h"

namespace saccade::cpu {

/// min(x, 8): e^8 makes a decay of e^−2981, which is 0 in any precision here.
template <class T>
SACCADE_INLINE T bounded(T w_raw) {
  return select(is_positive(T(8) - w_raw), w_raw, T(8));
}

/// decay = e^λ, λ = −exp(min(w_raw, 8))
template <class T>
SACCADE_INLINE void decay_of(const T* w_raw, T* decay, int64_t n) {
  for (int64_t c = 0; c < n; ++c) decay[c] = fast_exp(-fast_exp(bounded(w_raw[c])));
}

/// d_w_raw from the gradient of the decay: dλ = e^λ d_decay, d_w_raw = λ dλ.
template <class T>
SACCADE_INLINE void decay_gradient(const T* w_raw, const T* decay, T* d, int64_t n) {
  for (int64_t c = 0; c < n; ++c) d[c] *= -fast_exp(bounded(w_raw[c])) * decay[c];
}

}  // namespace saccade::cpu
