#include "kernels/ops/decoding/decoding.h"

#include <algorithm>

#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/engine/transfer.h"
#include "kernels/ops/attention/cpu_dense.h"
#include "kernels/ops/decoding/decoding_cuda.h"
#include "kernels/ops/decoding/position_tasks.h"

namespace saccade {
namespace {

HeadShape query_shape(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const TokenPosition& position) {
  const bool fits = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && (q.dim(0) == v.dim(0) || q.dim(0) == 1) &&
                    (k.dim(0) == v.dim(0) || k.dim(0) == 1) && k.dim(1) == v.dim(1) && q.dim(2) == v.dim(2) && k.dim(2) == v.dim(2) &&
                    q.dim(3) == v.dim(3) && k.dim(3) == v.dim(3) && position.first + q.dim(1) <= v.dim(1);
  expect(fits, op, "q is ", q, ", k ", k, ", v ", v, ", first position ", position.first,
         "; expected [B, n, H, d] and twice [B, capacity, H, d] with first + n <= capacity");
  return {v.dim(0), q.dim(1), v.dim(2), v.dim(3)};
}

/// Multiply-adds of scores and sums over all keys seen, and what they read.
Cost cost_of(const HeadShape& shape, const ScoreOptions& options, const Tensor& k, const TokenPosition& position, int products) {
  const int64_t seen = std::min(options.window > 0 ? options.window : k.dim(1), position.first + shape.length);
  const double elements = static_cast<double>(shape.sequences() * seen * shape.width);
  return {2.0 * products * elements * static_cast<double>(shape.length), products * elements * static_cast<double>(byte_size(k.dtype()))};
}

/// o_t = v_{a(t)}.
template <class T>
void gather_values(const HeadShape& shape, const Tensor& v, const Tensor& selected, const Tensor& o) {
  const HeadShape cache{shape.batch, v.dim(1), shape.heads, shape.width};
  for (int64_t batch_head = 0; batch_head < shape.sequences(); ++batch_head) {
    const int64_t b = batch_head / shape.heads, h = batch_head % shape.heads;
    for (int64_t r = 0; r < shape.length; ++r)
      std::copy_n(cache.rows<T>(v, b, h) + selected.data<int32_t>()[batch_head * shape.length + r] * shape.stride(), shape.width,
                  shape.rows<T>(o, b, h) + r * shape.stride());
  }
}

}  // namespace

Tensor position_on_device(Arena& arena) {
  if (!arena.device().targets_cuda()) return {};
  const Tensor position = arena.allocate({1}, DType::i32);
  if (!arena.device().is_plan()) fill_zero(position);
  return position;
}

void append_rows(Tape& tape, const Tensor& rows, const Tensor& cache, const TokenPosition& position) {
  const int64_t n = rows.dim(1), capacity = cache.dim(1), batch = rows.dim(0);
  expect((cache.dim(0) == batch || cache.dim(0) == 1) && position.first + n <= capacity &&
             rows.size() / (batch * n) == cache.size() / (cache.dim(0) * capacity) && rows.dtype() == cache.dtype(),
         "append_rows", "rows are ", rows, ", the cache ", cache, ", first position ", position.first,
         "; expected [B, n, …] and [B, capacity, …] with first + n <= capacity");
  tape.run(
      "append_rows", {0, 2.0 * static_cast<double>(rows.bytes())},
      [&] {
        dispatch(rows.dtype(), [&](auto zero) {
          using T = decltype(zero);
          const int64_t row = rows.size() / (batch * n), own = cache.dim(0) == 1 ? 0 : capacity;
          for (int64_t b = 0; b < batch; ++b)
            std::copy_n(rows.data<T>() + b * n * row, n * row, cache.data<T>() + (b * own + position.of(b)) * row);
        });
      },
      [&] { cuda::append_rows(tape.stream(), rows, cache, position); });
}

void copy_sequences(Tape& tape, const Tensor& from, const Tensor& index, const Tensor& to, int64_t n) {
  const int64_t row = to.size() / to.dim(0), sequences = to.dim(0);
  expect(from.dtype() == to.dtype() && from.size() / from.dim(0) == row && n <= row && index.dtype() == DType::i32 &&
             (index.size() == sequences || (sequences == 1 && from.dim(0) == 1)),
         "copy_sequences", "from is ", from, ", to ", to, ", the index ", index, ", elements ", n,
         "; expected [A, …], [B, …] with as many elements in a sequence, i32 [B]");
  tape.run(
      "copy_sequences", {0, 2.0 * static_cast<double>(sequences * n * byte_size(to.dtype()))},
      [&] {
        dispatch(to.dtype(), [&](auto zero) {
          using T = decltype(zero);
          parallel_for(sequences, [&](int64_t b) {
            const int64_t a = from.dim(0) == 1 ? 0 : index.data<int32_t>()[b];
            if (a < 0 || a >= from.dim(0)) throw std::logic_error("sequence " + std::to_string(a) + " of " + std::to_string(from.dim(0)));
            std::copy_n(from.data<T>() + a * row, n, to.data<T>() + b * row);
          });
        });
      },
      [&] { cuda::copy_sequences(tape.stream(), from, index, to, n); });
}

void advance(Tape& tape, const TokenPosition& position, int64_t n) {
  if (!position.on_device) return;
  tape.run(
      "advance", {},
      [&] {
        int32_t* at = position.on_device.data<int32_t>();
        for (int64_t b = 0; b < position.on_device.size(); ++b) at[b] += static_cast<int32_t>(n);
      },
      [&] { cuda::advance(tape.stream(), position.on_device, n); });
}

Tensor cached_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                        const TokenPosition& position) {
  const HeadShape shape = query_shape("cached_attention", q, k, v, position);
  const Shape heads{shape.batch, shape.length, shape.heads, shape.width};
  const Tensor o = tape.empty(heads, v.dtype());
  const bool on_cuda = tape.device().targets_cuda();
  const Tensor scratch = on_cuda ? tape.empty(cuda::attention_scratch(shape, options, v.dim(1)), DType::f32)
                                 : tape.empty({shape.batch, shape.heads, shape.length}, v.dtype());
  tape.run(
      "cached_attention", cost_of(shape, options, k, position, 2),
      [&] {
        dispatch(v.dtype(), [&](auto zero) {
          for_positions_at_once(position, shape.batch, [&](int64_t b, int64_t n, int64_t first) {
            const auto own = [&](const Tensor& x) { return sequences_of(x, b, n); };
            cpu::dense_forward<decltype(zero)>({{n, shape.length, shape.heads, shape.width},
                                                options,
                                                own(q),
                                                own(k),
                                                own(v),
                                                own(o),
                                                own(scratch),
                                                {},
                                                {},
                                                first,
                                                v.dim(1)});
          });
        });
      },
      [&] {
        cuda::cached_attention(tape.stream(), {shape, options, q, k, v, o, position}, scratch);
      });
  return o;
}

CachedElement cached_top1_element(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const ScoreOptions& options,
                                  const TokenPosition& position) {
  const HeadShape shape = query_shape("cached_top1_element", q, k, v, position);
  const Shape per_query{shape.batch, shape.heads, shape.length};
  const CachedElement out{tape.empty({shape.batch, shape.length, shape.heads, shape.width}, v.dtype()), tape.empty(per_query, DType::i32)};
  const bool on_cuda = tape.device().targets_cuda();
  const Tensor scratch = on_cuda ? tape.empty(cuda::split_scratch(shape, options, v.dim(1)), DType::f32) : tape.empty(per_query, v.dtype());
  tape.run(
      "cached_top1_element", cost_of(shape, options, k, position, 1),
      [&] {
        dispatch(v.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for_positions_at_once(position, shape.batch, [&](int64_t b, int64_t n, int64_t first) {
            const auto own = [&](const Tensor& x) { return sequences_of(x, b, n); };
            cpu::dense_forward<T>({{n, shape.length, shape.heads, shape.width},
                                   options,
                                   own(q),
                                   own(k),
                                   own(v),
                                   own(out.o),
                                   own(scratch),
                                   {},
                                   own(out.selected),
                                   first,
                                   v.dim(1)});
          });
          gather_values<T>(shape, v, out.selected, out.o);
        });
      },
      [&] {
        cuda::cached_top1_element(tape.stream(), {shape, options, q, k, v, out.o, position}, out.selected, scratch);
      });
  return out;
}

}  // namespace saccade
