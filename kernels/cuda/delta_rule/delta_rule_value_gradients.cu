#include "kernels/cuda/delta_rule/delta_rule_chunks.cuh"

namespace saccade::cuda {
namespace {

template <int K, int V>
constexpr int local_gradients_bytes() {
  return 2 * kRowBytes<K> + 2 * kSquareBytes + 3 * kRowBytes<V>;
}

/// A chunk's own part of the gradient of the state at its start, into d_states: scale (e^G ∘ q)ᵀ dO − (e^G ∘ k)ᵀ Tᵀ Pᵀ dO
template <int K, int V>
__global__ void __launch_bounds__(kChunkThreads) local_gradients_kernel(DeltaProblem p) {
  extern __shared__ __align__(16) char memory[];
  __shared__ DeltaGates gates;
  const DeltaChunk<K> chunk(p);
  SharedPieces pieces{memory};
  const auto q = pieces.matrix<K>(kChunkTokens), k = pieces.matrix<K>(kChunkTokens);
  const auto solve = pieces.matrix<kChunkTokens>(kChunkTokens), scores = pieces.matrix<kChunkTokens>(kChunkTokens);
  const auto d_o = pieces.matrix<V>(kChunkTokens), h = pieces.matrix<V>(kChunkTokens), z = pieces.matrix<V>(kChunkTokens);
  const auto fetch = [&](int column) {
    d_o.template load<kChunkTokens>(chunk.values(p, p.d_o) + column, chunk.row_v, chunk.count);
    copy_async_commit();
  };
  k.template load<kChunkTokens>(chunk.keys(p.k), chunk.row_k, chunk.count);
  q.template load<kChunkTokens>(chunk.keys(p.q), chunk.row_k, chunk.count);
  solve.template load<kChunkTokens>(chunk.square(p.solve_decayed), kChunkTokens, kChunkTokens);
  fetch(0);
  gates.load(p, chunk);
  copy_async_wait();
  __syncthreads();
  put_scores(p, gates, q, k, scores);
  __syncthreads();
  for (int item = threadIdx.x; item < kChunkTokens * K / 2; item += kChunkThreads) {
    const int i = item / (K / 2), j = item % (K / 2) * 2;
    const float2 x = q.pair(i, j);
    const float factor = p.scale * gates.head[i];
    q.put(i, j, factor * x.x, factor * x.y);
  }
  for (int at = 0; at < p.values; at += V) {
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, scores, row, d_o, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) { h.put(i, j, x, y); });
    });
    __syncthreads();
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, solve, row, h, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) { z.put(i, j, -x, -y); });
    });
    __syncthreads();
    for_parts<K, V>([&](auto& c, int row, int column) {
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, q, row, d_o, column);
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, k, row, z, column);
      each_pair(c, row, column,
                [&](int i, int j, float x, float y) { store_pair(chunk.state(p, p.d_states) + int64_t{i} * p.values + at + j, x, y); });
    });
    __syncthreads();
    if (at + V >= p.values) break;
    fetch(at + V);
    copy_async_wait();
    __syncthreads();
  }
}

template <int K, int V>
constexpr int value_gradients_bytes() {
  return 2 * kRowBytes<K> + SharedMatrix<V>::bytes(K) + 2 * kSquareBytes + 2 * kRowBytes<V>;
}

/// Y' = Tᵀ (Pᵀ dO + e^{G_L − G} ∘ (k dS')), into p.dv
template <int K, int V>
__global__ void __launch_bounds__(kChunkThreads) value_gradients_kernel(DeltaProblem p) {
  extern __shared__ __align__(16) char memory[];
  __shared__ DeltaGates gates;
  const DeltaChunk<K> chunk(p);
  SharedPieces pieces{memory};
  const auto q = pieces.matrix<K>(kChunkTokens), k = pieces.matrix<K>(kChunkTokens);
  const auto ds = pieces.matrix<V>(K), d_o = pieces.matrix<V>(kChunkTokens), dx = pieces.matrix<V>(kChunkTokens);
  const auto solve = pieces.matrix<kChunkTokens>(kChunkTokens), scores = pieces.matrix<kChunkTokens>(kChunkTokens);
  const auto fetch = [&](int column) {
    d_o.template load<kChunkTokens>(chunk.values(p, p.d_o) + column, chunk.row_v, chunk.count);
    ds.template load<K>(chunk.state(p, p.d_states) + column, p.values, K);
    copy_async_commit();
  };
  k.template load<kChunkTokens>(chunk.keys(p.k), chunk.row_k, chunk.count);
  q.template load<kChunkTokens>(chunk.keys(p.q), chunk.row_k, chunk.count);
  solve.template load<kChunkTokens>(chunk.square(p.solve), kChunkTokens, kChunkTokens);
  fetch(0);
  gates.load(p, chunk);
  copy_async_wait();
  __syncthreads();
  put_scores(p, gates, q, k, scores);
  __syncthreads();
  for (int at = 0; at < p.values; at += V) {
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::plain, Form::plain, K>(c, k, row, ds, column);
      each_pair(c, row, column, [&](int i, int, float& x, float& y) { x *= gates.tail[i], y *= gates.tail[i]; });
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, scores, row, d_o, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) { dx.put(i, j, x, y); });
    });
    __syncthreads();
    if (at + V < p.values) fetch(at + V);
    for_parts<kChunkTokens, V>([&](auto& c, int row, int column) {
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, solve, row, dx, column);
      each_pair(c, row, column, [&](int i, int j, float x, float y) {
        if (i < chunk.count) store_pair(chunk.values(p, p.dv) + i * chunk.row_v + at + j, x, y);
      });
    });
    copy_async_wait();
    __syncthreads();
  }
}

}  // namespace

void delta_local_gradients(Stream stream, const DeltaRule& in, const DeltaProblem& p) {
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    static_assert(std::max(local_gradients_bytes<k(), v()>(), value_gradients_bytes<k(), v()>()) + (8 << 10) <= kDeltaChunkShared);
    launch_chunks(stream, local_gradients_kernel<k(), v()>, p.blocks, kChunkThreads, local_gradients_bytes<k(), v()>(), p);
  });
}

void delta_value_gradients(Stream stream, const DeltaRule& in, const DeltaProblem& p) {
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    launch_chunks(stream, value_gradients_kernel<k(), v()>, p.blocks, kChunkThreads, value_gradients_bytes<k(), v()>(), p);
  });
}

}  // namespace saccade::cuda
