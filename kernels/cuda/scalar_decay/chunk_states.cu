#include "kernels/ops/shared/chunk_states_cuda.h"

#include "kernels/cuda/scalar_decay/chunk_products.cuh"

namespace saccade::cuda {
namespace {

struct Problem {
  const bf16* transition;
  const float* last;
  bf16* states;
  const float* start;
  float* end;
  float* carried;  ///< see ChunkStates
  int chunks, values, last_size, segments;
  bool add_end;

  /// Row i, column j of [S | P] at the start of a segment.
  template <int K>
  __device__ float* boundary(int64_t batch_head, int segment, int i, int j) const {
    return carried + ((batch_head * segments + segment) * K + i) * (values + K) + j;
  }
};

/// Shared memory of one chunk: its transition and its own term.
template <int K>
struct Stage {
  SharedMatrix<K> transition;
  SharedMatrix<kStateColumns> local;
};

template <int K>
constexpr int shared_bytes() {
  return 2 * SharedMatrix<K>::bytes(K) + 3 * SharedMatrix<kStateColumns>::bytes(K);
}

/// Block (x, y, z): kStateColumns columns of segment z of batch_head y; a warp per 16 rows. With kEnds all it makes is, for the segment
/// behind, S from zeros (from the start for the first one) and P, the same from the unit matrix without the chunks' own terms.
template <int K, bool kBackward, bool kEnds>
__global__ void __launch_bounds__(2 * K) states_kernel(Problem p) {
  extern __shared__ __align__(16) char memory[];
  SharedPieces pieces{memory};
  Stage<K> stages[2];
  for (Stage<K>& s : stages) s = {pieces.matrix<K>(K), pieces.matrix<kStateColumns>(K)};
  const SharedMatrix<kStateColumns> state = pieces.matrix<kStateColumns>(K);
  const int batch_head = blockIdx.y, column = blockIdx.x * kStateColumns, row = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
  const int segment = blockIdx.z, steps = (p.chunks + p.segments - 1) / p.segments, first = segment * steps,
            behind = min(p.chunks, first + steps);
  const bool unit = kEnds && column >= p.values;
  if (unit && segment == 0) return;
  const int64_t size = int64_t{K} * p.values;
  bf16* states = p.states + batch_head * (p.chunks + 1) * size + column;
  const bf16* transition = p.transition + int64_t{batch_head} * p.chunks * K * K;
  const float* last = p.last + int64_t{batch_head} * p.chunks * p.last_size;

  const auto chunk = [&](int step) { return kBackward ? p.chunks - 1 - step : step; };
  float next_last[2] = {};
  const auto fetch = [&](int step) {
    if (step < behind) {
      const int c = chunk(step);
      stages[step % 2].transition.template load<K>(transition + int64_t{c} * K * K, K, K);
      if (!unit) stages[step % 2].local.template load<K>(states + c * size, p.values, K);
#pragma unroll
      for (int i = 0; i < 2; ++i) next_last[i] = last[c * p.last_size + (p.last_size > 1 ? row + lane / 4 + 8 * i : 0)];
    }
    copy_async_commit();
  };
  const auto at = [&](const float* x, int i, int j) { return x + batch_head * size + int64_t{i} * p.values + column + j; };

  float s[kStateColumns / 8][4] = {};
  each_pair(s, row, 0, [&](int i, int j, float& x, float& y) {
    if (unit) {
      x = i == column - p.values + j, y = i == column - p.values + j + 1;
      return;
    }
    const float* from = nullptr;
    if (!kEnds && p.carried)
      from = p.boundary<K>(batch_head, segment, i, column + j);
    else if (segment == 0 && p.start)
      from = at(p.start, i, j);
    if (from) x = from[0], y = from[1];
    if (kEnds && segment == 0) *reinterpret_cast<float2*>(p.boundary<K>(batch_head, 0, i, column + j)) = {x, y};
  });
  fetch(first);
  for (int step = first; step < behind; ++step) {
    const float decay[2] = {next_last[0], next_last[1]};
    fetch(step + 1);
    each_pair(s, row, 0, [&](int i, int j, float x, float y) { state.put(i, j, x, y); });
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    bf16* slot = states + chunk(step) * size;
    if (!kEnds)
      for (int item = threadIdx.x; item < K * (kStateColumns / 8); item += 2 * K) {
        const int i = item / (kStateColumns / 8), j = item % (kStateColumns / 8) * 8;
        store_pack(slot + int64_t{i} * p.values + j, load_pack(state.at(i, j)));
      }
    const Stage<K>& stage = stages[step % 2];
    float c[kStateColumns / 8][4] = {};
    add_product<kBackward ? Form::transposed : Form::plain, Form::plain, K>(c, stage.transition, row, state, 0);
#pragma unroll
    for (int n = 0; n < kStateColumns / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 own = unit ? float2{} : stage.local.pair(row + lane / 4 + 8 * i, 8 * n + lane % 4 * 2);
        s[n][2 * i] = decay[i] * s[n][2 * i] + (c[n][2 * i] + own.x);
        s[n][2 * i + 1] = decay[i] * s[n][2 * i + 1] + (c[n][2 * i + 1] + own.y);
      }
    __syncthreads();
  }
  each_pair(s, row, 0, [&](int i, int j, float x, float y) {
    if (kEnds) {
      *reinterpret_cast<float2*>(p.boundary<K>(batch_head, segment + 1, i, column + j)) = {x, y};
      return;
    }
    if (segment + 1 < p.segments) return;
    if (!kBackward) store_pair(states + p.chunks * size + int64_t{i} * p.values + j, x, y);
    if (!p.end) return;
    float2& to = *reinterpret_cast<float2*>(const_cast<float*>(at(p.end, i, j)));
    to = p.add_end ? float2{to.x + x, to.y + y} : float2{x, y};
  });
}

constexpr int kCarryWarps = 8;

/// Block (x, y): kStateColumns columns of batch_head y. From segment to segment S += P S of the one before; a warp owns every eighth row, a
/// lane a column.
template <int K>
__global__ void __launch_bounds__(32 * kCarryWarps) carry_kernel(Problem p) {
  __shared__ float state[K][kStateColumns];
  __shared__ alignas(16) float transition[K][K];
  const int batch_head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32, column = blockIdx.x * kStateColumns + lane;
  for (int i = warp; i < K; i += kCarryWarps) state[i][lane] = *p.boundary<K>(batch_head, 1, i, column);
  for (int segment = 2; segment < p.segments; ++segment) {
    float sums[K / kCarryWarps];
#pragma unroll
    for (int n = 0; n < K / kCarryWarps; ++n) sums[n] = *p.boundary<K>(batch_head, segment, warp + n * kCarryWarps, column);
#pragma unroll
    for (int item = threadIdx.x; item < K * K / 4; item += 32 * kCarryWarps) {
      const int i = item / (K / 4), k = item % (K / 4) * 4;
      *reinterpret_cast<float4*>(&transition[i][k]) = *reinterpret_cast<const float4*>(p.boundary<K>(batch_head, segment, i, p.values + k));
    }
    __syncthreads();
    for (int k = 0; k < K; k += 4)
#pragma unroll
      for (int n = 0; n < K / kCarryWarps; ++n) {
        const float4 from = *reinterpret_cast<const float4*>(&transition[warp + n * kCarryWarps][k]);
        sums[n] += from.x * state[k][lane] + from.y * state[k + 1][lane] + from.z * state[k + 2][lane] + from.w * state[k + 3][lane];
      }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < K / kCarryWarps; ++n)
      *p.boundary<K>(batch_head, segment, warp + n * kCarryWarps, column) = state[warp + n * kCarryWarps][lane] = sums[n];
  }
}

template <int K, bool kBackward, bool kEnds>
void launch(Stream stream, const Problem& p, int64_t columns, int64_t batch_heads, int64_t segments) {
  const auto kernel = states_kernel<K, kBackward, kEnds>;
  const dim3 grid(static_cast<unsigned>(columns / kStateColumns), static_cast<unsigned>(batch_heads), static_cast<unsigned>(segments));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<K>()));
  kernel<<<grid, 2 * K, shared_bytes<K>(), stream>>>(p);
  check_launch();
}

template <bool kBackward>
void run(Stream stream, const ChunkStates& s, const Tensor& start, const Tensor& end, bool add) {
  const int64_t batch_heads = s.states.dim(0), keys = s.states.dim(2), values = s.states.dim(3),
                segments = s.carried ? s.carried.dim(1) : 1;
  const Problem p{pointer<bf16>(s.transition),
                  pointer<float>(s.last),
                  pointer<bf16>(s.states),
                  pointer_or_null<float>(start),
                  pointer_or_null<float>(end),
                  pointer_or_null<float>(s.carried),
                  static_cast<int>(s.transition.dim(1)),
                  static_cast<int>(values),
                  static_cast<int>(s.last.dim(2)),
                  static_cast<int>(segments),
                  add};
  const auto walk = [&](auto width) {
    constexpr int K = decltype(width)::value;
    if (segments > 1) {
      launch<K, kBackward, true>(stream, p, values + keys, batch_heads, segments - 1);
      const dim3 grid(static_cast<unsigned>(values / kStateColumns), static_cast<unsigned>(batch_heads));
      carry_kernel<K><<<grid, 32 * kCarryWarps, 0, stream>>>(p);
      check_launch();
    }
    launch<K, kBackward, false>(stream, p, values, batch_heads, segments);
  };
  if (keys == 32)
    walk(std::integral_constant<int, 32>{});
  else if (keys == 64)
    walk(std::integral_constant<int, 64>{});
  else
    walk(std::integral_constant<int, 96>{});
}

}  // namespace

void chunk_states_forward(Stream stream, const ChunkStates& s, const Tensor& start, const Tensor& end) {
  run<false>(stream, s, start, end, false);
}

void chunk_states_backward(Stream stream, const ChunkStates& s, const Tensor& d_end, const Tensor& d_start, bool add) {
  run<true>(stream, s, d_end, d_start, add);
}

}  // namespace saccade::cuda
