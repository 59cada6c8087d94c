#include "kernels/ops/top1_element/top1_element.h"

#include <algorithm>

#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/attention_cuda.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/attention/score_backward.h"
#include "kernels/ops/top1_element/top1_element_cuda.h"

namespace saccade {
namespace {

/// o_t = v_{a(t)}.
template <class T>
void gather_values(const HeadShape& shape, const Tensor& v, const Tensor& selected, const Tensor& o) {
  parallel_for(shape.sequences(), [&](int64_t sequence) {
    const int64_t b = sequence / shape.heads, h = sequence % shape.heads, stride = shape.stride();
    const int32_t* a = selected.data<int32_t>() + sequence * shape.length;
    const T* from = shape.rows<T>(v, b, h);
    T* to = shape.rows<T>(o, b, h);
    for (int64_t t = 0; t < shape.length; ++t) std::copy_n(from + a[t] * stride, shape.width, to + t * stride);
  });
}

/// dv_j (+)= Σ_{t: a(t)=j} dO_t, in order of t.
template <class T>
void scatter_gradients(const HeadShape& shape, const Tensor& d_o, const Tensor& selected, const GradTarget& dv) {
  parallel_for(shape.sequences(), [&](int64_t sequence) {
    const int64_t b = sequence / shape.heads, h = sequence % shape.heads, stride = shape.stride();
    const int32_t* a = selected.data<int32_t>() + sequence * shape.length;
    const T* from = shape.rows<T>(d_o, b, h);
    T* to = shape.rows<T>(dv.tensor, b, h);
    if (!dv.add)
      for (int64_t t = 0; t < shape.length; ++t) std::fill_n(to + t * stride, shape.width, T(0));
    for (int64_t t = 0; t < shape.length; ++t)
      for (int64_t i = 0; i < shape.width; ++i) to[a[t] * stride + i] += from[t * stride + i];
  });
}

void check_forced(const HeadShape& shape, const ScoreOptions& options, const ForcedChoice& f) {
  const int64_t first = options.window > 0 ? std::max<int64_t>(0, f.query - options.window + 1) : 0;
  if (f.head < 0 || f.head >= shape.heads || f.query >= shape.length || f.choice < first || f.choice > f.query)
    throw UsageError("[top1_element] query " + std::to_string(f.query) + " of head " + std::to_string(f.head) + " cannot read position " +
                     std::to_string(f.choice) + "; expected one that it sees");
}

}  // namespace

Top1Element top1_element(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options, bool want_entropy,
                         const ForcedChoice& forced) {
  const HeadShape shape = head_shape("top1_element", q, k, v);
  check_window("top1_element", options);
  if (forced) check_forced(shape, options, forced);
  if (forced && tape.device().targets_cuda()) throw DeviceError("[top1_element] forces a choice on the CPU only");
  const Shape per_query{shape.batch, shape.heads, shape.length};
  const DType statistics = accumulation_dtype(v.dtype());
  shape.note_width(tape, "top1_element", v.dtype());
  Top1Element out{tape.empty(v.shape(), v.dtype()), tape.empty(per_query, DType::i32), tape.empty(per_query, statistics), {}};
  if (want_entropy) out.entropy = tape.empty(per_query, statistics);
  const Tensor soft = tape.empty(v.shape(), v.dtype());
  const double bytes = static_cast<double>(q.bytes() + k.bytes() + 4 * v.bytes() + 2 * out.lse.bytes());
  tape.run(
      "top1_element", {pair_flops(shape, options), bytes},
      [&] {
        dispatch(v.dtype(), [&](auto zero) {
          using T = decltype(zero);
          cpu::dense_forward<T>({shape, options, q, k, v, soft, out.lse, out.entropy, out.selected});
          if (forced) out.selected.data<int32_t>()[forced.head * shape.length + forced.query] = static_cast<int32_t>(forced.choice);
          gather_values<T>(shape, v, out.selected, out.o);
        });
      },
      [&] {
        cuda::attention_forward(tape.stream(), {{shape, options}, q, k, v, soft, out.lse, out.entropy, out.selected});
        cuda::gather_values(tape.stream(), shape, v, out.selected, out.o);
      });
  tape.record({q, k, v}, {&out.o}, [=, o = out.o, selected = out.selected, lse = out.lse](Tape& t) {
    const Tensor d_o = t.grad(o);
    // One pass over all pairs gives every gradient on CUDA: a key that many queries selected costs no more than another.
    if (t.device().targets_cuda())
      return score_backward(t, {"top1_element.backward", shape, options, q, k, v, lse, soft, true, selected}, d_o);
    if (const GradTarget dv = t.grad_target(v))
      t.run("top1_element.values", {static_cast<double>(v.size()), 3.0 * static_cast<double>(v.bytes())},
            [&] { dispatch(v.dtype(), [&](auto zero) { scatter_gradients<decltype(zero)>(shape, d_o, selected, dv); }); });
    if (q.differentiable() || k.differentiable())
      score_backward(t, {"top1_element.backward", shape, options, q, k, v, lse, soft, false, {}}, d_o);
  });
  return out;
}

}  // namespace saccade
