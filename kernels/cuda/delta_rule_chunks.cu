#include "kernels/cuda/delta_rule_chunks.h"

#include "kernels/cuda/delta_rule_chunks.cuh"

namespace saccade::cuda {
namespace {

constexpr int kSquareBytes = SharedMatrix<kChunkTokens>::bytes(kChunkTokens);
template <int W>
constexpr int kRowBytes = SharedMatrix<W>::bytes(kChunkTokens);

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

template <bool kCorrected>
void launch_outputs(Stream stream, const DeltaRule& in, const DeltaProblem& p, bf16* o) {
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    const auto kernel = outputs_kernel<k(), v(), kCorrected>;
    constexpr int shared = outputs_bytes<k(), v()>();
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    kernel<<<static_cast<unsigned>(p.blocks), kChunkThreads, shared, stream>>>(p, o);
    check_launch();
  });
}

void prepare(Stream stream, const DeltaRule& in, const DeltaProblem& p) {
  with_delta_widths(in.q.dim(3), in.v.dim(3),
                    [&](auto k, auto v) { launch_chunks(stream, prepare_kernel<k(), v()>, p.blocks, prepare_bytes<k(), v()>(), p); });
}

}  // namespace

DeltaProblem delta_problem(const DeltaRule& in, const DeltaChunks& scratch) {
  const auto bf16_of = [](const Tensor& x) { return x ? pointer<bf16>(x) : nullptr; };
  const auto chunks = static_cast<int>(scratch.solve.dim(1));
  DeltaProblem p{};
  p.length = static_cast<int>(in.q.dim(1)), p.heads = static_cast<int>(in.q.dim(2)), p.values = static_cast<int>(in.v.dim(3));
  p.chunks = chunks, p.blocks = chunks * static_cast<int>(in.q.dim(0) * in.q.dim(2));
  p.scale = static_cast<float>(in.scale);
  p.q = bf16_of(in.q), p.k = bf16_of(in.k), p.v = bf16_of(in.v);
  p.beta = elements(in.beta), p.g = elements(in.g);
  p.solve = bf16_of(scratch.solve), p.solve_decayed = bf16_of(scratch.solve_decayed);
  p.transition = bf16_of(scratch.states.transition), p.states = bf16_of(scratch.states.states);
  p.d_states = bf16_of(scratch.gradients.states), p.x = bf16_of(scratch.x), p.dv = bf16_of(scratch.dv);
  p.last = pointer<float>(scratch.states.last);
  return p;
}

void delta_chunks_forward(Stream stream, const DeltaRule& in, const DeltaChunks& scratch, const Tensor& o, const Tensor& end) {
  const DeltaProblem p = delta_problem(in, scratch);
  prepare(stream, in, p);
  chunk_states_forward(stream, scratch.states, in.state.start, end);
  launch_outputs<false>(stream, in, p, pointer<bf16>(o));
}

void delta_chunks_backward(Stream stream, const DeltaRule& in, const DeltaChunks& scratch, const DeltaTargets& out) {
  DeltaProblem p = delta_problem(in, scratch);
  p.d_o = pointer<bf16>(out.d_o);
  prepare(stream, in, p);
  chunk_states_forward(stream, scratch.states, in.state.start, {});
  launch_outputs<true>(stream, in, p, p.x);
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    launch_chunks(stream, local_gradients_kernel<k(), v()>, p.blocks, local_gradients_bytes<k(), v()>(), p);
  });
  chunk_states_backward(stream, scratch.gradients, out.d_end, out.d_start.tensor, out.d_start.add);
  with_delta_widths(in.q.dim(3), in.v.dim(3), [&](auto k, auto v) {
    launch_chunks(stream, value_gradients_kernel<k(), v()>, p.blocks, value_gradients_bytes<k(), v()>(), p);
  });
  delta_chunk_targets(stream, in, p, out);
}

}  // namespace saccade::cuda
