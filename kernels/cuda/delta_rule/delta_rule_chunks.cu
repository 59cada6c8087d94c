#include "kernels/ops/delta_rule/delta_rule_chunks_cuda.h"

#include "kernels/cuda/delta_rule/delta_rule_chunks.cuh"

namespace saccade::cuda {
namespace {

template <int K, int V>
constexpr int prepare_bytes() {
  return kRowBytes<K> + 2 * kSquareBytes + std::max(2 * kSquareFloats * 4, kRowBytes<K> + 2 * kRowBytes<V>);
}

/// T, T diag(e^G), M, L (into states) and e^{G_L}.
template <int K, int V>
__global__ void __launch_bounds__(kChunkThreads) prepare_kernel(DeltaProblem p) {
  extern __shared__ __align__(16) char memory[];
  __shared__ DeltaGates gates;
  const DeltaChunk<K> chunk(p);
  SharedPieces pieces{memory}, later;
  const auto k = pieces.matrix<K>(kChunkTokens);
  const auto solve = pieces.matrix<kChunkTokens>(kChunkTokens), decayed = pieces.matrix<kChunkTokens>(kChunkTokens);
  later = pieces;
  float *a = pieces.floats(kSquareFloats), *t = pieces.floats(kSquareFloats);
  const auto w = later.matrix<K>(kChunkTokens);
  const auto v = later.matrix<V>(kChunkTokens), u = later.matrix<V>(kChunkTokens);

  k.template load<kChunkTokens>(chunk.keys(p.k), chunk.row_k, chunk.count);
  copy_async_commit();
  gates.load(p, chunk);
  copy_async_wait();
  __syncthreads();
  for_parts<kChunkTokens, kChunkTokens>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::transposed, K>(c, k, row, k, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) {
      a[i * kSquareStride + j] = j < i ? gates.beta[i] * gates.gamma(i, j) * x : 0.0f;
      a[i * kSquareStride + j + 1] = j + 1 < i ? gates.beta[i] * gates.gamma(i, j + 1) * y : 0.0f;
    });
  });
  __syncthreads();
  invert_unit_lower(a, t);
  for (int item = threadIdx.x; item < kChunkTokens * kChunkTokens / 2; item += kChunkThreads) {
    const int i = item / 32, j = item % 32 * 2;
    const float x = j <= i ? t[i * kSquareStride + j] * gates.beta[j] : 0.0f;
    const float y = j + 1 <= i ? t[i * kSquareStride + j + 1] * gates.beta[j + 1] : 0.0f;
    solve.put(i, j, x, y);
    decayed.put(i, j, x * gates.head[j], y * gates.head[j + 1]);
    store_pair(chunk.square(p.solve) + i * kChunkTokens + j, x, y);
    if (p.g) store_pair(chunk.square(p.solve_decayed) + i * kChunkTokens + j, x * gates.head[j], y * gates.head[j + 1]);
  }
  __syncthreads();
  const auto fetch = [&](int column) {
    v.template load<kChunkTokens>(chunk.values(p, p.v) + column, chunk.row_v, chunk.count);
    copy_async_commit();
  };
  fetch(0);
  for_parts<kChunkTokens, K>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, kChunkTokens>(c, decayed, row, k, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) { w.put(i, j, gates.tail[i] * x, gates.tail[i] * y); });
  });
  copy_async_wait();
  __syncthreads();
  for_parts<K, K>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, k, row, w, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) { store_pair(p.transition + (chunk.at * K + i) * K + j, -x, -y); });
  });
  for (int at = 0; at < p.values; at += V) {
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::plain, Form::plain, kChunkTokens>(c, solve, row, v, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) { u.put(i, j, gates.tail[i] * x, gates.tail[i] * y); });
    });
    __syncthreads();
    if (at + V < p.values) fetch(at + V);
    for_parts<K, V>([&](auto& c, int row, int column) {
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, k, row, u, column);
      each_pair(c, row, column,
                [&](int i, int j, float x, float y) { store_pair(chunk.state(p, p.states) + int64_t{i} * p.values + at + j, x, y); });
    });
    copy_async_wait();
    __syncthreads();
  }
  if (threadIdx.x == 0) p.last[chunk.at] = gates.head[kChunkTokens - 1];
}

template <int K, int V>
constexpr int outputs_bytes() {
  return 2 * kRowBytes<K> + SharedMatrix<V>::bytes(K) + 2 * kSquareBytes + 2 * kRowBytes<V>;
}

/// o, or with kCorrected X alone, from the states.
template <int K, int V, bool kCorrected>
__global__ void __launch_bounds__(kChunkThreads) outputs_kernel(DeltaProblem p, bf16* o) {
  extern __shared__ __align__(16) char memory[];
  __shared__ DeltaGates gates;
  const DeltaChunk<K> chunk(p);
  SharedPieces pieces{memory};
  const auto q = pieces.matrix<K>(kChunkTokens), k = pieces.matrix<K>(kChunkTokens);
  const auto s = pieces.matrix<V>(K), v = pieces.matrix<V>(kChunkTokens), r = pieces.matrix<V>(kChunkTokens);
  const auto solve = pieces.matrix<kChunkTokens>(kChunkTokens), scores = pieces.matrix<kChunkTokens>(kChunkTokens);
  const auto fetch = [&](int column) {
    v.template load<kChunkTokens>(chunk.values(p, p.v) + column, chunk.row_v, chunk.count);
    s.template load<K>(chunk.state(p, p.states) + column, p.values, K);
  };
  k.template load<kChunkTokens>(chunk.keys(p.k), chunk.row_k, chunk.count);
  if (!kCorrected) q.template load<kChunkTokens>(chunk.keys(p.q), chunk.row_k, chunk.count);
  solve.template load<kChunkTokens>(chunk.square(p.solve), kChunkTokens, kChunkTokens);
  fetch(0);
  copy_async_commit();
  gates.load(p, chunk);
  copy_async_wait();
  __syncthreads();
  if (!kCorrected) put_scores(p, gates, q, k, scores);
  for (int at = 0; at < p.values; at += V) {
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::plain, Form::plain, K>(c, k, row, s, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) {
        const float2 value = v.pair(i, j);
        r.put(i, j, value.x - gates.head[i] * x, value.y - gates.head[i] * y);
      });
    });
    __syncthreads();
    bf16* out = chunk.values(p, o) + at;
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::plain, Form::plain, kChunkTokens>(c, solve, row, r, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) {
        if (!kCorrected)
          v.put(i, j, x, y);
        else if (i < chunk.count)
          store_pair(out + i * chunk.row_v + j, x, y);
      });
    });
    __syncthreads();
    if (!kCorrected) {
      for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
        add_product<Form::plain, Form::plain, K>(c, q, row, s, column);
        each_pair(c, row, column, [&](int i, int, float& x, float& y) { x *= p.scale * gates.head[i], y *= p.scale * gates.head[i]; });
        add_product<Form::plain, Form::plain, kChunkTokens>(c, scores, row, v, column);
        each_pair(c, row, column, [&](int i, int j, float x, float y) {
          if (i < chunk.count) store_pair(out + i * chunk.row_v + j, x, y);
        });
      });
      __syncthreads();
    }
    if (at + V >= p.values) break;
    fetch(at + V);
    copy_async_commit();
    copy_async_wait();
    __syncthreads();
  }
}

template <bool kCorrected>
void launch_outputs(Stream stream, const DeltaRule& in, const DeltaProblem& p, bf16* o) {
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    launch_chunks(stream, outputs_kernel<k(), v(), kCorrected>, p.blocks, kChunkThreads, outputs_bytes<k(), v()>(), p, o);
  });
}

void prepare(Stream stream, const DeltaRule& in, const DeltaProblem& p) {
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    static_assert(std::max(prepare_bytes<k(), v()>(), outputs_bytes<k(), v()>()) + (8 << 10) <= kDeltaChunkShared);
    launch_chunks(stream, prepare_kernel<k(), v()>, p.blocks, kChunkThreads, prepare_bytes<k(), v()>(), p);
  });
}

DeltaProblem delta_problem(const DeltaRule& in, const DeltaChunks& scratch) {
  const auto chunks = static_cast<int>(scratch.solve.dim(1));
  DeltaProblem p{};
  p.length = static_cast<int>(in.q.dim(1)), p.heads = static_cast<int>(in.q.dim(2)), p.values = static_cast<int>(in.v.dim(3));
  p.chunks = chunks, p.blocks = chunks * static_cast<int>(in.q.dim(0) * in.q.dim(2));
  p.scale = static_cast<float>(in.scale);
  p.q = pointer_or_null<bf16>(in.q), p.k = pointer_or_null<bf16>(in.k), p.v = pointer_or_null<bf16>(in.v);
  p.beta = elements(in.beta), p.g = elements(in.g);
  p.solve = pointer_or_null<bf16>(scratch.solve), p.solve_decayed = pointer_or_null<bf16>(scratch.solve_decayed);
  p.transition = pointer_or_null<bf16>(scratch.states.transition), p.states = pointer_or_null<bf16>(scratch.states.states);
  p.d_states = pointer_or_null<bf16>(scratch.gradients.states), p.x = pointer_or_null<bf16>(scratch.x),
  p.dv = pointer_or_null<bf16>(scratch.dv);
  p.last = pointer<float>(scratch.states.last);
  return p;
}

}  // namespace

void delta_chunks_forward(Stream stream, const DeltaRule& in, const DeltaChunks& scratch, const Tensor& o, const Tensor& end) {
  const DeltaProblem p = delta_problem(in, scratch);
  prepare(stream, in, p);
  chunk_states_forward(stream, scratch.states, in.state.start, end);
  launch_outputs<false>(stream, in, p, pointer<bf16>(o));
}

void delta_chunks_backward(Stream stream, const DeltaRule& in, const DeltaChunks& scratch, const DeltaTargets& out) {
  DeltaProblem p = delta_problem(in, scratch);
  p.d_o = pointer<bf16>(out.d_o);
  launch_outputs<true>(stream, in, p, p.x);
  delta_local_gradients(stream, in, p);
  chunk_states_backward(stream, scratch.gradients, out.d_end, out.d_start.tensor, out.d_start.add);
  delta_value_gradients(stream, in, p);
  delta_chunk_targets(stream, in, p, out);
}

}  // namespace saccade::cuda
