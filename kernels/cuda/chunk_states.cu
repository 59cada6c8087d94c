#include "kernels/cuda/chunk_states.h"

#include "kernels/cuda/chunk_products.cuh"

namespace saccade::cuda {
namespace {

constexpr int kStateColumns = 32;

struct Problem {
  const bf16* transition;
  const float* last;
  bf16* states;
  const float* start;
  float* end;
  int chunks, values, last_size;
  bool add_end;
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

/// Block (x, y): kStateColumns columns of line y; a warp per 16 rows.
template <int K, bool kBackward>
__global__ void __launch_bounds__(2 * K) states_kernel(Problem p) {
  extern __shared__ __align__(16) char memory[];
  SharedPieces pieces{memory};
  Stage<K> stages[2];
  for (Stage<K>& s : stages) s = {pieces.matrix<K>(K), pieces.matrix<kStateColumns>(K)};
  const SharedMatrix<kStateColumns> state = pieces.matrix<kStateColumns>(K);
  const int line = blockIdx.y, column = blockIdx.x * kStateColumns, row = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
  const int64_t size = int64_t{K} * p.values;
  bf16* states = p.states + line * (p.chunks + 1) * size + column;
  const bf16* transition = p.transition + int64_t{line} * p.chunks * K * K;
  const float* last = p.last + int64_t{line} * p.chunks * p.last_size;

  const auto chunk = [&](int step) { return kBackward ? p.chunks - 1 - step : step; };
  float next_last[2] = {};
  const auto fetch = [&](int step) {
    if (step < p.chunks) {
      const int c = chunk(step);
      stages[step % 2].transition.template load<K>(transition + int64_t{c} * K * K, K, K);
      stages[step % 2].local.template load<K>(states + c * size, p.values, K);
#pragma unroll
      for (int i = 0; i < 2; ++i) next_last[i] = last[c * p.last_size + (p.last_size > 1 ? row + lane / 4 + 8 * i : 0)];
    }
    copy_async_commit();
  };
  const auto at = [&](const float* x, int i, int j) { return x + line * size + int64_t{i} * p.values + column + j; };

  float s[kStateColumns / 8][4] = {};
  if (p.start)
    each_pair(s, row, 0, [&](int i, int j, float& x, float& y) {
      const float2 from = *reinterpret_cast<const float2*>(at(p.start, i, j));
      x = from.x, y = from.y;
    });
  fetch(0);
  for (int step = 0; step < p.chunks; ++step) {
    const float decay[2] = {next_last[0], next_last[1]};
    fetch(step + 1);
    each_pair(s, row, 0, [&](int i, int j, float x, float y) { state.put(i, j, x, y); });
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    bf16* slot = states + chunk(step) * size;
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
        const float2 own = stage.local.pair(row + lane / 4 + 8 * i, 8 * n + lane % 4 * 2);
        s[n][2 * i] = decay[i] * s[n][2 * i] + (c[n][2 * i] + own.x);
        s[n][2 * i + 1] = decay[i] * s[n][2 * i + 1] + (c[n][2 * i + 1] + own.y);
      }
    __syncthreads();
  }
  each_pair(s, row, 0, [&](int i, int j, float x, float y) {
    if (!kBackward) store_pair(states + p.chunks * size + int64_t{i} * p.values + j, x, y);
    if (!p.end) return;
    float2& to = *reinterpret_cast<float2*>(const_cast<float*>(at(p.end, i, j)));
    to = p.add_end ? float2{to.x + x, to.y + y} : float2{x, y};
  });
}

template <bool kBackward>
void run(Stream stream, const ChunkStates& s, const Tensor& start, const Tensor& end, bool add) {
  const int64_t lines = s.states.dim(0), keys = s.states.dim(2), values = s.states.dim(3);
  const Problem p{pointer<bf16>(s.transition),   pointer<float>(s.last),          pointer<bf16>(s.states),
                  pointer_or_null<float>(start), pointer_or_null<float>(end),     static_cast<int>(s.transition.dim(1)),
                  static_cast<int>(values),      static_cast<int>(s.last.dim(2)), add};
  const dim3 grid(static_cast<unsigned>(values / kStateColumns), static_cast<unsigned>(lines));
  const auto launch = [&](auto width) {
    constexpr int K = decltype(width)::value;
    const auto kernel = states_kernel<K, kBackward>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes<K>()));
    kernel<<<grid, 2 * K, shared_bytes<K>(), stream>>>(p);
  };
  if (keys == 32)
    launch(std::integral_constant<int, 32>{});
  else if (keys == 64)
    launch(std::integral_constant<int, 64>{});
  else
    launch(std::integral_constant<int, 96>{});
  check_launch();
}

}  // namespace

void chunk_states_forward(Stream stream, const ChunkStates& s, const Tensor& start, const Tensor& end) {
  run<false>(stream, s, start, end, false);
}

void chunk_states_backward(Stream stream, const ChunkStates& s, const Tensor& d_end, const Tensor& d_start, bool add) {
  run<true>(stream, s, d_end, d_start, add);
}

}  // namespace saccade::cuda
