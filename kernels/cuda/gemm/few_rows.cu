// Products of few rows for decoding, where a kernel's launch and the way to memory take longer than what it computes: see few_rows_cuda.h.
// Block (rank, tile) of a cluster: a share of the sum, 64 steps at a time, for all rows and 64 columns, two boxes of 32 rows of the
// weights. A row's sums go to the shared memory of the rank that owns the row, which adds up those of all ranks in their order and finishes
// them.
#include <cmath>

#include "kernels/cuda/device/activation.cuh"
#include "kernels/cuda/device/dependent_launch.cuh"
#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/device/rotation.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/gemm/fused_gemm.cuh"
#include "kernels/ops/head_projection/fused_linear_cuda.h"
#include "kernels/ops/linear/few_rows_cuda.h"

namespace saccade::cuda {
namespace few {

constexpr int kThreads = 128, kRows = static_cast<int>(kFewRows), kDepth = 64, kBox = 32, kMostSplit = 8, kMostBlocks = 12;
constexpr int kPitch = 68;                          ///< floats from one row of sums to the next
constexpr uint32_t kBlock = 64 * kDepth * 2;        ///< bytes of 64 rows and a step
constexpr int64_t kMostWeights = int64_t{8} << 20;  ///< of a product; tiles read the rows anew each, which more would make dear
[[maybe_unused]] constexpr int kQuads = kBox / 4;   ///< of a row: four columns of both boxes are finished by a thread

constexpr uint32_t shared_bytes(int blocks) {
  return static_cast<uint32_t>(2 * blocks) * kBlock + kRows * kPitch * 4 + kMostSplit * kRows * 4 +
         static_cast<uint32_t>(blocks) * kDepth * 4 + 16;
}

struct Operands {
  CUtensorMap x, weights[3];
  const bf16* rows;   ///< x, where it is normed
  const float* gain;  ///< of the norm
  float epsilon;
  int m, k, most;  ///< rows; length of the sum; most blocks of 64 of it that a rank has
};
/// 32 rows of a matrix of weights from `row` on.
struct Box {
  int matrix, row;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ __forceinline__ void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ uint32_t of_rank(uint32_t at, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
  return there;
}
__device__ __forceinline__ void send_one(uint32_t to, float x) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
__device__ __forceinline__ void send_two(uint32_t to, float x, float y) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}
__device__ __forceinline__ void store_piece(uint32_t to, const uint4& x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}
__device__ __forceinline__ uint4 load_piece(uint32_t from) {
  uint4 x;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
  return x;
}
__device__ __forceinline__ float low_of(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_of(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

/// Rows of x in shared memory, normed. A thread has a piece of eight columns of four rows in every block of the sum; the squares of a row
/// are added up over the ranks.
template <int kSplit>
struct NormedRows {
  static constexpr int kPasses = kRows * 8 / kThreads, kTogether = 3;
  const Operands& in;
  int begin, count, rank;
  uint32_t rows;
  const float* gain;        ///< of this rank's columns, in shared memory
  float (*squares)[kRows];  ///< of all ranks
  uint32_t squares_at;
  int line = static_cast<int>(threadIdx.x) / 8, piece = static_cast<int>(threadIdx.x) % 8;

  __device__ __forceinline__ int row(int pass) const { return line + pass * (kRows / kPasses); }
  __device__ __forceinline__ uint32_t at(int block, int pass) const {
    return SharedRows<64>{rows + static_cast<uint32_t>(block) * kBlock}.at(row(pass), piece);
  }
  __device__ __forceinline__ void fill() const {
    float sums[kPasses] = {};
    for (int first = 0; first < count; first += kTogether) {
      uint4 x[kTogether][kPasses];
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
#pragma unroll
        for (int p = 0; p < kPasses; ++p) {
          const int column = (begin + first + i) * kDepth + piece * 8;
          const bool there = first + i < count && column < in.k && row(p) < in.m;
          x[i][p] = there ? *reinterpret_cast<const uint4*>(in.rows + int64_t{row(p)} * in.k + column) : uint4{};
        }
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
#pragma unroll
        for (int p = 0; p < kPasses; ++p) {
          for (const uint32_t pair : {x[i][p].x, x[i][p].y, x[i][p].z, x[i][p].w})
            sums[p] += low_of(pair) * low_of(pair), sums[p] += high_of(pair) * high_of(pair);
          if (first + i < count && row(p) < in.m) store_piece(at(first + i, p), x[i][p]);
        }
    }
    wait_for_cluster();  // all ranks have begun
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      const float sum = sum_of_lanes<8>(sums[p]);
      if (piece < kSplit) send_one(of_rank(squares_at + static_cast<uint32_t>(rank * kRows + row(p)) * 4, piece), sum);
    }
    arrive_at_cluster();
    wait_for_cluster();
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (row(p) >= in.m) continue;
      float sum = 0;
#pragma unroll
      for (int r = 0; r < kSplit; ++r) sum += squares[r][row(p)];
      sums[p] = rsqrtf(sum / static_cast<float>(in.k) + in.epsilon);
    }
    for (int i = 0; i < count; ++i) {
      const float4 low = *reinterpret_cast<const float4*>(gain + i * kDepth + piece * 8);
      const float4 high = *reinterpret_cast<const float4*>(gain + i * kDepth + piece * 8 + 4);
#pragma unroll
      for (int p = 0; p < kPasses; ++p) {
        if (row(p) >= in.m) continue;
        uint4 x = load_piece(at(i, p));
        const float inverse = sums[p];
        x.x = pack_bf16(low_of(x.x) * inverse * low.x, high_of(x.x) * inverse * low.y);
        x.y = pack_bf16(low_of(x.y) * inverse * low.z, high_of(x.y) * inverse * low.w);
        x.z = pack_bf16(low_of(x.z) * inverse * high.x, high_of(x.z) * inverse * high.y);
        x.w = pack_bf16(low_of(x.w) * inverse * high.z, high_of(x.w) * inverse * high.w);
        store_piece(at(i, p), x);
      }
    }
  }
};
#endif

/// `body` says which weights a tile has, what it reads besides, and finishes four sums of either box.
template <bool kNorm, int kSplit, class Body>
__global__ void __launch_bounds__(kThreads) product_kernel(const __grid_constant__ Operands in, const __grid_constant__ Body body) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kOwn = kRows / kSplit, kItems = kOwn * kQuads > kThreads ? kOwn * kQuads / kThreads : 1;
  extern __shared__ __align__(1024) char shared[];
  const int rank = static_cast<int>(blockIdx.x), tile = static_cast<int>(blockIdx.y), thread = static_cast<int>(threadIdx.x);
  const int all = (in.k + kDepth - 1) / kDepth, begin = all * rank / kSplit, count = all * (rank + 1) / kSplit - begin;
  const auto most = static_cast<uint32_t>(in.most);
  const uint32_t weights = shared_address(shared), rows = weights + most * kBlock, sums = rows + most * kBlock;
  const uint32_t squares = sums + kRows * kPitch * 4, gain = squares + kMostSplit * kRows * 4;
  const fused::Barrier weights_there{gain + most * kDepth * 4}, rows_there{weights_there.at + 8};
  arrive_at_cluster();
  if (thread == 0) {
    weights_there.init(1), rows_there.init(1);
    hopper::publish_barriers();
    weights_there.expect(static_cast<uint32_t>(count) * kBlock);
    for (int i = 0; i < count; ++i)
      for (int half = 0; half < 2; ++half) {
        const Box box = body.box(tile, half);
        fused::copy_tile(weights + static_cast<uint32_t>(i) * kBlock + static_cast<uint32_t>(half) * (kBlock / 2), in.weights[box.matrix],
                         (begin + i) * kDepth, box.row, weights_there);
      }
  }
  let_next_grid_begin();
  auto* own_gain = reinterpret_cast<float*>(shared + (gain - weights));
  if constexpr (kNorm)
    for (int i = thread; i < count * kDepth; i += kThreads) own_gain[i] = begin * kDepth + i < in.k ? in.gain[begin * kDepth + i] : 0.0f;
  // The rows that this rank finishes.
  const auto row_of = [&](int n) { return rank * kOwn + (n * kThreads + thread) / kQuads; };
  const auto owns = [&](int n) { return n * kThreads + thread < kOwn * kQuads && row_of(n) < in.m; };
  const int quad = thread % kQuads;
  typename Body::Known known[kItems];
#pragma unroll
  for (int n = 0; n < kItems; ++n)
    if (owns(n)) known[n] = body.known(tile, row_of(n), quad);
  __syncthreads();
  await_grid_before();
  if constexpr (kNorm) {
    NormedRows<kSplit>{in, begin, count, rank, rows, own_gain, reinterpret_cast<float(*)[kRows]>(shared + (squares - weights)), squares}
        .fill();
    hopper::publish_shared();
    __syncthreads();
  } else if (thread == 0) {
    rows_there.expect(static_cast<uint32_t>(count * in.m * kDepth * 2));
    for (int i = 0; i < count; ++i) fused::copy_tile(rows + static_cast<uint32_t>(i) * kBlock, in.x, (begin + i) * kDepth, 0, rows_there);
  }
  typename Body::Late late[kItems];
#pragma unroll
  for (int n = 0; n < kItems; ++n)
    if (owns(n)) late[n] = body.late(tile, row_of(n), quad);
  weights_there.wait(0);
  if constexpr (!kNorm) rows_there.wait(0);
  float d[32];
  begin_products();
  for (int i = 0; i < count; ++i)
#pragma unroll
    for (uint32_t k = 0; k < kDepth / 16; ++k)
      multiply_background<false, false>(d, descriptor(rows + static_cast<uint32_t>(i) * kBlock + 32 * k, 16),
                                        descriptor(weights + static_cast<uint32_t>(i) * kBlock + 32 * k, 16), i == 0 && k == 0);
  end_products();
  if constexpr (!kNorm) wait_for_cluster();  // all ranks have begun
  wait_products<0>();
  hopper::hold(d);
#pragma unroll
  for (int line = 0; line < 2; ++line) {
    const int row = thread / 32 * 16 + 8 * line + thread % 32 / 4, owner = row / kOwn;
    const uint32_t to = of_rank(sums + static_cast<uint32_t>((rank * kOwn + row % kOwn) * kPitch + fused::pair_column(0)) * 4, owner);
    if (row < in.m)
#pragma unroll
      for (int n = 0; n < 8; ++n) send_two(to + static_cast<uint32_t>(n) * 32, d[4 * n + 2 * line], d[4 * n + 2 * line + 1]);
  }
  arrive_at_cluster();
  wait_for_cluster();
  const auto* received = reinterpret_cast<const float*>(shared + (sums - weights));
#pragma unroll
  for (int n = 0; n < kItems; ++n) {
    if (!owns(n)) continue;
    float values[2][4] = {};
#pragma unroll
    for (int r = 0; r < kSplit; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 x =
            *reinterpret_cast<const float4*>(received + (r * kOwn + row_of(n) - rank * kOwn) * kPitch + half * kBox + 4 * quad);
        values[half][0] += x.x, values[half][1] += x.y, values[half][2] += x.z, values[half][3] += x.w;
      }
    body.finish(tile, row_of(n), quad, values[0], values[1], known[n], late[n]);
  }
#endif
}

__device__ __forceinline__ uint2 four_bf16(const float (&x)[4]) { return {pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3])}; }
__device__ __forceinline__ void add_bf16(float (&x)[4], const uint2& y) {
  x[0] += __uint_as_float(y.x << 16), x[1] += __uint_as_float(y.x & 0xffff0000u);
  x[2] += __uint_as_float(y.y << 16), x[3] += __uint_as_float(y.y & 0xffff0000u);
}
__device__ __forceinline__ void round_four(float (&x)[4]) {
  const uint2 y = four_bf16(x);
  x[0] = x[1] = x[2] = x[3] = 0;
  add_bf16(x, y);
}

struct Linear {
  const float* bias;
  const bf16* residual;
  bf16* y;
  int columns;

  struct Known {
    float4 bias[2];
  };
  struct Late {
    uint2 residual[2];
  };
  __device__ __forceinline__ Box box(int tile, int half) const { return {0, 2 * kBox * tile + kBox * half}; }
  __device__ __forceinline__ int column(int tile, int half, int quad) const { return box(tile, half).row + 4 * quad; }
  __device__ __forceinline__ Known known(int tile, int, int quad) const {
    Known e{};
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (const int at = column(tile, half, quad); bias && at < columns) e.bias[half] = *reinterpret_cast<const float4*>(bias + at);
    return e;
  }
  __device__ __forceinline__ Late late(int tile, int row, int quad) const {
    Late e{};
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (const int at = column(tile, half, quad); residual && at < columns)
        e.residual[half] = *reinterpret_cast<const uint2*>(residual + int64_t{row} * columns + at);
    return e;
  }
  __device__ __forceinline__ void finish(int tile, int row, int quad, float (&low)[4], float (&high)[4], const Known& e,
                                         const Late& l) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = column(tile, half, quad);
      float(&x)[4] = half == 0 ? low : high;
      x[0] += e.bias[half].x, x[1] += e.bias[half].y, x[2] += e.bias[half].z, x[3] += e.bias[half].w;
      add_bf16(x, l.residual[half]);
      if (at < columns) *reinterpret_cast<uint2*>(y + int64_t{row} * columns + at) = four_bf16(x);
    }
  }
};

/// One box are gates, the other what goes up. Sums are rounded first, as those of separate passes are.
template <Activation kF>
struct Gate {
  bf16* y;
  int columns;

  struct Known {};
  struct Late {};
  __device__ __forceinline__ Box box(int tile, int half) const { return {half, kBox * tile}; }
  __device__ __forceinline__ Known known(int, int, int) const { return {}; }
  __device__ __forceinline__ Late late(int, int, int) const { return {}; }
  __device__ __forceinline__ void finish(int tile, int row, int quad, float (&gate)[4], float (&up)[4], Known, Late) const {
    const int at = kBox * tile + 4 * quad;
    if (at >= columns) return;
    round_four(gate), round_four(up);
#pragma unroll
    for (int i = 0; i < 4; ++i) gate[i] = value<kF>(gate[i]) * up[i];
    *reinterpret_cast<uint2*>(y + int64_t{row} * columns + at) = four_bf16(gate);
  }
};

/// Both of a pair (i, i + D/2) of a head lie in one item: its boxes are of either half. Sums are rounded first, as above.
template <int D>
struct Heads {
  bf16 *q, *keys, *values;
  const float* norm_weight[2];  ///< of q and k; null: none
  int width, tiles;             ///< columns and tiles of q, k and v each
  int64_t capacity;
  QkNorm norm;
  float of_squares, epsilon;  ///< of the norm
  bool rotates;
  double turns[D / 2];  ///< of each pair from one position to the next
  StartPosition start;

  struct Known {
    int64_t position;
    float2 angles[4];
  };
  struct Late {};
  __device__ __forceinline__ int first(int tile) const {
    return D == 64 ? 64 * (tile % tiles) : tile % tiles / 2 * 128 + tile % tiles % 2 * kBox;
  }
  __device__ __forceinline__ Box box(int tile, int half) const { return {tile / tiles, first(tile) + half * (D / 2)}; }
  __device__ __forceinline__ Late late(int, int, int) const { return {}; }
  __device__ __forceinline__ Known known(int tile, int row, int quad) const {
    Known e{};
    e.position = start(row);
    if (tile / tiles < 2 && rotates)
#pragma unroll
      for (int i = 0; i < 4; ++i) e.angles[i] = cosine_and_sine(static_cast<double>(e.position) * turns[first(tile) % D + 4 * quad + i]);
    return e;
  }
  __device__ __forceinline__ void finish(int tile, int row, int quad, float (&low)[4], float (&high)[4], const Known& e, Late) const {
    const int side = tile / tiles, pair = first(tile) % D + 4 * quad;
    round_four(low), round_four(high);
    if (side < 2 && norm != QkNorm::none) {
      float squares = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) squares += low[i] * low[i] + high[i] * high[i];
      const unsigned together = 0xffu << (threadIdx.x % 32 / kQuads * kQuads);  // rows beside this one may be none
#pragma unroll
      for (int offset = kQuads / 2; offset > 0; offset /= 2) squares += __shfl_xor_sync(together, squares, offset);
      const float inverse = rsqrtf(squares * of_squares + epsilon);
      const float* gain = norm_weight[side];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        low[i] *= inverse * (gain ? gain[pair + i] : 1.0f), high[i] *= inverse * (gain ? gain[D / 2 + pair + i] : 1.0f);
    }
    if (side < 2 && rotates)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float u = low[i], w = high[i];
        low[i] = u * e.angles[i].x - w * e.angles[i].y, high[i] = u * e.angles[i].y + w * e.angles[i].x;
      }
    bf16* to = side == 0 ? q + int64_t{row} * width : (side == 1 ? keys : values) + (row * capacity + e.position) * width;
    to += first(tile) + 4 * quad;
    *reinterpret_cast<uint2*>(to) = four_bf16(low), *reinterpret_cast<uint2*>(to + D / 2) = four_bf16(high);
  }
};

/// Ranks of a cluster: so many that all blocks fill the GPU and have little to do each.
int ranks(int64_t tiles, int64_t blocks) {
  int split = 1;
  while (split < kMostSplit && 2 * split <= blocks && (tiles * split < 128 || blocks > 4 * split)) split *= 2;
  return split;
}

bool aligned(const Tensor& x) { return reinterpret_cast<uintptr_t>(x.raw()) % 16 == 0; }

/// Whether there is a product of x with these matrices [out, in].
bool applies(int device, const Tensor& x, std::initializer_list<Tensor> matrices) {
  const int64_t in = x.dim(-1), blocks = (in + kDepth - 1) / kDepth;
  int64_t weights = 0;
  for (const Tensor& w : matrices) {
    if (w.dtype() != DType::bf16 || w.dim(0) % 8 != 0 || !aligned(w)) return false;
    weights += w.size();
  }
  return x.dtype() == DType::bf16 && x.size() > 0 && x.size() <= kFewRows * in && in % 8 == 0 && aligned(x) && weights <= kMostWeights &&
         blocks <= int64_t{kMostBlocks} * kMostSplit && hopper::available(device);
}

template <class Body>
void launch(int device, const Tensor& x, const InputNorm& norm, std::initializer_list<Tensor> matrices, int64_t tiles, const Body& body) {
  const int64_t in = x.dim(-1), m = x.size() / in, blocks = (in + kDepth - 1) / kDepth;
  const int split = ranks(tiles, blocks);
  Operands operands{};
  operands.m = static_cast<int>(m), operands.k = static_cast<int>(in), operands.most = static_cast<int>((blocks + split - 1) / split);
  int i = 0;
  for (const Tensor& w : matrices) operands.weights[i++] = fused::tensor_map(matrix(w, in), w.dim(0), in, kBox);
  const DependentLaunch how{dim3(static_cast<unsigned>(split), static_cast<unsigned>(tiles)), kThreads, shared_bytes(operands.most),
                            static_cast<unsigned>(split)};
  const auto run = [&](auto kernel) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes(kMostBlocks))));
    launch_dependent(device, how, kernel, operands, body);
  };
  const auto of_split = [&](auto normed) {
    constexpr bool kNorm = decltype(normed)::value;
    switch (split) {
      case 1: return run(product_kernel<kNorm, 1, Body>);
      case 2: return run(product_kernel<kNorm, 2, Body>);
      case 4: return run(product_kernel<kNorm, 4, Body>);
      default: return run(product_kernel<kNorm, 8, Body>);
    }
  };
  if (norm) {
    operands.rows = pointer<bf16>(x), operands.gain = pointer<float>(norm.weight), operands.epsilon = static_cast<float>(norm.epsilon);
    of_split(std::true_type{});
  } else {
    operands.x = fused::tensor_map(matrix(x, in), m, in, static_cast<int>(m));
    of_split(std::false_type{});
  }
}

template <int D>
void launch_heads(int device, const Tensor& x, const InputNorm& norm, const HeadProjection& p, std::initializer_list<Tensor> matrices,
                  const Tensor& q, const Tensor& keys, const Tensor& values) {
  Heads<D> body{};
  body.q = pointer<bf16>(q), body.keys = pointer<bf16>(keys), body.values = pointer<bf16>(values);
  if (p.query_norm_weight) body.norm_weight[0] = pointer<float>(p.query_norm_weight);
  if (p.key_norm_weight) body.norm_weight[1] = pointer<float>(p.key_norm_weight);
  const int64_t width = q.size() / q.dim(0);
  body.width = static_cast<int>(width), body.tiles = static_cast<int>(width / 64), body.capacity = keys.dim(1);
  body.norm = p.options.norm;
  body.of_squares = p.options.norm == QkNorm::rms ? 1.0f / D : 1.0f;
  body.epsilon = p.options.norm == QkNorm::rms ? 1e-5f : 1e-12f;
  body.rotates = p.options.rotary_base != 0;
  for (int i = 0; i < D / 2 && body.rotates; ++i) body.turns[i] = std::pow(p.options.rotary_base, -2.0 * i / D) * 0.15915494309189533577;
  body.start = start_position(p.options.position);
  launch(device, x, norm, matrices, 3 * width / 64, body);
}

}  // namespace few

bool few_rows_linear(int device, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual, const Tensor& y) {
  if (!few::applies(device, x, {weight})) return false;
  const int64_t out = weight.dim(0);
  const few::Linear body{bias ? pointer<float>(bias) : nullptr, residual ? pointer<bf16>(residual) : nullptr, pointer<bf16>(y),
                         static_cast<int>(out)};
  few::launch(device, x, {}, {weight}, (out + 63) / 64, body);
  return true;
}

bool few_rows_gated(int device, Activation f, const Tensor& x, const InputNorm& norm, const Tensor& gate, const Tensor& up,
                    const Tensor& y) {
  if (!few::applies(device, x, {gate, up})) return false;
  const int64_t out = gate.dim(0);
  with_activation(f, [&](auto a) {
    few::launch(device, x, norm, {gate, up}, (out + few::kBox - 1) / few::kBox,
                few::Gate<decltype(a)::value>{pointer<bf16>(y), static_cast<int>(out)});
  });
  return true;
}

bool few_rows_heads(int device, const Tensor& x, const InputNorm& norm, const HeadProjection& p, const Tensor& query, const Tensor& key,
                    const Tensor& value, const Tensor& q, const Tensor& keys, const Tensor& values) {
  const int64_t d = q.dim(-1);
  if ((d != 64 && (d != 128 || p.options.norm != QkNorm::none)) || !few::applies(device, x, {query, key, value})) return false;
  d == 64 ? few::launch_heads<64>(device, x, norm, p, {query, key, value}, q, keys, values)
          : few::launch_heads<128>(device, x, norm, p, {query, key, value}, q, keys, values);
  return true;
}

}  // namespace saccade::cuda
