#include "kernels/cuda/wkv7/wkv7_chunks.cuh"

namespace saccade::cuda {
namespace {

struct Targets {
  Goal<bf16> dr, dk, dv, da, db;
  ElementsTarget d_log_w;
};

/// Shared memory of the kernel.
template <int N>
struct Workspace {
  static constexpr int bytes() {
    return 10 * SharedMatrix<N>::bytes(kChunkTokens) + 2 * SharedMatrix<N>::bytes(N) + 4 * SharedMatrix<kChunkTokens>::bytes(kChunkTokens) +
           Wkv7Decays<N>::kFloats * 4;
  }
  SharedMatrix<N> r, a, k, b, v, dy, x, y, s, ds, h, dx;
  SharedMatrix<kChunkTokens> solve, ak, rk, rb;
  float* sums;

  __device__ explicit Workspace(char* memory) {
    SharedPieces pieces{memory};
    for (SharedMatrix<N>* m : {&r, &a, &k, &b, &v, &dy, &x, &y}) *m = pieces.matrix<N>(kChunkTokens);
    for (SharedMatrix<N>* m : {&s, &ds}) *m = pieces.matrix<N>(N);
    for (SharedMatrix<N>* m : {&h, &dx}) *m = pieces.matrix<N>(kChunkTokens);
    for (SharedMatrix<kChunkTokens>* m : {&solve, &ak, &rk, &rb}) *m = pieces.matrix<kChunkTokens>(kChunkTokens);
    sums = pieces.floats(Wkv7Decays<N>::kFloats);
  }
};

/// Σ_v dS' ∘ S' of every channel, S' the state at the end of the chunk.
template <int N>
__device__ __forceinline__ void end_products(const Wkv7Problem& p, const Wkv7Chunk<N>& chunk, float* to) {
  const int c = threadIdx.x / 4;
  if (c >= N) return;
  const bf16 *ds = chunk.state(p.d_states) + c * N, *s = chunk.state(p.states) + N * N + c * N;
  float sum = 0;
  for (int j = threadIdx.x % 4 * 8; j < N; j += 32) {
    const Pack<bf16> x = load_pack(ds + j), y = load_pack(s + j);
#pragma unroll
    for (int n = 0; n < 8; ++n) sum += to_float(x.v[n]) * to_float(y.v[n]);
  }
  sum = quad_sum(sum);
  if (threadIdx.x % 4 == 0) to[c] = sum;
}

/// X and Y, dv, and the gradients of A_rk, A_rb, A_ak, A_ab in place of rk, rb, ak, solve. Begins and ends with a barrier.
template <int kThreads, int N>
__device__ __forceinline__ void solve_and_pair(const Workspace<N>& m, const Wkv7Chunk<N>& chunk, Goal<bf16> dv) {
  __syncthreads();
  put_triangle<kThreads>(m.r, m.k, false, m.rk);
  put_triangle<kThreads>(m.r, m.b, false, m.rb);
  put_triangle<kThreads>(m.a, m.k, true, m.ak);
  __syncthreads();
  const auto put = [](const SharedMatrix<N>& to) { return [to](int i, int j, float one, float two) { to.put(i, j, one, two); }; };
  for_parts<kChunkTokens, N, kThreads>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, N>(c, m.a, row, m.s, column);
    add_product<Form::plain, Form::plain, kChunkTokens>(c, m.ak, row, m.v, column);
    each_pair(c, row, column, put(m.h));
  });
  for_parts<kChunkTokens, N, kThreads>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, m.rb, row, m.dy, column);
    add_product<Form::plain, Form::plain, N>(c, m.b, row, m.ds, column);
    each_pair(c, row, column, put(m.dx));
  });
  __syncthreads();
  for_parts<kChunkTokens, N, kThreads>([&](auto& c, int row, int column) {
    add_product<Form::plain, Form::plain, kChunkTokens>(c, m.solve, row, m.h, column);
    each_pair(c, row, column, put(m.x));
  });
  for_parts<kChunkTokens, N, kThreads>([&](auto& c, int row, int column) {
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, m.solve, row, m.dx, column);
    each_pair(c, row, column, put(m.y));
  });
  __syncthreads();
  if (dv.to)
    for_parts<kChunkTokens, N, kThreads>([&](auto& c, int row, int column) {
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, m.rk, row, m.dy, column);
      add_product<Form::plain, Form::plain, N>(c, m.k, row, m.ds, column);
      add_product<Form::transposed, Form::plain, kChunkTokens>(c, m.ak, row, m.y, column);
      each_pair(c, row, column, [&](int i, int j, float one, float two) {
        if (i < chunk.count) store_pair(chunk.token(dv.to, i) + j, one, two, dv.add);
      });
    });
  __syncthreads();
  put_triangle<kThreads>(m.dy, m.v, false, m.rk);
  put_triangle<kThreads>(m.dy, m.x, false, m.rb);
  put_triangle<kThreads>(m.y, m.v, true, m.ak);
  put_triangle<kThreads>(m.y, m.x, true, m.solve);
  __syncthreads();
}

/// With S̃, D̃ as in the header:  dR = dA_rk K + dA_rb B + dO S̃ᵀ, dA = dA_ak K + dA_ab B + Y S̃ᵀ, dK = dA_rkᵀ R + dA_akᵀ A + V D̃ᵀ,
/// dB = dA_rbᵀ R + dA_abᵀ A + X D̃ᵀ, each times its power of e;
///   d log w_t = Σ_{i≥t} r_i ∘ dr_i + Σ_{i>t} a_i ∘ da_i − Σ_{j≥t} (k_j ∘ dk_j + b_j ∘ db_j) + Σ_v dS' ∘ S'
template <int N, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) gradients_kernel(Wkv7Problem p, Targets out) {
  extern __shared__ __align__(16) char memory[];
  __shared__ Wkv7Decays<N, kThreads> decays;
  __shared__ float ends[N];
  constexpr int kStride = Wkv7Decays<N>::kStride, kWidth = N / (kThreads / 128), kTiles = kWidth / 8;
  const Wkv7Chunk<N> chunk(p);
  const Workspace<N> m(memory);
  m.v.template load<kChunkTokens>(chunk.token(p.v, 0), chunk.stride, chunk.count);
  m.dy.template load<kChunkTokens>(chunk.token(p.dy, 0), chunk.stride, chunk.count);
  m.solve.template load<kChunkTokens>(chunk.square(p.solve), kChunkTokens, kChunkTokens);
  copy_async_commit();
  decays.load(p, chunk, m.sums);
  put_factor(chunk, m.sums, p.r, Power::own, m.r);
  put_factor(chunk, m.sums, p.a, Power::before, m.a);
  put_factor(chunk, m.sums, p.k, Power::inverse, m.k);
  put_factor(chunk, m.sums, p.b, Power::inverse, m.b);
  put_state(chunk.state(p.states), decays.middle, m.s);
  put_state(chunk.state(p.d_states), decays.rest, m.ds);
  end_products(p, chunk, ends);
  copy_async_wait();
  solve_and_pair<kThreads>(m, chunk, out.dv);

  const int warp = threadIdx.x / 32, row = warp % 4 * 16, column = warp / 4 * kWidth;
  float mass[kTiles][4] = {}, mass_before[kTiles][4] = {};
  /// A gradient from its accumulators: times its power, to its target; its products with the input go to `to`.
  const auto deliver = [&](float(&c)[kTiles][4], Power power, Goal<bf16> target, const bf16* input, float sign, float(&to)[kTiles][4]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int i = row + lane / 4 + 8 * h, j = column + 8 * n + lane % 4 * 2;
        if (i >= chunk.count) continue;
        float d[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float middle = m.sums[(kChunkTokens / 2 - 1) * kStride + j + e];
          const float sum = power == Power::before ? (i > 0 ? m.sums[(i - 1) * kStride + j + e] : 0.0f) : m.sums[i * kStride + j + e];
          d[e] = c[n][2 * h + e] * __expf(power == Power::inverse ? middle - sum : sum - middle);
        }
        if (target.to) store_pair(chunk.token(target.to, i) + j, d[0], d[1], target.add);
        const float2 x = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(chunk.token(input, i) + j));
        to[n][2 * h] += sign * x.x * d[0], to[n][2 * h + 1] += sign * x.y * d[1];
      }
  };
  const auto read = [&](const SharedMatrix<kChunkTokens>& on_k, const SharedMatrix<kChunkTokens>& on_b, const SharedMatrix<N>& rows,
                        Power power, Goal<bf16> target, const bf16* input, float(&to)[kTiles][4]) {
    float c[kTiles][4] = {};
    add_product<Form::plain, Form::plain, kChunkTokens>(c, on_k, row, m.k, column);
    add_product<Form::plain, Form::plain, kChunkTokens>(c, on_b, row, m.b, column);
    add_product<Form::plain, Form::transposed, N>(c, rows, row, m.s, column);
    deliver(c, power, target, input, 1, to);
  };
  const auto write = [&](const SharedMatrix<kChunkTokens>& by_r, const SharedMatrix<kChunkTokens>& by_a, const SharedMatrix<N>& rows,
                         Goal<bf16> target, const bf16* input) {
    float c[kTiles][4] = {};
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, by_r, row, m.r, column);
    add_product<Form::transposed, Form::plain, kChunkTokens>(c, by_a, row, m.a, column);
    add_product<Form::plain, Form::transposed, N>(c, rows, row, m.ds, column);
    deliver(c, Power::inverse, target, input, -1, mass);
  };
  read(m.rk, m.rb, m.dy, Power::own, out.dr, p.r, mass);
  read(m.ak, m.solve, m.y, Power::before, out.da, p.a, mass_before);
  write(m.rk, m.ak, m.v, out.dk, p.k);
  write(m.rb, m.solve, m.x, out.db, p.b);
  if (!out.d_log_w.to) return;

  // Sums over the tokens from the right, in segments of a thread each.
  float *own = reinterpret_cast<float*>(m.h.data), *before = reinterpret_cast<float*>(m.rk.data);  // two matrices each
  __syncthreads();
  each_pair(mass, row, column, [&](int i, int j, float x, float y) { own[i * kStride + j] = x, own[i * kStride + j + 1] = y; });
  each_pair(mass_before, row, column,
            [&](int i, int j, float x, float y) { before[i * kStride + j] = x, before[i * kStride + j + 1] = y; });
  __syncthreads();
  constexpr int kSegments = kThreads / N, kRows = kChunkTokens / kSegments;
  const int channel = threadIdx.x % N, segment = threadIdx.x / N;
  float sums[kRows], sum = 0;
#pragma unroll
  for (int n = kRows - 1; n >= 0; --n) {
    const int at = (segment * kRows + n) * kStride + channel;
    sums[n] = sum += own[at];
    sum += before[at];
  }
  decays.parts[threadIdx.x] = sum;
  __syncthreads();
  float behind = ends[channel];
  for (int s = kSegments - 1; s > segment; --s) behind += decays.parts[s * N + channel];
#pragma unroll
  for (int n = 0; n < kRows; ++n) {
    const int t = segment * kRows + n;
    if (t < chunk.count) out.d_log_w.put(chunk.first + t * chunk.stride + channel, sums[n] + behind);
  }
}

}  // namespace

void wkv7_chunk_targets(Stream stream, const Wkv7Problem& problem, int64_t width, const cpu::Wkv7Gradients& out) {
  const Targets targets{goal<bf16>(out.dr), goal<bf16>(out.dk), goal<bf16>(out.dv),
                        goal<bf16>(out.da), goal<bf16>(out.db), elements(out.d_log_w)};
  const auto launch = [&](auto n, auto threads) {
    static_assert(Workspace<n()>::bytes() + sizeof(Wkv7Decays<n(), threads()>) + n() * sizeof(float) <= wkv7_chunk_shared(n()));
    launch_chunks(stream, gradients_kernel<n(), threads()>, problem.blocks, threads(), Workspace<n()>::bytes(), problem, targets);
  };
  if (width == 32) return launch(std::integral_constant<int, 32>{}, std::integral_constant<int, 256>{});
  launch(std::integral_constant<int, 64>{}, std::integral_constant<int, 512>{});
}

}  // namespace saccade::cuda
