#pragma once
#include "kernels/ops/mamba2/mamba2_ssd.h"
#include "kernels/ops/scalar_decay/scalar_decay_cuda.h"

namespace saccade::cuda {

/// The chunk form of one pass, whose steps and running log decays the kernels compute, and its workspace.
struct Mamba2Workspace {
  DecayForm form;
  DecayScratch scratch;
};
inline Mamba2Workspace mamba2_workspace(Tape& tape, const Mamba2Ssd& in) {
  const int64_t batch = in.x.dim(0), length = in.x.dim(1), heads = in.x.dim(2);
  Mamba2Workspace workspace{{in.c, in.b, in.x, tape.empty({batch, heads, length}, DType::f32), {}, in.skip, in.state.start}, {}};
  if (in.a_log) workspace.form.running = tape.empty({batch, in.shared_dt ? 1 : heads, length}, DType::f32);
  workspace.scratch = decay_scratch(tape, workspace.form, false);
  return workspace;
}
/// Saved for backward, and the workspace of the backward pass.
struct Mamba2Saved {
  DecayForm form;
  DecaySaved made;
};
inline Mamba2Workspace mamba2_backward_workspace(Tape& tape, const Mamba2Saved& saved) {
  return {saved.form, decay_scratch(tape, saved.form, true, saved.made)};
}

/// y, and the state after the last token unless `end` is empty.
void mamba2_ssd(Stream stream, const Mamba2Ssd& in, const Mamba2Workspace& workspace, const Tensor& y, const Tensor& end);

/// Targets may be empty, so may d_end and d_start. Workspace f32: d_step, d_skip and dg [B, H, T] (dg empty without decay),
/// parts [3, B, chunks, H], shared_parts [2, B] (empty without a shared decay).
struct Mamba2Gradients {
  Tensor dy, d_end;
  GradTarget x, dt, b, c, skip, dt_bias, a_log, shared_dt, shared_bias;
  Tensor d_start, d_step, d_skip, dg, parts, shared_parts;
};
void mamba2_ssd_backward(Stream stream, const Mamba2Ssd& in, const Mamba2Workspace& workspace, const Mamba2Gradients& out);

/// weights f32 [sequences · H, T, T]
void mamba2_weights(Stream stream, const Mamba2Ssd& in, const Sequences& sequences, const Tensor& weights);

}  // namespace saccade::cuda
