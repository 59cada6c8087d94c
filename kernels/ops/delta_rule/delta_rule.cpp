#include "kernels/ops/delta_rule/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/own_gradient.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/delta_rule/cpu_chunks.h"
#include "kernels/ops/delta_rule/delta_rule_chunks_cuda.h"

namespace saccade {
namespace {

void check(const char* op, const DeltaRule& in) {
  expect(in.q.rank() == 4 && in.q.shape() == in.k.shape(), op, "q is ", in.q, ", k is ", in.k, "; expected [B, T, H, K]");
  const int64_t batch = in.q.dim(0), length = in.q.dim(1), heads = in.q.dim(2);
  expect(in.v.rank() == 4 && in.v.dim(0) == batch && in.v.dim(1) == length && in.v.dim(2) == heads, op, "v is ", in.v, ", q is ", in.q);
  expect(in.beta.shape() == Shape{batch, length, heads}, op, "beta is ", in.beta, ", q is ", in.q);
  expect(!in.g || in.g.shape() == in.beta.shape(), op, "g is ", in.g, ", q is ", in.q);
  expect(!in.state.start || in.state.start.shape() == Shape{batch, heads, in.q.dim(3), in.v.dim(3)}, op, "state is ", in.state.start,
         ", q is ", in.q, ", v is ", in.v);
  expect(!in.state.start || in.state.start.dtype() == accumulation_dtype(in.v.dtype()), op, "state is ", in.state.start.dtype(), ", v is ",
         in.v.dtype());
}

/// FLOPs of one pass forward and bytes of the inputs and o.
Cost cost(const DeltaRule& in, double flops, double bytes) {
  const double chunk = static_cast<double>(std::min(cpu::kDeltaChunk, in.q.dim(1))), keys = static_cast<double>(in.q.dim(3)),
               values = static_cast<double>(in.v.dim(3)), tokens = static_cast<double>(in.q.size()) / keys;
  const double forward = tokens * (4 * chunk * keys + 3 * chunk * values + 6 * keys * values);
  return {flops * forward, bytes * static_cast<double>(in.q.bytes() + in.k.bytes() + 2 * in.v.bytes() + in.beta.bytes())};
}

void backward_on_cpu(Tape& t, const DeltaRule& in, const Tensor& d_o, const Tensor& d_end) {
  const DType dtype = in.v.dtype();
  const cpu::DeltaRecord record{t.empty(in.v.shape(), dtype), t.empty(cpu::delta_states_shape(in), dtype)};
  const OwnGradient dq(t, in.q), dk(t, in.k), dv(t, in.v), d_beta(t, in.beta), dg(t, in.g);
  Tensor d_start;
  if (in.state.start && in.state.start.differentiable()) d_start = t.empty(in.state.start.shape(), dtype);
  t.run("delta_rule.backward", cost(in, 3.5, 3), [&] {
    dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      cpu::delta_rule_forward<T>(in, {}, {}, record);
      cpu::delta_rule_backward<T>(in, record, {d_o, d_end, dq.tensor, dk.tensor, dv.tensor, d_beta.tensor, dg.tensor, d_start});
      for (const OwnGradient* gradient : {&dq, &dk, &dv, &d_beta, &dg}) gradient->deliver<T>();
    });
  });
  if (d_start) t.add_grad(in.state.start, d_start);
}

GradTarget target(Tape& t, const Tensor& x) { return x ? t.grad_target(x) : GradTarget(); }

void backward_on_cuda(Tape& t, const DeltaRule& in, const cuda::DeltaChunks& chunks, const Tensor& d_o, const Tensor& d_end) {
  const cuda::DeltaTargets out{
      d_o, d_end, target(t, in.q), target(t, in.k), target(t, in.v), target(t, in.beta), target(t, in.g), target(t, in.state.start)};
  const Cost both = cost(in, 3.5, 3);
  if (chunks.solve) {
    const cuda::DeltaChunks scratch = chunks.for_backward(t, in, out.dv);
    return t.run(
        "delta_rule.backward", both, [] {}, [&] { cuda::delta_chunks_backward(t.stream(), in, scratch, out); });
  }
  const cuda::RankOneScratch scratch(t, cuda::delta_shape(in));
  t.run(
      "delta_rule.backward", both, [] {}, [&] { cuda::delta_rule_backward(t.stream(), in, out, scratch); });
}

}  // namespace

DeltaRuleOutput delta_rule(Tape& tape, const DeltaRule& in) {
  check("delta_rule", in);
  DeltaRuleOutput out{tape.empty(in.v.shape(), in.v.dtype()), {}};
  if (in.state.want_end) out.end = tape.empty({in.q.dim(0), in.q.dim(2), in.q.dim(3), in.v.dim(3)}, accumulation_dtype(in.v.dtype()));
  const Tensor end = in.state.in_place ? in.state.start : out.end;
  cuda::DeltaChunks chunks;
  tape.note_tensor_cores("delta_rule", in.v.dtype(), cuda::delta_chunk_sizes(in),
                         "keys of " + std::to_string(in.q.dim(3)) + " and values of " + std::to_string(in.v.dim(3)) +
                             "; keys of 32, 64 or 96 with values of a multiple of 32 have one");
  if (tape.device().targets_cuda() && cuda::has_delta_chunks(in)) chunks = cuda::DeltaChunks(tape, in);
  tape.run(
      "delta_rule", cost(in, 1, 1),
      [&] { dispatch(in.v.dtype(), [&](auto zero) { cpu::delta_rule_forward<decltype(zero)>(in, out.o, end, {}); }); },
      [&] {
        chunks.solve ? cuda::delta_chunks_forward(tape.stream(), in, chunks, out.o, end)
                     : cuda::delta_rule_forward(tape.stream(), in, out.o, end);
      });
  std::vector<Tensor*> outputs{&out.o};
  if (out.end) outputs.push_back(&out.end);
  tape.record({in.q, in.k, in.v, in.beta, in.g, in.state.start}, outputs, [in, chunks, o = out.o, end_state = out.end](Tape& t) {
    const Tensor d_o = t.grad_or_zeros(o), d_end = end_state ? t.grad(end_state) : Tensor();
    t.device().targets_cuda() ? backward_on_cuda(t, in, chunks, d_o, d_end) : backward_on_cpu(t, in, d_o, d_end);
  });
  return out;
}

namespace {

/// One row of weights: w runs from scale q_t back to the first token.
template <class T>
void weights_of_query(const DeltaRule& in, int64_t sequence, int64_t h, int64_t t, T* row) {
  const int64_t heads = in.q.dim(2), length = in.q.dim(1), keys = in.q.dim(3), first = sequence * length;
  std::vector<T> w(static_cast<size_t>(keys));
  const T* q = in.q.data<T>() + ((first + t) * heads + h) * keys;
  for (int64_t n = 0; n < keys; ++n) w[static_cast<size_t>(n)] = static_cast<T>(in.scale) * q[n];
  for (int64_t i = t; i >= 0; --i) {
    const int64_t token = (first + i) * heads + h;
    const T *k = in.k.data<T>() + token * keys, decay = in.g ? std::exp(in.g.data<T>()[token]) : T(1);
    T along = 0;
    for (int64_t n = 0; n < keys; ++n) along += k[n] * w[static_cast<size_t>(n)];
    row[i] = in.beta.data<T>()[token] * along;
    for (int64_t n = 0; n < keys; ++n) w[static_cast<size_t>(n)] = decay * (w[static_cast<size_t>(n)] - row[i] * k[n]);
  }
  std::fill(row + t + 1, row + length, T(0));
}

}  // namespace

Tensor delta_rule_weights(Tape& tape, const DeltaRule& in, const Sequences& sequences) {
  check("delta_rule_weights", in);
  const int64_t length = in.q.dim(1), heads = in.q.dim(2), maps = sequences.count * heads;
  const Tensor weights = tape.empty({maps, length, length}, accumulation_dtype(in.v.dtype()));
  const double steps = static_cast<double>(maps * length * (length + 1)) / 2;
  tape.run(
      "delta_rule_weights", {steps * static_cast<double>(5 * in.q.dim(3)), static_cast<double>(weights.bytes())},
      [&] {
        dispatch(in.v.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_for(maps * length, [&](int64_t row) {
            const int64_t map = row / length;
            weights_of_query<T>(in, sequences.first + map / heads, map % heads, row % length, weights.data<T>() + row * length);
          });
        });
      },
      [&] { cuda::delta_rule_weights(tape.stream(), in, sequences, weights); });
  return weights;
}

}  // namespace saccade
