#pragma once
#include "kernels/ops/head_projection/head_projection.h"
#include "kernels/ops/norm/norm.h"

namespace saccade {

/// The next token of every sequence in progress, with a KV cache (arXiv:1911.02150, section 2.4): project_heads, and what append_rows of
/// kernels/ops/decoding/decoding.h does.
///   keys[b, t_b] = prepare_heads(u_b W_kᵀ),   values[b, t_b] = u_b W_vᵀ,   q_b = prepare_heads(u_b W_qᵀ),   t =
///   projection.options.position,   u = x or, with a norm, rms_norm(x)
/// x [B, 1, D]   keys, values [B, capacity, H, d] of x's dtype   returns q [B, 1, H, d]. Nothing is saved for backward.
/// Throws std::invalid_argument where caches have another shape or dtype, and as project_heads and rms_norm do. On CUDA one product takes
/// all three where the matrices stand behind each other, and one pass the rest; of a few rows (kernels/ops/linear/few_rows_cuda.h) one pass
/// does all.
Tensor project_next_heads(Tape& tape, const Tensor& x, const HeadProjection& projection, const Tensor& keys, const Tensor& values,
                          const InputNorm& norm = {});

}  // namespace saccade
