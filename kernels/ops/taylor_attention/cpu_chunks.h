#pragma once
#include "kernels/engine/tape.h"

namespace saccade::cpu {

/// Taylor attention in chunks of up to kTaylorChunk tokens: pairs inside a chunk by their scores, in tiles of kTaylorTile queries,
/// all tokens before it through the state S = Σ φ(k) [v | 1]. A pair costs d + V multiply-adds, the state F (V + 1) per token, so short
/// sequences never use the state and long ones cost the same for every token.
constexpr int64_t kTaylorChunk = 512, kTaylorTile = 64;
constexpr double kTaylorEpsilon = 1e-12;

struct TaylorAttention {
  Tensor q, k, v;
  Tensor state;  ///< [B, H, F, V + 1], start and end; empty: zeros
};

/// o [B, T, H, V] and the denominators [B, H, T].
template <class T>
void taylor_forward(const TaylorAttention& in, const Tensor& o, const Tensor& denominator);

/// dq, dk, dv are overwritten. `states` is workspace for the states at the start of every chunk.
struct TaylorGradients {
  Tensor o, denominator, d_o;
  Tensor dq, dk, dv, states;
};
Shape taylor_states_shape(const TaylorAttention& in);
template <class T>
void taylor_backward(const TaylorAttention& in, const TaylorGradients& out);

}  // namespace saccade::cpu
