#include "kernels/ops/wkv/wkv.h"

#include "kernels/cpu/partial_sums.h"
#include "kernels/engine/expect.h"
#include "kernels/ops/wkv/wkv_cpu.h"
#include "kernels/ops/wkv/wkv_cuda.h"

namespace saccade {
namespace {

cpu::WkvInputs checked(const char* op, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& w_raw, const Tensor& bonus,
                       const Tensor& start) {
  expect(r.rank() == 4 && k.shape() == r.shape() && v.shape() == r.shape() && k.dtype() == r.dtype() && v.dtype() == r.dtype(), op,
         "r, k, v are ", r, ", ", k, ", ", v, "; expected three times [B, T, H, N]");
  const Shape channels{r.dim(2), r.dim(3)};
  expect(w_raw.shape() == channels || w_raw.shape() == r.shape(), op, "w_raw is ", w_raw, ", r is ", r);
  expect(bonus.shape() == channels, op, "bonus is ", bonus, ", r is ", r);
  expect(!start || start.shape() == Shape{r.dim(0), r.dim(2), r.dim(3), r.dim(3)}, op, "start is ", start, ", r is ", r);
  return {{r.dim(0), r.dim(1), r.dim(2), r.dim(3)}, r, k, v, w_raw, bonus, start};
}

/// Per token and head `squares` operations on a state of N x N.
Cost cost(const cpu::WkvInputs& in, double squares, double tensors) {
  const double bytes = static_cast<double>(in.w_raw.bytes()) + tensors * static_cast<double>(in.r.bytes());
  return {squares * static_cast<double>(in.r.size() * in.shape.width), bytes};
}

/// On CUDA nothing is kept but states between segments: backward goes through the head again first.
void cuda_backward(Tape& t, const cpu::WkvInputs& in, const Tensor& carried, const Wkv& out) {
  const bool in_chunks = cuda::wkv_in_chunks(in);
  const DType state = in_chunks ? DType::bf16 : DType::f32;
  const Shape parts = cuda::wkv_parts_shape(in);
  cuda::WkvBackward g{.dy = t.grad(out.y),
                      .d_state = t.grad(out.state),
                      .dr = t.grad_target(in.r),
                      .dk = t.grad_target(in.k),
                      .dv = t.grad_target(in.v),
                      .dw_raw = t.grad_target(in.w_raw),
                      .bonus = t.grad_target(in.bonus),
                      .d_start = t.grad_target(in.start),
                      .starts = t.empty(cuda::wkv_starts_shape(in), state),
                      .d_states = in_chunks ? t.empty(cuda::wkv_starts_shape(in), state) : Tensor(),
                      .bonus_parts = {},
                      .decay_parts = {},
                      .carried = carried,
                      .d_carried = cuda::wkv_carried(t, in)};
  if (g.bonus) g.bonus_parts = t.empty(parts, DType::f32);
  if (g.dw_raw && in.constant_decay()) g.decay_parts = t.empty(parts, DType::f32);
  t.run(
      "wkv.backward", cost(in, 18, 8), [] {}, [&] { cuda::wkv_backward(t.stream(), in, g); });
}

void backward(Tape& t, const cpu::WkvInputs& in, const Tensor& carried, const Wkv& out) {
  if (t.device().targets_cuda()) return cuda_backward(t, in, carried, out);
  const Shape parts{in.shape.batch, in.shape.heads, in.shape.width};
  cpu::WkvGradients g;
  g.dy = t.grad(out.y), g.d_state = t.grad(out.state);
  g.dr = t.grad_target(in.r), g.dk = t.grad_target(in.k), g.dv = t.grad_target(in.v), g.d_start = t.grad_target(in.start);
  const GradTarget d_bonus = t.grad_target(in.bonus), d_decay = t.grad_target(in.w_raw);
  if (!in.constant_decay()) g.dw_raw = d_decay;
  if (d_bonus) g.bonus_parts = t.empty(parts, in.bonus.dtype());
  if (d_decay && in.constant_decay()) g.decay_parts = t.empty(parts, in.w_raw.dtype());
  t.run("wkv.backward", cost(in, 18, 8), [&] {
    dispatch(in.r.dtype(), [&](auto zero) {
      using T = decltype(zero);
      cpu::wkv_backward<T>(in, g);
      cpu::sum_parts<T>(g.bonus_parts, d_bonus);
      if (in.constant_decay()) cpu::sum_parts<T>(g.decay_parts, d_decay);
    });
  });
}

}  // namespace

Wkv wkv(Tape& tape, const Tensor& r, const Tensor& k, const Tensor& v, const Tensor& w_raw, const Tensor& bonus, const Tensor& start) {
  const cpu::WkvInputs in = checked("wkv", r, k, v, w_raw, bonus, start);
  const int64_t n = in.shape.width;
  if (tape.device().targets_cuda() && n > cuda::kMaxWkvWidth)
    tape.refuse("wkv", "heads are " + std::to_string(n) + " wide, a GPU takes at most " + std::to_string(cuda::kMaxWkvWidth));
  tape.note_tensor_cores("wkv", r.dtype(), cuda::wkv_in_chunks(in), "heads of " + std::to_string(n) + "; those of 32 and 64 have one");
  Wkv out{tape.empty(v.shape(), v.dtype()), tape.empty({in.shape.batch, in.shape.heads, n, n}, accumulation_dtype(v.dtype()))};
  const Tensor carried = tape.device().targets_cuda() ? cuda::wkv_carried(tape, in) : Tensor();
  tape.run(
      "wkv", cost(in, 5, 4), [&] { dispatch(v.dtype(), [&](auto zero) { cpu::wkv_forward<decltype(zero)>(in, out.y, out.state); }); },
      [&] { cuda::wkv_forward(tape.stream(), in, carried, out.y, out.state); });
  tape.record({r, k, v, w_raw, bonus, start}, {&out.y, &out.state}, [in, carried, out](Tape& t) { backward(t, in, carried, out); });
  return out;
}

Tensor wkv_weights(Tape& tape, const Tensor& r, const Tensor& k, const Tensor& w_raw, const Tensor& bonus, const Sequences& sequences) {
  const cpu::WkvInputs in = checked("wkv_weights", r, k, k, w_raw, bonus, {});
  expect(sequences.are_in(in.shape.batch), "wkv_weights", "there is no sequence ", sequences.first + sequences.count - 1, " of ",
         in.shape.batch);
  const Tensor weights = tape.empty({sequences.count * in.shape.heads, in.shape.length, in.shape.length}, accumulation_dtype(r.dtype()));
  const double flops = 1.5 * static_cast<double>(weights.size() * in.shape.width);
  tape.run(
      "wkv_weights", {flops, static_cast<double>(weights.bytes())},
      [&] { dispatch(r.dtype(), [&](auto zero) { cpu::wkv_weights<decltype(zero)>(in, sequences, weights); }); },
      [&] { cuda::wkv_weights(tape.stream(), in, sequences, weights); });
  return weights;
}

}  // namespace saccade
