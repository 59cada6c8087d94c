#pragma once
#include "kernels/ops/mamba1/mamba1_scan.h"
#include "kernels/ops/scalar_decay/scalar_decay.h"

namespace saccade::cpu {

/// Mamba's recurrence when the decay does not depend on channel and state: with one "head" of N keys and D values it is
///   S_t = a_t S_{t−1} + B_t (Δ_t ∘ u_t)ᵀ,   y_t = (S_tᵀ C_t + D ∘ u_t) ∘ silu(z_t)
/// which the chunk form of ScalarDecay computes with matrix products, without a scan.
struct LinearForm {
  Tensor step, v;  ///< Δ and Δ u, [B, T, D]
  Tensor g;        ///< log decays [B, T, 1]; empty: none
  Tensor start;    ///< [B, 1, N, D]; empty: zeros
};

/// The same in the letters of the chunk form.
ScalarDecay chunk_form(const Mamba1Scan& in, const LinearForm& form);

/// Fills step, v, g and start.
template <class T>
void prepare(const Mamba1Scan& in, const LinearForm& form);

/// o [B, T, D] = S_tᵀ C_t, y, and end [B, D, N] unless it is empty; `states` is the chunk form's workspace.
template <class T>
void linear_scan(const Mamba1Scan& in, const LinearForm& form, const Tensor& states, const Tensor& o, const Tensor& y, const Tensor& end);

/// Gradients; targets may be empty. d_end and d_start [B, D, N] may be empty. The rest is workspace: states and d_states of the chunk
/// form, gated and dv [B, T, D], dg [B, T, 1] (empty without decay), chunk_end and chunk_start [B, 1, N, D] (empty with d_end and
/// d_start), parts [⌈B T / kLinearRows⌉, 2 D + 2].
constexpr int64_t kLinearRows = 64;
struct LinearGradients : Mamba1Gradients {
  Tensor o, states, d_states, gated, dv, dg, chunk_end, chunk_start, parts;
};
template <class T>
void linear_scan_backward(const Mamba1Scan& in, const LinearForm& form, const LinearGradients& out);

}  // namespace saccade::cpu
