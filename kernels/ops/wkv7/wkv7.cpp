#include "kernels/ops/wkv7/wkv7.h"

#include "kernels/engine/expect.h"
#include "kernels/ops/wkv7/wkv7_chunks_cuda.h"
#include "kernels/ops/wkv7/wkv7_cpu.h"

namespace saccade {
namespace {

/// v may be empty where only weights are asked for.
cpu::Wkv7Inputs checked(const char* op, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& v, const Tensor& a,
                        const Tensor& b, const Tensor& start) {
  expect(r.rank() == 4, op, "r is ", r, "; expected [B, T, H, N]");
  for (const Tensor* x : {&log_w, &k, &v, &a, &b}) {
    expect(!*x || x->shape() == r.shape(), op, "r is ", r, ", another input ", *x);
    expect(!*x || x->dtype() == r.dtype() || x == &log_w, op, "r is ", r.dtype(), ", another input ", x->dtype());
  }
  expect(!start || start.shape() == Shape{r.dim(0), r.dim(2), r.dim(3), r.dim(3)}, op, "start is ", start, ", r is ", r);
  expect(!start || start.dtype() == accumulation_dtype(r.dtype()), op, "start is ", start.dtype(), ", r is ", r.dtype());
  return {{r.dim(0), r.dim(1), r.dim(2), r.dim(3)}, r, log_w, k, v, a, b, start};
}

/// Per token and head `squares` operations on a state of N x N.
Cost cost(const cpu::Wkv7Inputs& in, double squares, double tensors) {
  return {squares * static_cast<double>(in.r.size() * in.shape.width), tensors * static_cast<double>(in.r.bytes())};
}

void backward(Tape& t, const cpu::Wkv7Inputs& in, const cuda::Wkv7Chunks& saved, const Wkv7& out) {
  cpu::Wkv7Gradients g;
  g.dy = t.grad(out.y), g.d_state = t.grad(out.state);
  g.dr = t.grad_target(in.r), g.d_log_w = t.grad_target(in.log_w), g.dk = t.grad_target(in.k), g.dv = t.grad_target(in.v);
  g.da = t.grad_target(in.a), g.db = t.grad_target(in.b), g.d_start = t.grad_target(in.start);
  cuda::Wkv7Chunks chunks;
  cuda::RankOneScratch scratch;
  if (saved.solve)
    g.dy = t.grad_or_zeros(out.y), chunks = saved.for_backward(t);
  else if (t.device().targets_cuda())
    scratch = cuda::RankOneScratch(t, cuda::wkv7_shape(in));
  t.run(
      "wkv7.backward", cost(in, 34, 13), [&] { dispatch(in.r.dtype(), [&](auto zero) { cpu::wkv7_backward<decltype(zero)>(in, g); }); },
      [&] { saved.solve ? cuda::wkv7_chunks_backward(t.stream(), in, chunks, g) : cuda::wkv7_backward(t.stream(), in, g, scratch); });
}

}  // namespace

Wkv7 wkv7(Tape& tape, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& v, const Tensor& a, const Tensor& b,
          const Tensor& start) {
  const cpu::Wkv7Inputs in = checked("wkv7", r, log_w, k, v, a, b, start);
  const int64_t n = in.shape.width;
  Wkv7 out{tape.empty(v.shape(), v.dtype()), tape.empty({in.shape.batch, in.shape.heads, n, n}, accumulation_dtype(v.dtype()))};
  cuda::Wkv7Chunks chunks;
  tape.note_tensor_cores("wkv7", v.dtype(), n == 32 || n == 64, "heads of " + std::to_string(n) + "; those of 32 and 64 have one");
  if (tape.device().targets_cuda() && cuda::has_wkv7_chunks(in)) chunks = cuda::Wkv7Chunks(tape, in);
  tape.run(
      "wkv7", cost(in, 9, 7), [&] { dispatch(v.dtype(), [&](auto zero) { cpu::wkv7_forward<decltype(zero)>(in, out.y, out.state); }); },
      [&] {
        chunks.solve ? cuda::wkv7_chunks_forward(tape.stream(), in, chunks, out.y, out.state)
                     : cuda::wkv7_forward(tape.stream(), in, out.y, out.state);
      });
  tape.record({r, log_w, k, v, a, b, start}, {&out.y, &out.state}, [in, chunks, out](Tape& t) { backward(t, in, chunks, out); });
  return out;
}

Tensor wkv7_weights(Tape& tape, const Tensor& r, const Tensor& log_w, const Tensor& k, const Tensor& a, const Tensor& b,
                    const Sequences& sequences) {
  const cpu::Wkv7Inputs in = checked("wkv7_weights", r, log_w, k, {}, a, b, {});
  expect(sequences.are_in(in.shape.batch), "wkv7_weights", "there is no sequence ", sequences.first + sequences.count - 1, " of ",
         in.shape.batch);
  const Tensor weights = tape.empty({sequences.count * in.shape.heads, in.shape.length, in.shape.length}, accumulation_dtype(r.dtype()));
  const double flops = 3.5 * static_cast<double>(weights.size() * in.shape.width);
  tape.run(
      "wkv7_weights", {flops, static_cast<double>(weights.bytes())},
      [&] { dispatch(r.dtype(), [&](auto zero) { cpu::wkv7_weights<decltype(zero)>(in, sequences, weights); }); },
      [&] { cuda::wkv7_weights(tape.stream(), in, sequences, weights); });
  return weights;
}

}  // namespace saccade
