#pragma once
#include "kernels/ops/mamba1/mamba1_scan.h"
#include "kernels/ops/scalar_decay/scalar_decay_cuda.h"
#include "kernels/ops/shared/column_runs.h"

namespace saccade::cuda {

/// Mamba's recurrence whose decay does not depend on channel and state (cpu::LinearForm) as the chunk form: the D channels are heads of
/// 64 where that divides them, which share keys, queries and decay.
struct Mamba1Workspace {
  DecayForm form;  ///< x = Δ u
  DecayScratch scratch;
  Tensor end;  ///< in the form's layout, [B, H, N, P]; empty: not wanted
};
inline Mamba1Workspace mamba1_workspace(Tape& tape, const Mamba1Scan& in, bool want_end, bool backward) {
  const int64_t batch = in.u.dim(0), length = in.u.dim(1), channels = in.u.dim(2), states = in.b.dim(2);
  const int64_t width = channels % 64 == 0 ? 64 : channels, heads = channels / width;
  const Shape keys{batch, length, 1, states}, state{batch, heads, states, width};
  Mamba1Workspace workspace{
      {in.c.reshape(keys), in.b.reshape(keys), tape.empty({batch, length, heads, width}, in.u.dtype()), {}, {}}, {}, {}};
  if (in.shared_dt) workspace.form.running = tape.empty({batch, 1, length}, DType::f32);
  if (in.state.start) workspace.form.start = tape.empty(state, DType::f32);
  if (want_end) workspace.end = tape.empty(state, DType::f32);
  workspace.scratch = decay_scratch(tape, workspace.form, backward);
  return workspace;
}

/// o and y [B, T, D] of u's dtype; end [B, D, N] may be empty.
void mamba1_linear(Stream stream, const Mamba1Scan& in, const Mamba1Workspace& workspace, const Tensor& o, const Tensor& y,
                   const Tensor& end);

/// Targets may be empty, d_end and d_start [B, D, N] too. Workspace: gated and dv [B, T, D] of u's dtype; f32 lines, two of [B, H, T];
/// dg [B, H, T] and shared_parts [2, B] with a decay; parts [2, run_parts(B T), D]; chunk_end and chunk_start in the form's layout
/// (empty with d_end and d_start).
struct Mamba1LinearGradients : Mamba1Gradients {
  Tensor o, gated, dv, lines, dg, parts, shared_parts, chunk_end, chunk_start;
};
void mamba1_linear_backward(Stream stream, const Mamba1Scan& in, const Mamba1Workspace& workspace, const Mamba1LinearGradients& out);

}  // namespace saccade::cuda
