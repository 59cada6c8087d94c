#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/token_position.h"
#include "kernels/ops/elementwise/elementwise.h"

namespace saccade::cuda {

/// f32 or bf16, equal shapes; equations: kernels/ops/elementwise/elementwise.h.
void add(Stream stream, const Tensor& x1, const Tensor& x2, const Tensor& y);
void activate(Stream stream, Activation f, const Tensor& x, const Tensor& y);
void activate_backward(Stream stream, Activation f, const Tensor& x, const Tensor& dy, const Tensor& dx, bool add);
void gated(Stream stream, Activation f, const Tensor& gate, const Tensor& up, const Tensor& y);
/// Empty d_gate or d_up: not wanted.
void gated_backward(Stream stream, Activation f, const Tensor& gate, const Tensor& up, const Tensor& dy, const Tensor& d_gate,
                    bool add_gate, const Tensor& d_up, bool add_up);
/// The same with gate and up as the two halves of a row: h [rows, 2 n], y [rows, n].
void gated_packed(Stream stream, Activation f, const Tensor& h, const Tensor& y);
/// Overwrites h with its gradient.
void gated_packed_backward(Stream stream, Activation f, const Tensor& h, const Tensor& dy);
/// x *= *factor; factor f32 [1] on the device.
void scale(Stream stream, const Tensor& x, const Tensor& factor);
/// to (+)= *factor · from; f32.
void scale_into(Stream stream, const Tensor& to, bool add, const Tensor& from, const Tensor& factor);
/// Every row of y = bias + residual; y, residual f32 or bf16 [rows, n], residual may be empty, bias f32 [n].
void fill_rows(Stream stream, const Tensor& bias, const Tensor& residual, const Tensor& y);
/// y[b, t] = x[b, t] + table[p + t]; x, y [B, T, D] f32 or bf16, table f32 [Tmax, D].
void add_positions(Stream stream, const Tensor& x, const Tensor& table, const TokenPosition& position, const Tensor& y);
/// d_table[t] (+)= Σ_b dy[b, t]; rows from T on get zero.
void add_positions_backward(Stream stream, const Tensor& dy, const Tensor& d_table, bool add);

}  // namespace saccade::cuda
