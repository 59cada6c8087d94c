#pragma once
/// The scalar-decay chunk form on tensor cores: shared by the passes over chunks and the gradients of keys.
#include <algorithm>

#include "kernels/cuda/device/copy_rows.cuh"
#include "kernels/cuda/device/lane_sums.cuh"
#include "kernels/cuda/device/tma.cuh"
#include "kernels/cuda/scalar_decay/scalar_decay.cuh"

namespace saccade::cuda::decay {

constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ float low(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  const __nv_bfloat162 c = __hmul2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const uint32_t&>(c);
}

/// A [16 columns from 8 piece, 16 rows from row] of a product from rows in memory.
template <int D>
__device__ __forceinline__ void load_a_transposed(uint32_t (&r)[4], const SharedRows<D>& rows, int row, int piece) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices_transposed(r, rows.at(row + lane / 16 * 8 + lane % 8, piece + lane / 8 % 2));
}

__device__ __forceinline__ uint32_t load_shared(uint32_t at) {
  uint32_t x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
  return x;
}
__device__ __forceinline__ uint4 load_shared_16(uint32_t at) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(at) : "memory");
  return x;
}
__device__ __forceinline__ void store_shared(uint32_t at, uint32_t x) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}
__device__ __forceinline__ void store_shared_16(uint32_t at, uint4 x) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

__device__ __forceinline__ uint32_t add_pairs(uint32_t a, uint32_t b) { return pack_bf16(low(a) + low(b), high(a) + high(b)); }
/// *to = or += four or eight bf16
__device__ __forceinline__ void put_8(bf16* to, uint2 x, bool add) {
  uint2* at = reinterpret_cast<uint2*>(to);
  if (add) x = {add_pairs(at->x, x.x), add_pairs(at->y, x.y)};
  *at = x;
}
__device__ __forceinline__ void put_16(bf16* to, uint4 x, bool add) {
  uint4* at = reinterpret_cast<uint4*>(to);
  if (add) {
    const uint4 old = *at;
    x = {add_pairs(old.x, x.x), add_pairs(old.y, x.y), add_pairs(old.z, x.z), add_pairs(old.w, x.w)};
  }
  *at = x;
}

/// 64 rows of N bf16 in tiles of 64 columns, a layout that wgmma reads, too.
template <int N>
struct KeyRows {
  static constexpr uint32_t kTile = 64 * 64 * 2;
  uint32_t base;

  __device__ SharedRows<64> tile(int i) const { return {base + static_cast<uint32_t>(i) * kTile}; }
  __device__ uint32_t at(int row, int piece) const { return tile(piece / 8).at(row, piece % 8); }
  __device__ void load_b(uint32_t (&r)[4], int row, int k) const { tile(k / 4).load_b(r, row, k % 4); }
  __device__ void load_b_transposed(uint32_t (&r)[4], int row, int n) const { tile(n / 4).load_b_transposed(r, row, n % 4); }

  /// As copy_rows.
  template <int kThreads>
  __device__ void copy(const bf16* from, int64_t stride, int size, int width = N) const {
#pragma unroll
    for (int i = 0; i < N / 64; ++i) copy_rows<64, kThreads>(tile(i), from + 64 * i, stride, size, width - 64 * i);
  }
};

/// Makes this thread's writes to shared memory visible to wgmma, once a barrier follows.
__device__ __forceinline__ void publish_writes() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  hopper::publish_shared();
#endif
}
/// Alignment of the tiles that wgmma reads.
constexpr uint32_t kTileAlignment = 1024;
__device__ __forceinline__ uint32_t aligned_tiles(const char* shared) {
  return (shared_address(shared) + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

/// Log decays (base 2) and steps of one token, to be stored in shared memory.
struct TokenDecay {
  float running, end, step;

  __device__ void load(const Form<bf16>& f, const ChunkPosition& p, int i) {
    const float* G = f.running_of(p);
    const int token = min(i, p.size - 1);
    running = G ? G[token] * kLog2e : 0.0f;
    end = G ? G[p.size - 1] * kLog2e : 0.0f;
    step = f.step ? f.step[f.line(p) + token] : 1.0f;
  }
};

/// In memory, states are bf16 [B, chunks, H, P, padded N]. Inside every 32 keys they stand as a thread of the accumulator holds them: key
/// 8 u + 2 q + e at place 8 q + 2 u + e (u, q < 4; e < 2).
template <int P, int N>
__device__ __forceinline__ int64_t state_row(const Form<bf16>& f, int b, int c, int h, int row) {
  return ((((int64_t{b} * f.chunks + c) * f.heads + h) * P) + row) * N;
}

/// A block of a pass: a segment of one (sequence, head).
struct Segment {
  int line, index;
  __device__ Segment(const Form<bf16>& f, int block) : line(block / f.segments), index(block % f.segments) {}
  /// Its first chunk.
  __device__ ChunkPosition place(const Form<bf16>& f) const {
    ChunkPosition p{};
    p.b = line / f.heads, p.h = line % f.heads, p.group = p.h * f.groups / f.heads, p.c = index * f.segment_chunks;
    return p;
  }
  __device__ int chunks(const Form<bf16>& f) const { return min(f.segment_chunks, f.chunks - index * f.segment_chunks); }
};

/// What a pass over chunks computes: o; the states at the starts of chunks; their gradients and dx.
enum class Pass { outputs, states, gradients };

/// `from`: [batch x heads, segments, N, P]; `to`: [batch x heads, N, P].
struct Sweep {
  const bf16 *scores = nullptr, *d_o = nullptr;
  bf16* out = nullptr;
  bool add = false;
  bf16* states = nullptr;
  const float* from = nullptr;
  float *to = nullptr, *reads = nullptr, *writes = nullptr, *d_step = nullptr, *d_skip = nullptr;
};

struct KeyGradients {
  const bf16 *scores, *d_o, *states, *d_states;
  const float *reads, *writes;
  bf16 *dq, *dk;
  bool add_q, add_k;
  float* dg;
};

void launch_scores(Stream stream, const DecayForm& in, const Tensor& scores);
template <Pass kPass>
void launch_sweep(Stream stream, const DecayForm& in, const Sweep& sweep);
/// Start states of segments (forward) or gradients of their end states: [batch x heads, segments, N, P] from `given`, [batch x heads, N, P]
/// or empty. Only with several segments.
void launch_segments(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& given);
void launch_segment_gradients(Stream stream, const DecayForm& in, const DecayScratch& scratch, const Tensor& d_o, const Tensor& given);
void launch_key_gradients(Stream stream, const DecayForm& in, const KeyGradients& out);
/// The same with wgmma; returns false and does nothing on other GPUs and for other sizes.
bool hopper_key_gradients(Stream stream, const DecayForm& in, const KeyGradients& out);

/// use(P, padded N) for the sizes with a kernel (runs_on_tensor_cores).
template <class Use>
void with_sizes(const DecayForm& in, const Use& use) {
  const bool wide = in.x.dim(3) == 64, many = padded_keys(in) == 128;
  if (wide && many) return use(std::integral_constant<int, 64>{}, std::integral_constant<int, 128>{});
  if (wide) return use(std::integral_constant<int, 64>{}, std::integral_constant<int, 64>{});
  if (many) return use(std::integral_constant<int, 32>{}, std::integral_constant<int, 128>{});
  return use(std::integral_constant<int, 32>{}, std::integral_constant<int, 64>{});
}

template <class Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace saccade::cuda::decay
