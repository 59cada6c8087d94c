#include "kernels/ops/attention/score_backward.h"

#include "kernels/ops/attention/attention_cuda.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/attention/cpu_head_gradient.h"

namespace saccade {

double pair_flops(const HeadShape& shape, const ScoreOptions& options) {
  return 4.0 * static_cast<double>(shape.sequences() * shape.width) * visible_pairs(shape.length, options.window);
}

namespace {

/// Part i of the rows of packed [rows, 3, n]: all from where it begins on.
GradTarget part(const Tensor& packed, int64_t i) {
  const Tensor parts = packed.reshape({3 * packed.dim(0), packed.dim(2)});
  return {parts.slice(i, parts.dim(0)), false};
}

}  // namespace

void score_backward(Tape& tape, const ScoreBackward& in, const Tensor& d_o) {
  const auto unless_packed = [&](const Tensor& x) { return in.packed ? Tensor() : x; };
  HeadGradient dq(tape, in.op, unless_packed(in.q), in.shape, false),
      dk(tape, in.op, unless_packed(in.k), in.shape, in.k.id() == in.q.id());
  HeadGradient dv(tape, in.op, unless_packed(in.values ? in.v : Tensor()), in.shape, in.v.id() == in.q.id() || in.v.id() == in.k.id());
  const Tensor delta = tape.empty(in.lse.shape(), in.lse.dtype());
  Tensor sums;
  if (tape.device().targets_cuda() && cuda::sums_queries(in.shape, in.options, in.v.dtype()) && !in.selected)
    sums = tape.empty(cuda::query_sums(in.shape), DType::f32);
  cpu::DenseBackward dense{in.shape, in.options, in.q, in.k, in.v, d_o, in.lse, delta, dq.target(), dk.target(), dv.target()};
  if (in.packed) dense.dq = part(in.packed, 0), dense.dk = part(in.packed, 1), dense.dv = part(in.packed, 2);
  const int products = 2 + (dense.dq ? 1 : 0) + (dense.dk ? 1 : 0) + (dense.dv ? 1 : 0);
  const double bytes = static_cast<double>(in.q.bytes() + in.k.bytes() + (products + 1) * in.v.bytes() + 2 * in.lse.bytes());
  tape.run(
      in.op, {0.5 * products * pair_flops(in.shape, in.options), bytes},
      [&] {
        dispatch(in.v.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::output_dots<T>(in.shape, d_o, in.soft, delta);
          cpu::dense_backward<T>(dense);
        });
      },
      [&] {
        cuda::output_dots(tape.stream(), in.shape, d_o, in.soft, delta, sums);
        cuda::attention_backward(tape.stream(), {{in.shape, in.options},
                                                 in.q,
                                                 in.k,
                                                 in.v,
                                                 d_o,
                                                 in.lse,
                                                 delta,
                                                 in.selected,
                                                 dense.dq.tensor,
                                                 dense.dk.tensor,
                                                 dense.dv.tensor,
                                                 dense.dq.add,
                                                 dense.dk.add,
                                                 dense.dv.add,
                                                 sums,
                                                 in.packed ? 3 * in.shape.stride() : 0,
                                                 in.rotary_base});
      });
  dq.deliver();
  dk.deliver();
  dv.deliver();
}

}  // namespace saccade
