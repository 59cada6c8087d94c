#include "kernels/ops/taylor_attention/taylor_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/own_gradient.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/taylor_attention/cpu_chunks.h"
#include "kernels/ops/taylor_attention/cpu_features.h"
#include "kernels/ops/taylor_attention/taylor_attention_cuda.h"

namespace saccade {
namespace {

/// FLOPs and bytes of one pass forward, times `passes`.
Cost cost(const Tensor& q, const Tensor& v, double passes) {
  const double length = static_cast<double>(q.dim(1)), seen = std::min(length, static_cast<double>(cpu::kTaylorChunk)),
               width = static_cast<double>(v.dim(3) + 1), tokens = static_cast<double>(q.dim(0) * q.dim(1) * q.dim(2));
  double flops = tokens * (seen + 1) / 2 * (2 * static_cast<double>(q.dim(3)) + 2 * width + 4);
  if (length > seen) flops += tokens * 4 * static_cast<double>(taylor_features(q.dim(3))) * width;
  return {passes * flops, passes * static_cast<double>(2 * q.bytes() + 2 * v.bytes())};
}

void backward_on_cpu(Tape& t, const cpu::TaylorAttention& in, const Tensor& o, const Tensor& denominator, const Tensor& d_o) {
  const OwnGradient dq(t, in.q), dk(t, in.k), dv(t, in.v);
  const cpu::TaylorGradients out{
      o, denominator, d_o, dq.tensor, dk.tensor, dv.tensor, t.empty(cpu::taylor_states_shape(in), denominator.dtype())};
  t.run("taylor_attention.backward", cost(in.q, in.v, 3), [&] {
    dispatch(o.dtype(), [&](auto zero) {
      using T = decltype(zero);
      cpu::taylor_backward<T>(in, out);
      for (const OwnGradient* gradient : {&dq, &dk, &dv}) gradient->deliver<T>();
    });
  });
}

void backward_on_cuda(Tape& t, const cpu::TaylorAttention& in, const cuda::TaylorSegments& segments, const Tensor& o,
                      const Tensor& denominator, const Tensor& d_o) {
  const cuda::TaylorGradients out{segments,
                                  o,
                                  denominator,
                                  d_o,
                                  t.grad_target(in.q),
                                  t.grad_target(in.k),
                                  t.grad_target(in.v),
                                  t.empty(denominator.shape(), DType::f32),
                                  cuda::taylor_on_tensor_cores(in.q, in.v) ? t.empty(in.v.shape(), in.v.dtype()) : Tensor(),
                                  segments.past ? t.empty(segments.past.shape(), DType::f32) : Tensor()};
  t.run(
      "taylor_attention.backward", cost(in.q, in.v, 3), [] {}, [&] { cuda::taylor_attention_backward(t.stream(), in.q, in.k, in.v, out); });
}

}  // namespace

int64_t taylor_features(int64_t d) { return 1 + d + d * (d + 1) / 2; }

Tensor taylor_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& state, int64_t segment) {
  expect(q.rank() == 4 && q.shape() == k.shape(), "taylor_attention", "q is ", q, ", k is ", k, "; expected [B, T, H, d]");
  expect(v.rank() == 4 && v.dim(0) == q.dim(0) && v.dim(1) == q.dim(1) && v.dim(2) == q.dim(2), "taylor_attention", "v is ", v, ", q is ",
         q);
  expect(!state || state.shape() == Shape{q.dim(0), q.dim(2), taylor_features(q.dim(3)), v.dim(3) + 1}, "taylor_attention", "state is ",
         state, ", q is ", q, ", v is ", v);
  expect(segment >= 0 && segment % 128 == 0, "taylor_attention", "segment is ", segment, "; expected a multiple of 128");
  if (segment == 0) segment = state ? kTaylorCarriedSegment : taylor_segment(q.dim(1));
  const cpu::TaylorAttention in{q, k, v, state};
  Tensor o = tape.empty(v.shape(), v.dtype());
  const Tensor denominator = tape.empty({q.dim(0), q.dim(2), q.dim(1)}, accumulation_dtype(v.dtype()));
  tape.note_tensor_cores("taylor_attention", v.dtype(), cuda::taylor_on_tensor_cores(q, v),
                         "features of " + std::to_string(q.dim(3)) + " and values of " + std::to_string(v.dim(3)) +
                             "; features of 16 with values of 32 or 64 have one");
  cuda::TaylorSegments segments;
  const int64_t past = tape.device().targets_cuda() ? cuda::taylor_past_states(q, v, segment, static_cast<bool>(state)) : 0;
  if (past > 0) segments = {segment, tape.empty({q.dim(0) * q.dim(2), past, taylor_features(q.dim(3)), v.dim(3) + 1}, DType::f32)};
  tape.run(
      "taylor_attention", cost(q, v, 1),
      [&] { dispatch(v.dtype(), [&](auto zero) { cpu::taylor_forward<decltype(zero)>(in, o, denominator); }); },
      [&] { cuda::taylor_attention(tape.stream(), q, k, v, state, segments, o, denominator); });
  if (state) return o;
  tape.record({q, k, v}, {&o}, [=](Tape& t) {
    if (t.device().targets_cuda()) return backward_on_cuda(t, in, segments, o, denominator, t.grad(o));
    backward_on_cpu(t, in, o, denominator, t.grad(o));
  });
  return o;
}

Tensor taylor_weights(Tape& tape, const Tensor& q, const Tensor& k, const Sequences& sequences) {
  const int64_t length = q.dim(1), heads = q.dim(2), d = q.dim(3), row = heads * d, maps = sequences.count * heads;
  const Tensor weights = tape.empty({maps, length, length}, accumulation_dtype(q.dtype()));
  const double pairs = static_cast<double>(weights.size());
  tape.run(
      "taylor_weights", {pairs * static_cast<double>(2 * d + 5), static_cast<double>(weights.bytes())},
      [&] {
        dispatch(q.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_for(maps * length, [&](int64_t task) {
            const int64_t b = sequences.first + task / length / heads, h = task / length % heads, t = task % length;
            const int64_t at = (b * length * heads + h) * d;
            T *w = weights.data<T>() + task * length, sum = 0;
            cpu::gemm_serial<T>(false, true, 1, length, d, static_cast<T>(1 / std::sqrt(static_cast<double>(d))),
                                q.data<T>() + at + t * row, row, k.data<T>() + at, row, false, w, length);
            cpu::taylor_rows(w, 1, length, t, w, &sum);
            for (int64_t j = 0; j <= t; ++j) w[j] /= sum + static_cast<T>(cpu::kTaylorEpsilon);
          });
        });
      },
      [&] { cuda::taylor_weights(tape.stream(), q, k, sequences, weights); });
  return weights;
}

}  // namespace saccade
