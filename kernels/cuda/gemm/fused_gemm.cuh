#pragma once
/// Matrix products with a fused epilogue on Hopper (compute capability 9.0): C = Σ_i A_i op(B_i), bf16 operands, fp32
/// sums. Persistent blocks compute tile after tile of 128 x 128: one warp loads operands (TMA), two warpgroups work in ping-pong (wgmma),
/// so that the epilogue of one runs during the products of the other.
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/hopper.h"
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/device/tma.cuh"
#include "kernels/cuda/device/warpgroup.cuh"
#include "kernels/ops/linear/gemm_cuda.h"

namespace saccade::cuda::fused {

constexpr int kTile = 128, kDepth = 64, kStages = 6, kConsumers = 256, kThreads = kConsumers + 128, kMaxTerms = 3;
constexpr uint32_t kOperand = kTile * kDepth * 2, kStage = 2 * kOperand, kStrip = 16 * 32 * 4;
constexpr uint32_t kShared = kStages * kStage + kConsumers / 32 * kStrip + 2 * kStages * 8;

/// TMA descriptors of the terms of a sum of products.
struct Operands {
  CUtensorMap a[kMaxTerms], b[kMaxTerms];
  int steps[kMaxTerms];  ///< along the sum
  int rows, columns;
};

__device__ __forceinline__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

struct Barrier {
  uint32_t at;
  __device__ void init(int arrivals) const { hopper::init_barrier(at, arrivals); }
  __device__ void expect(uint32_t bytes) const { hopper::arrive_expecting(at, bytes); }
  __device__ void arrive() const { hopper::arrive(at); }
  __device__ void wait(uint32_t parity) const { hopper::wait(at, parity); }
};

__device__ __forceinline__ void copy_tile(uint32_t to, const CUtensorMap& map, int column, int row, Barrier full) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
               "l"(reinterpret_cast<uint64_t>(&map)), "r"(full.at), "r"(column), "r"(row)
               : "memory");
}

constexpr uint32_t kBlock = 64 * 64 * 2;  ///< bytes of 64 rows of 64 columns

/// Columns 8 n … of a warpgroup's sums: this lane's pair.
__device__ __forceinline__ int pair_column(int n) { return 8 * n + static_cast<int>(threadIdx.x) % 4 * 2; }
/// Address of a lane for eight rows of eight values: of the warp's 16 rows in a tile of blocks, columns 8 n … 8 n + 15.
__device__ __forceinline__ uint32_t matrices_at(uint32_t tile, int half, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane % 16;
  return SharedRows<64>{tile + static_cast<uint32_t>(2 * half + n / 8) * kBlock}.at(row, n % 8 + lane / 16);
}
/// Eight of a lane's sums, rounded: two pairs of rows eight apart at columns 8 n …, and the same at 8 n + 8 …
__device__ __forceinline__ void store_matrices(uint32_t at, const float* x) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(pack_bf16(x[0], x[1])),
               "r"(pack_bf16(x[2], x[3])), "r"(pack_bf16(x[4], x[5])), "r"(pack_bf16(x[6], x[7]))
               : "memory");
}
/// The reverse.
struct Eight {
  uint32_t words[4];
  __device__ __forceinline__ void unpack(float* to) const {
#pragma unroll
    for (int w = 0; w < 4; ++w) to[2 * w] = __uint_as_float(words[w] << 16), to[2 * w + 1] = __uint_as_float(words[w] & 0xffff0000u);
  }
};
__device__ __forceinline__ Eight load_eight(uint32_t at) {
  Eight eight;
  load_matrices(eight.words, at);
  return eight;
}
/// Asynchronous store to a matrix, in the thread's open group of stores.
__device__ __forceinline__ void store_block(const CUtensorMap& map, int column, int row, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(reinterpret_cast<uint64_t>(&map)),
               "r"(column), "r"(row), "r"(from)
               : "memory");
}

constexpr int kAhead = 2;  ///< pieces

/// What a body reads besides the sums, loaded during the products: for four groups of columns, and for the next pieces.
template <class Body>
struct Ahead {
  using Column = decltype(std::declval<Body>().of_column(0));
  using Piece = decltype(std::declval<Body>().of_piece(0, 0));
  Column columns[4];
  Piece pieces[kAhead];
};

/// This lane's piece `index` (of eight) of the warp's 16 rows: rows and columns from the warp's first on.
__device__ __forceinline__ int piece_row(int index) { return static_cast<int>(threadIdx.x) % 32 / 4 + 8 * (index % 2); }
__device__ __forceinline__ int piece_column(int index) { return 32 * (index / 2) + 8 * (static_cast<int>(threadIdx.x) % 4); }

/// Eight values of a row lie in one lane: through 2 KB of shared memory of the warp's own, 32 columns at a time.
/// use(index, values) for the lane's eight pieces.
template <class Use>
__device__ __forceinline__ void each_piece(float* strip, const float (&d)[64], const Use& use) {
  const int lane = static_cast<int>(threadIdx.x) % 32, line = lane / 4, piece = lane % 4, swizzle = line % 4 * 2;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = (4 * part + n) * 4 + 2 * half;
        *reinterpret_cast<float2*>(strip + (line + 8 * half) * 32 + ((2 * n + piece / 2) ^ swizzle) * 4 + piece % 2 * 2) =
            make_float2(d[at], d[at + 1]);
      }
    __syncwarp();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto* from = reinterpret_cast<const float4*>(strip + (line + 8 * half) * 32 + ((2 * piece) ^ swizzle) * 4);
      const float4 low = from[0], high = from[1];
      float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      use(2 * part + half, values);
    }
  }
}

/// v[0 … N / 2) = sums of the lower half in one lane, of the upper half in the one `mask` away.
template <int N>
__device__ __forceinline__ void add_halves(float (&v)[32], int mask) {
  const bool upper = static_cast<int>(threadIdx.x) & mask;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float other = __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + N / 2], mask);
    v[i] = (upper ? v[i + N / 2] : v[i]) + other;
  }
}

/// The warpgroups' products alternate (ping-pong), because a wait for operands distinguishes only two successive rounds of a stage.
__device__ __forceinline__ void wait_for_tensor_cores(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kConsumers) : "memory");
}
__device__ __forceinline__ void give_tensor_cores(int group) {
  asm volatile("bar.arrive %0, %1;" ::"r"(1 + group), "n"(kConsumers) : "memory");
}

/// body.prefetch(row, column) prefetches what of_piece will read.
/// body(row, column, eight values, of_column(column), of_piece(row, column)) for every piece of C inside the matrix.
template <bool kTransposedB, class Body>
__global__ void __launch_bounds__(kThreads, 1) product_kernel(const __grid_constant__ Operands in, const Body body) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  const uint32_t base = address(shared);
  auto* strips = reinterpret_cast<float*>(shared + kStages * kStage);
  const uint32_t barriers = base + kStages * kStage + kConsumers / 32 * kStrip;
  const auto full = [&](int stage) { return Barrier{barriers + 8 * static_cast<uint32_t>(stage)}; };
  const auto empty = [&](int stage) { return Barrier{barriers + 8 * static_cast<uint32_t>(kStages + stage)}; };
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) full(s).init(1), empty(s).init(4);
    hopper::publish_barriers();
  }
  __syncthreads();
  const int across = (in.columns + kTile - 1) / kTile, tiles = across * ((in.rows + kTile - 1) / kTile);
  const int steps = in.steps[0] + in.steps[1] + in.steps[2], group = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x >= kConsumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == kConsumers) {
      int stage = 0;
      uint32_t round = 1;
      for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
        const int row = tile / across * kTile, column = tile % across * kTile;
        for (int term = 0; term < kMaxTerms; ++term)
          for (int step = 0; step < in.steps[term]; ++step) {
            empty(stage).wait(round);
            full(stage).expect(kStage);
            const uint32_t a = base + static_cast<uint32_t>(stage) * kStage, b = a + kOperand;
            copy_tile(a, in.a[term], step * kDepth, row, full(stage));
            if constexpr (kTransposedB) {
              copy_tile(b, in.b[term], column, step * kDepth, full(stage));
              copy_tile(b + kOperand / 2, in.b[term], column + kTile / 2, step * kDepth, full(stage));
            } else {
              copy_tile(b, in.b[term], step * kDepth, column, full(stage));
            }
            if (++stage == kStages) stage = 0, round ^= 1;
          }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (group == 1) give_tensor_cores(0);
    int index = group * steps;  // of the step, counting the other warpgroup's
    for (int tile = static_cast<int>(blockIdx.x + static_cast<unsigned>(group) * gridDim.x); tile < tiles;
         tile += 2 * static_cast<int>(gridDim.x), index += steps) {
      const int row0 = tile / across * kTile + warp % 4 * 16, column0 = tile % across * kTile;
      const auto row_of = [&](int half, int piece) { return row0 + 64 * half + piece_row(piece); };
      const auto column_of = [&](int piece) { return column0 + piece_column(piece); };
      Ahead<Body> ahead;
#pragma unroll
      for (int part = 0; part < 4; ++part)
        if (column_of(2 * part) < in.columns) ahead.columns[part] = body.of_column(column_of(2 * part));
      const auto ask = [&](int half, int piece) {
        if (row_of(half, piece) < in.rows && column_of(piece) < in.columns)
          ahead.pieces[piece % kAhead] = body.of_piece(row_of(half, piece), column_of(piece));
      };
#pragma unroll
      for (int piece = 0; piece < kAhead; ++piece) ask(0, piece);
#pragma unroll
      for (int piece = kAhead; piece < 16; ++piece)
        if (row_of(piece / 8, piece % 8) < in.rows && column_of(piece % 8) < in.columns)
          body.prefetch(row_of(piece / 8, piece % 8), column_of(piece % 8));
      float d[2][64];
      wait_for_tensor_cores(group);
      for (int step = 0; step < steps; ++step, ++index) {
        const int stage = index % kStages;
        full(stage).wait(static_cast<uint32_t>(index / kStages) & 1);
        const uint32_t a = base + static_cast<uint32_t>(stage) * kStage, b = a + kOperand;
        begin_products();
#pragma unroll
        for (int k = 0; k < kDepth / 16; ++k)
#pragma unroll
          for (int half = 0; half < 2; ++half)
            multiply_background<false, kTransposedB>(d[half], descriptor(a + half * (kOperand / 2) + 32 * k, 16),
                                                     kTransposedB ? descriptor(b + 2048 * k, kOperand / 2) : descriptor(b + 32 * k, 16),
                                                     step == 0 && k == 0);
        end_products();
        if (step > 0) {
          wait_products<1>();
          if (lane == 0) empty((index - 1) % kStages).arrive();
        }
      }
      give_tensor_cores(1 - group);
      wait_products<0>();
      if (lane == 0) empty((index - 1) % kStages).arrive();
#pragma unroll
      for (int half = 0; half < 2; ++half)
        each_piece(strips + warp * (kStrip / 4), d[half], [&](int piece, float(&values)[8]) {
          const int row = row_of(half, piece), column = column_of(piece);
          if (row < in.rows && column < in.columns) body(row, column, values, ahead.columns[piece / 2], ahead.pieces[piece % kAhead]);
          if (piece + kAhead < 8)
            ask(half, piece + kAhead);
          else if (half == 0)
            ask(1, piece + kAhead - 8);
        });
    }
  }
#endif
}

/// A matrix in boxes of 64 columns and `box_rows` rows.
CUtensorMap tensor_map(const Matrix& x, int64_t rows, int64_t columns, int box_rows);

/// One term: A [rows, k] times B [columns, k] transposed, or B [k, columns] where kTransposedB.
struct Term {
  Matrix a, b;
  int64_t k;
};

template <bool kTransposedB, class Body>
void product(int device, int64_t rows, int64_t columns, std::initializer_list<Term> terms, const Body& body) {
  if (rows == 0) return;
  Operands in{};
  in.rows = static_cast<int>(rows), in.columns = static_cast<int>(columns);
  int i = 0;
  for (const Term& term : terms) {
    in.a[i] = tensor_map(term.a, rows, term.k, kTile);
    in.b[i] = kTransposedB ? tensor_map(term.b, term.k, columns, kDepth) : tensor_map(term.b, columns, term.k, kTile);
    in.steps[i++] = static_cast<int>((term.k + kDepth - 1) / kDepth);
  }
  const int64_t tiles = ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  check(cudaFuncSetAttribute(product_kernel<kTransposedB, Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  product_kernel<kTransposedB, Body><<<hopper::persistent_blocks(device, tiles), kThreads, kShared, stream(device)>>>(in, body);
  check_launch();
}

}  // namespace saccade::cuda::fused
