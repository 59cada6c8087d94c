#include "kernels/ops/wkv7/wkv7_chunks_cuda.h"

#include "kernels/cuda/wkv7/wkv7_chunks.cuh"

namespace saccade::cuda {
namespace {

constexpr int kSquareBytes = SharedMatrix<kChunkTokens>::bytes(kChunkTokens);
template <int N>
constexpr int kRowBytes = SharedMatrix<N>::bytes(kChunkTokens);

template <int N>
constexpr int prepare_bytes() {
  return 4 * kRowBytes<N> + 2 * kSquareBytes + std::max({2 * kSquareFloats * 4, Wkv7Decays<N>::kFloats * 4, 3 * kRowBytes<N>});
}

/// T, M, L (into states) and e^{G_L}.
template <int N>
__global__ void __launch_bounds__(kChunkThreads) prepare_kernel(Wkv7Problem p) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Wkv7Decays<N> decays;
  const Wkv7Chunk<N> chunk(p);
  SharedPieces pieces{memory};
  const auto a = pieces.matrix<N>(kChunkTokens), k = pieces.matrix<N>(kChunkTokens), b = pieces.matrix<N>(kChunkTokens),
             v = pieces.matrix<N>(kChunkTokens);
  const auto ak = pieces.matrix<kChunkTokens>(kChunkTokens), solve = pieces.matrix<kChunkTokens>(kChunkTokens);
  SharedPieces later = pieces, first = pieces;
  float *ab = pieces.floats(kSquareFloats), *t = pieces.floats(kSquareFloats), *sums = first.floats(Wkv7Decays<N>::kFloats);
  const auto w = later.matrix<N>(kChunkTokens), h = later.matrix<N>(kChunkTokens), u = later.matrix<N>(kChunkTokens);

  v.template load<kChunkTokens>(chunk.token(p.v, 0), chunk.stride, chunk.count);
  copy_async_commit();
  decays.load(p, chunk, sums);
  put_factor(chunk, sums, p.a, Power::before, a);
  put_factor(chunk, sums, p.k, Power::inverse, k);
  put_factor(chunk, sums, p.b, Power::inverse, b);
  copy_async_wait();
  __syncthreads();
  put_triangle(a, k, true, ak);
  for_parts<kChunkTokens, kChunkTokens>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::transposed, N>(c, a, row, b, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) {
      ab[i * kSquareStride + j] = j < i ? -x : 0.0f;
      ab[i * kSquareStride + j + 1] = j + 1 < i ? -y : 0.0f;
    });
  });
  __syncthreads();
  invert_unit_lower(ab, t);
  for (int item = threadIdx.x; item < kChunkTokens * kChunkTokens / 2; item += kChunkThreads) {
    const int i = item / 32, j = item % 32 * 2;
    const float x = j <= i ? t[i * kSquareStride + j] : 0.0f, y = j + 1 <= i ? t[i * kSquareStride + j + 1] : 0.0f;
    solve.put(i, j, x, y);
    store_pair(chunk.square(p.solve) + i * kChunkTokens + j, x, y);
  }
  __syncthreads();
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, kChunkTokens>(c, solve, row, a, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) { w.put(i, j, decays.middle[j] * x, decays.middle[j + 1] * y); });
  });
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, kChunkTokens>(c, ak, row, v, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) { h.put(i, j, x, y); });
  });
  __syncthreads();
  for_parts<N, N>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, b, row, w, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) {
      store_pair(p.transition + (chunk.at * N + i) * N + j, decays.rest[i] * x, decays.rest[i] * y);
    });
  });
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, kChunkTokens>(c, solve, row, h, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) { u.put(i, j, x, y); });
  });
  __syncthreads();
  for_parts<N, N>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, k, row, v, column);
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, b, row, u, column);
    each_pair(c, row, column, [&](int i, int j, float x, float y) {
      store_pair(chunk.state(p.states) + i * N + j, decays.rest[i] * x, decays.rest[i] * y);
    });
  });
  if (threadIdx.x < N) p.last[chunk.at * N + threadIdx.x] = decays.all[threadIdx.x];
}

template <int N>
constexpr int outputs_bytes() {
  return 5 * kRowBytes<N> + SharedMatrix<N>::bytes(N) + kSquareBytes + std::max(3 * kSquareBytes, Wkv7Decays<N>::kFloats * 4);
}

template <int N>
__global__ void __launch_bounds__(kChunkThreads) outputs_kernel(Wkv7Problem p, bf16* o) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Wkv7Decays<N> decays;
  const Wkv7Chunk<N> chunk(p);
  SharedPieces pieces{memory};
  const auto r = pieces.matrix<N>(kChunkTokens), a = pieces.matrix<N>(kChunkTokens), k = pieces.matrix<N>(kChunkTokens),
             b = pieces.matrix<N>(kChunkTokens), v = pieces.matrix<N>(kChunkTokens), s = pieces.matrix<N>(N);
  const auto solve = pieces.matrix<kChunkTokens>(kChunkTokens);
  SharedPieces first = pieces;
  const auto rk = pieces.matrix<kChunkTokens>(kChunkTokens), rb = pieces.matrix<kChunkTokens>(kChunkTokens),
             ak = pieces.matrix<kChunkTokens>(kChunkTokens);
  float* sums = first.floats(Wkv7Decays<N>::kFloats);
  const auto h = k, x = b;  // in their place

  v.template load<kChunkTokens>(chunk.token(p.v, 0), chunk.stride, chunk.count);
  solve.template load<kChunkTokens>(chunk.square(p.solve), kChunkTokens, kChunkTokens);
  copy_async_commit();
  decays.load(p, chunk, sums);
  put_factor(chunk, sums, p.r, Power::own, r);
  put_factor(chunk, sums, p.a, Power::before, a);
  put_factor(chunk, sums, p.k, Power::inverse, k);
  put_factor(chunk, sums, p.b, Power::inverse, b);
  put_state(chunk.state(p.states), decays.middle, s);
  copy_async_wait();
  __syncthreads();
  put_triangle(r, k, false, rk);
  put_triangle(r, b, false, rb);
  put_triangle(a, k, true, ak);
  __syncthreads();
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, N>(c, a, row, s, column);
    add_product<Form::plain, Form::plain, kChunkTokens>(c, ak, row, v, column);
    each_pair(c, row, column, [&](int i, int j, float one, float two) { h.put(i, j, one, two); });
  });
  __syncthreads();
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, kChunkTokens>(c, solve, row, h, column);
    each_pair(c, row, column, [&](int i, int j, float one, float two) { x.put(i, j, one, two); });
  });
  __syncthreads();
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, N>(c, r, row, s, column);
    add_product<Form::plain, Form::plain, kChunkTokens>(c, rk, row, v, column);
    add_product<Form::plain, Form::plain, kChunkTokens>(c, rb, row, x, column);
    each_pair(c, row, column, [&](int i, int j, float one, float two) {
      if (i < chunk.count) store_pair(chunk.token(o, i) + j, one, two);
    });
  });
}

template <int N>
constexpr int local_gradients_bytes() {
  return 4 * kRowBytes<N> + kSquareBytes + std::max(kSquareBytes + kRowBytes<N>, Wkv7Decays<N>::kFloats * 4);
}

/// A chunk's own part of the gradient of the state at its start, into d_states.
template <int N>
__global__ void __launch_bounds__(kChunkThreads) local_gradients_kernel(Wkv7Problem p) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Wkv7Decays<N> decays;
  const Wkv7Chunk<N> chunk(p);
  SharedPieces pieces{memory};
  const auto r = pieces.matrix<N>(kChunkTokens), a = pieces.matrix<N>(kChunkTokens), b = pieces.matrix<N>(kChunkTokens),
             dy = pieces.matrix<N>(kChunkTokens);
  const auto solve = pieces.matrix<kChunkTokens>(kChunkTokens);
  SharedPieces first = pieces;
  const auto rb = pieces.matrix<kChunkTokens>(kChunkTokens);
  const auto y = pieces.matrix<N>(kChunkTokens), h = b;
  float* sums = first.floats(Wkv7Decays<N>::kFloats);

  dy.template load<kChunkTokens>(chunk.token(p.dy, 0), chunk.stride, chunk.count);
  solve.template load<kChunkTokens>(chunk.square(p.solve), kChunkTokens, kChunkTokens);
  copy_async_commit();
  decays.load(p, chunk, sums);
  put_factor(chunk, sums, p.r, Power::own, r);
  put_factor(chunk, sums, p.a, Power::before, a);
  put_factor(chunk, sums, p.b, Power::inverse, b);
  copy_async_wait();
  __syncthreads();
  put_triangle(r, b, false, rb);
  __syncthreads();
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, rb, row, dy, column);
    each_pair(c, row, column, [&](int i, int j, float one, float two) { h.put(i, j, one, two); });
  });
  __syncthreads();
  for_parts<kChunkTokens, N>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, solve, row, h, column);
    each_pair(c, row, column, [&](int i, int j, float one, float two) { y.put(i, j, one, two); });
  });
  __syncthreads();
  for_parts<N, N>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, r, row, dy, column);
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, a, row, y, column);
    each_pair(c, row, column, [&](int i, int j, float one, float two) {
      store_pair(chunk.state(p.d_states) + i * N + j, decays.middle[i] * one, decays.middle[i] * two);
    });
  });
}

Wkv7Problem wkv7_problem(const cpu::Wkv7Inputs& in, const Wkv7Chunks& scratch) {
  Wkv7Problem p{};
  p.length = static_cast<int>(in.shape.length), p.heads = static_cast<int>(in.shape.heads);
  p.chunks = static_cast<int>(scratch.solve.dim(1)), p.blocks = p.chunks * static_cast<int>(in.shape.sequences());
  p.r = pointer_or_null<bf16>(in.r), p.k = pointer_or_null<bf16>(in.k), p.v = pointer_or_null<bf16>(in.v),
  p.a = pointer_or_null<bf16>(in.a), p.b = pointer_or_null<bf16>(in.b);
  p.log_w = elements(in.log_w);
  p.solve = pointer_or_null<bf16>(scratch.solve), p.transition = pointer_or_null<bf16>(scratch.states.transition),
  p.states = pointer_or_null<bf16>(scratch.states.states);
  p.d_states = pointer_or_null<bf16>(scratch.gradients.states), p.last = pointer<float>(scratch.states.last);
  return p;
}

}  // namespace

void wkv7_chunks_forward(Stream stream, const cpu::Wkv7Inputs& in, const Wkv7Chunks& scratch, const Tensor& y, const Tensor& state) {
  const Wkv7Problem p = wkv7_problem(in, scratch);
  with_wkv7_width(in.shape.width, [&](auto n) {
    launch_chunks(stream, prepare_kernel<n()>, p.blocks, kChunkThreads, prepare_bytes<n()>(), p);
    chunk_states_forward(stream, scratch.states, in.start, state);
    launch_chunks(stream, outputs_kernel<n()>, p.blocks, kChunkThreads, outputs_bytes<n()>(), p, pointer<bf16>(y));
  });
}

void wkv7_chunks_backward(Stream stream, const cpu::Wkv7Inputs& in, const Wkv7Chunks& scratch, const cpu::Wkv7Gradients& out) {
  Wkv7Problem p = wkv7_problem(in, scratch);
  p.dy = pointer<bf16>(out.dy);
  with_wkv7_width(in.shape.width, [&](auto n) {
    launch_chunks(stream, local_gradients_kernel<n()>, p.blocks, kChunkThreads, local_gradients_bytes<n()>(), p);
    chunk_states_backward(stream, scratch.gradients, out.d_state, out.d_start.tensor, out.d_start.add);
  });
  wkv7_chunk_targets(stream, p, in.shape.width, out);
}

}  // namespace saccade::cuda
