#pragma once
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade::cpu {

struct Wkv7Inputs {
  HeadShape shape;
  Tensor r, log_w, k, v, a, b, start;
};

/// y and the state after the last token.
template <class T>
void wkv7_forward(const Wkv7Inputs& in, const Tensor& y, const Tensor& state);

struct Wkv7Gradients {
  Tensor dy, d_state;  ///< empty: zeros
  GradTarget dr, d_log_w, dk, dv, da, db, d_start;
};
template <class T>
void wkv7_backward(const Wkv7Inputs& in, const Wkv7Gradients& g);

/// a_tj of some sequences, weights [sequences · H, T, T].
template <class T>
void wkv7_weights(const Wkv7Inputs& in, const Sequences& sequences, const Tensor& weights);

extern template void wkv7_forward<float>(const Wkv7Inputs&, const Tensor&, const Tensor&);
extern template void wkv7_forward<double>(const Wkv7Inputs&, const Tensor&, const Tensor&);
extern template void wkv7_backward<float>(const Wkv7Inputs&, const Wkv7Gradients&);
extern template void wkv7_backward<double>(const Wkv7Inputs&, const Wkv7Gradients&);
extern template void wkv7_weights<float>(const Wkv7Inputs&, const Sequences&, const Tensor&);
extern template void wkv7_weights<double>(const Wkv7Inputs&, const Sequences&, const Tensor&);

}  // namespace saccade::cpu
