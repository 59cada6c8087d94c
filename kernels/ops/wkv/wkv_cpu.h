#pragma once
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade::cpu {

struct WkvInputs {
  HeadShape shape;
  Tensor r, k, v, w_raw, bonus, start;
  bool constant_decay() const { return w_raw.rank() == 2; }
};

/// y and the state after the last token.
template <class T>
void wkv_forward(const WkvInputs& in, const Tensor& y, const Tensor& state);

/// Gradients; bonus and a constant decay have a partial sum per sequence, parts [B, H, N] (empty where not wanted).
struct WkvGradients {
  Tensor dy, d_state;  ///< empty: zeros
  GradTarget dr, dk, dv, dw_raw, d_start;
  Tensor bonus_parts, decay_parts;
};
template <class T>
void wkv_backward(const WkvInputs& in, const WkvGradients& g);

/// a_tj of some sequences, weights [sequences · H, T, T].
template <class T>
void wkv_weights(const WkvInputs& in, const Sequences& sequences, const Tensor& weights);

/// e^λ of n channels, λ = −exp(min(w_raw, 8)).
void wkv_decay(const float* w_raw, float* decay, int64_t n);
void wkv_decay(const double* w_raw, double* decay, int64_t n);

extern template void wkv_forward<float>(const WkvInputs&, const Tensor&, const Tensor&);
extern template void wkv_forward<double>(const WkvInputs&, const Tensor&, const Tensor&);
extern template void wkv_backward<float>(const WkvInputs&, const WkvGradients&);
extern template void wkv_backward<double>(const WkvInputs&, const WkvGradients&);
extern template void wkv_weights<float>(const WkvInputs&, const Sequences&, const Tensor&);
extern template void wkv_weights<double>(const WkvInputs&, const Sequences&, const Tensor&);

}  // namespace saccade::cpu
