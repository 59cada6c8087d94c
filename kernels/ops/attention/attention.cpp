#include "kernels/ops/attention/attention.h"

#include "kernels/cpu/gemm.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/attention/attention_cuda.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/attention/cpu_score_tile.h"
#include "kernels/ops/attention/score_backward.h"

namespace saccade {

HeadShape head_shape(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto fits = [&](const Tensor& x) {
    return x.rank() == 4 && (x.dim(0) == v.dim(0) || x.dim(0) == 1) && x.dim(1) == v.dim(1) && x.dim(2) == v.dim(2) &&
           x.dim(3) == v.dim(3) && x.dtype() == v.dtype();
  };
  if (v.rank() != 4 || !fits(q) || !fits(k))
    throw UsageError(std::string("[") + op + "] expects q, k, v [B, T, H, d] of one type (q or k may have B = 1), not " +
                     to_string(q.shape()) + ", " + to_string(k.shape()) + ", " + to_string(v.shape()));
  return {v.dim(0), v.dim(1), v.dim(2), v.dim(3)};
}

void check_window(const char* op, const ScoreOptions& options) {
  if (options.window < 0)
    throw UsageError(std::string("[") + op + "] expects a window of 0 (all keys) or more, not " + std::to_string(options.window));
}

void HeadShape::note_width(Tape& tape, const char* op, DType type) const {
  tape.note_tensor_cores(op, type, cuda::on_tensor_cores(type, width),
                         "heads of " + std::to_string(width) + "; those of 16, 32, 64 and 128 have one");
}

Attention attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options, bool want_entropy) {
  const HeadShape shape = head_shape("attention", q, k, v);
  check_window("attention", options);
  const Shape per_query{shape.batch, shape.heads, shape.length};
  const DType statistics = accumulation_dtype(v.dtype());
  shape.note_width(tape, "attention", v.dtype());
  Attention out{tape.empty(v.shape(), v.dtype()), tape.empty(per_query, statistics), {}};
  if (want_entropy) out.entropy = tape.empty(per_query, statistics);
  const double bytes = static_cast<double>(q.bytes() + k.bytes() + 2 * v.bytes() + out.lse.bytes());
  tape.run(
      "attention", {pair_flops(shape, options), bytes},
      [&] {
        dispatch(v.dtype(), [&](auto zero) {
          cpu::dense_forward<decltype(zero)>({shape, options, q, k, v, out.o, out.lse, out.entropy, {}});
        });
      },
      [&] {
        cuda::attention_forward(tape.stream(), {{shape, options}, q, k, v, out.o, out.lse, out.entropy, {}});
      });
  tape.record({q, k, v}, {&out.o}, [=, o = out.o, lse = out.lse](Tape& t) {
    score_backward(t, {"attention.backward", shape, options, q, k, v, lse, o, true, {}}, t.grad(o));
  });
  return out;
}

namespace {

/// P of one head: weights [T, T].
template <class T>
void head_weights(const HeadShape& shape, const ScoreOptions& options, int64_t h, const T* q, const T* k, T* weights) {
  constexpr int64_t kRows = 64;
  const int64_t length = shape.length, stride = shape.stride();
  parallel_ranges(length, kRows, [&](int64_t first, int64_t last) {
    const int64_t n = last - first;
    T* s = weights + first * length;
    cpu::gemm_serial<T>(false, true, n, length, shape.width, static_cast<T>(options.scale), q + first * stride, stride, k, stride, false, s,
                        length);
    cpu::ScoreTile<T> tile{s, n, length, length, first, 0};
    tile.window = options.window;
    tile.slope = static_cast<T>(alibi_slope(options, h, shape.heads));
    cpu::softmax_rows(tile);
  });
}

}  // namespace

Tensor attention_weights(Tape& tape, const Tensor& q, const Tensor& k, const ScoreOptions& options, const Sequences& sequences) {
  const HeadShape shape = head_shape("attention_weights", q, k, q.dim(0) >= k.dim(0) ? q : k);
  check_window("attention_weights", options);
  if (shape.batch > 1 && !sequences.are_in(shape.batch))
    throw UsageError("[attention_weights] has no sequence " + std::to_string(sequences.first + sequences.count - 1) + " of " +
                     std::to_string(shape.batch));
  const int64_t maps = sequences.count * shape.heads;
  const Tensor weights = tape.empty({maps, shape.length, shape.length}, accumulation_dtype(q.dtype()));
  const double flops = 2.0 * static_cast<double>(maps * shape.width) * visible_pairs(shape.length, options.window);
  tape.run(
      "attention_weights", {flops, static_cast<double>(weights.bytes())},
      [&] {
        dispatch(q.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for (int64_t map = 0; map < maps; ++map) {
            const int64_t b = sequences.first + map / shape.heads, h = map % shape.heads;
            head_weights<T>(shape, options, h, shape.rows<T>(q, b, h), shape.rows<T>(k, b, h),
                            weights.data<T>() + map * shape.length * shape.length);
          }
        });
      },
      [&] { cuda::attention_weights(tape.stream(), shape, options, q, k, sequences, 0, {}, {}, weights); });
  return weights;
}

}  // namespace saccade
