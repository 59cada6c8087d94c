#pragma once
/// Products like those of fused_gemm.cuh, C = A Bᵀ, by tiles of 128 x 256: two warpgroups own 64 rows each, and their
/// epilogue is stored during the next tile's products. Clusters of two blocks work on two tiles of the same columns: each block loads half
/// of B for both.
#include <map>

#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/gemm/fused_gemm.cuh"

namespace saccade::cuda::fused {

constexpr int kWide = 256, kWideStages = 4, kPair = 2;  ///< columns, buffers, blocks that share B
constexpr uint32_t kWideStage = 3 * kOperand;

/// Rank of a block in its cluster.
__device__ __forceinline__ int rank_in_pair() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Barrier of all threads of a cluster.
__device__ __forceinline__ void meet_pair() {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Arrives at the barrier with the same address in block `rank`.
__device__ __forceinline__ void arrive_at(Barrier barrier, int rank) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(
                   barrier.at),
               "r"(rank)
               : "memory");
}
/// copy_tile to both blocks of a pair; each one's barrier counts the bytes.
__device__ __forceinline__ void copy_tile_to_both(uint32_t to, const CUtensorMap& map, int column, int row, Barrier full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::
          "r"(to),
      "l"(reinterpret_cast<uint64_t>(&map)), "r"(full.at), "r"(column), "r"(row), "h"(static_cast<uint16_t>(3))
      : "memory");
}

/// d [64 x 256] = (add ? d : 0) + a bᵀ over 16 terms of the sum, asynchronously; d[1] holds columns from 128 on. a, b: low words of
/// descriptors.
__device__ __forceinline__ void multiply_wide(float (&d)[2][64], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n.reg .pred more;\n.reg .b64 da, db;\nmov.b64 da, {%128, 0x40000040};\nmov.b64 db, {%129, 0x40000040};\nsetp.ne.b32 more, %130, "
      "0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "
      "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, "
      "%118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127}, da, db, more, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[0][4]), "+f"(d[0][5]), "+f"(d[0][6]), "+f"(d[0][7]),
        "+f"(d[0][8]), "+f"(d[0][9]), "+f"(d[0][10]), "+f"(d[0][11]), "+f"(d[0][12]), "+f"(d[0][13]), "+f"(d[0][14]), "+f"(d[0][15]),
        "+f"(d[0][16]), "+f"(d[0][17]), "+f"(d[0][18]), "+f"(d[0][19]), "+f"(d[0][20]), "+f"(d[0][21]), "+f"(d[0][22]), "+f"(d[0][23]),
        "+f"(d[0][24]), "+f"(d[0][25]), "+f"(d[0][26]), "+f"(d[0][27]), "+f"(d[0][28]), "+f"(d[0][29]), "+f"(d[0][30]), "+f"(d[0][31]),
        "+f"(d[0][32]), "+f"(d[0][33]), "+f"(d[0][34]), "+f"(d[0][35]), "+f"(d[0][36]), "+f"(d[0][37]), "+f"(d[0][38]), "+f"(d[0][39]),
        "+f"(d[0][40]), "+f"(d[0][41]), "+f"(d[0][42]), "+f"(d[0][43]), "+f"(d[0][44]), "+f"(d[0][45]), "+f"(d[0][46]), "+f"(d[0][47]),
        "+f"(d[0][48]), "+f"(d[0][49]), "+f"(d[0][50]), "+f"(d[0][51]), "+f"(d[0][52]), "+f"(d[0][53]), "+f"(d[0][54]), "+f"(d[0][55]),
        "+f"(d[0][56]), "+f"(d[0][57]), "+f"(d[0][58]), "+f"(d[0][59]), "+f"(d[0][60]), "+f"(d[0][61]), "+f"(d[0][62]), "+f"(d[0][63]),
        "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[1][4]), "+f"(d[1][5]), "+f"(d[1][6]), "+f"(d[1][7]),
        "+f"(d[1][8]), "+f"(d[1][9]), "+f"(d[1][10]), "+f"(d[1][11]), "+f"(d[1][12]), "+f"(d[1][13]), "+f"(d[1][14]), "+f"(d[1][15]),
        "+f"(d[1][16]), "+f"(d[1][17]), "+f"(d[1][18]), "+f"(d[1][19]), "+f"(d[1][20]), "+f"(d[1][21]), "+f"(d[1][22]), "+f"(d[1][23]),
        "+f"(d[1][24]), "+f"(d[1][25]), "+f"(d[1][26]), "+f"(d[1][27]), "+f"(d[1][28]), "+f"(d[1][29]), "+f"(d[1][30]), "+f"(d[1][31]),
        "+f"(d[1][32]), "+f"(d[1][33]), "+f"(d[1][34]), "+f"(d[1][35]), "+f"(d[1][36]), "+f"(d[1][37]), "+f"(d[1][38]), "+f"(d[1][39]),
        "+f"(d[1][40]), "+f"(d[1][41]), "+f"(d[1][42]), "+f"(d[1][43]), "+f"(d[1][44]), "+f"(d[1][45]), "+f"(d[1][46]), "+f"(d[1][47]),
        "+f"(d[1][48]), "+f"(d[1][49]), "+f"(d[1][50]), "+f"(d[1][51]), "+f"(d[1][52]), "+f"(d[1][53]), "+f"(d[1][54]), "+f"(d[1][55]),
        "+f"(d[1][56]), "+f"(d[1][57]), "+f"(d[1][58]), "+f"(d[1][59]), "+f"(d[1][60]), "+f"(d[1][61]), "+f"(d[1][62]), "+f"(d[1][63])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)));
}

/// A body with kTwoMatrices gets columns c and columns / 2 + c of the product in one tile and makes one column of them.
template <class Body>
constexpr bool kTwoMatrices = requires {
  Body::kTwoMatrices;
};

struct WideOperands {
  CUtensorMap a, b, second;  ///< with kTwoMatrices, `second` is B from columns / 2 on
  int steps, rows, columns;
};

/// A warp's staging memory for stores: two blocks of its 16 rows of 64 columns.
struct Staging {
  static constexpr uint32_t kBytes = kBlock / 4;  ///< of a block
  uint32_t at;
  /// Waits until the staged values may be overwritten.
  __device__ __forceinline__ void wait() const {
    if (threadIdx.x % 32 == 0) hopper::finish_reads<0>();
    __syncwarp();
  }
  /// Rounds kCount blocks of sums, two at a time; store(block, its address) by one lane.
  template <int kCount, class Store>
  __device__ __forceinline__ void put(const float (&d)[2][64], Store&& store) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int first = 0; first < kCount; first += 2) {
      wait();
#pragma unroll
      for (int block = 0; block < 2; ++block)
#pragma unroll
        for (int n = 0; n < 8; n += 2)
          store_matrices(SharedRows<64>{at + static_cast<uint32_t>(block) * kBytes}.at(lane % 16, n + lane / 16),
                         d[first / 2] + block * 32 + 4 * n);
      hopper::publish_shared();
      __syncwarp();
      if (lane == 0) {
        for (int block = 0; block < 2; ++block) store(first + block, at + static_cast<uint32_t>(block) * kBytes);
        hopper::commit_writes();
      }
    }
  }
};
constexpr uint32_t kWideStaged = kWideStages * kWideStage, kWideBarriers = kWideStaged + kConsumers / 32 * 2 * Staging::kBytes;
constexpr uint32_t kWideShared = kWideBarriers + 2 * kWideStages * 8;

/// Position of a warp's sums in C: 16 rows from `row` on, 256 columns (128 of each kind with kTwoMatrices) from `column` on, of `columns`.
struct WarpTile {
  int row, column, columns;
};

/// A body has
///   Own own()                          a lane's values for all tiles
///   finish(own, sums, place, staging)  the epilogue of a warp's sums, and its stores
template <class Body>
__global__ void __launch_bounds__(kThreads, 1) wide_kernel(const __grid_constant__ WideOperands in, const __grid_constant__ Body body) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kOutput = kTwoMatrices<Body> ? kTile : kWide;
  extern __shared__ __align__(1024) char shared[];
  const uint32_t base = address(shared), barriers = base + kWideBarriers;
  const auto full = [&](int stage) { return Barrier{barriers + 8 * static_cast<uint32_t>(stage)}; };
  const auto empty = [&](int stage) { return Barrier{barriers + 8 * static_cast<uint32_t>(kWideStages + stage)}; };
  if (threadIdx.x == 0) {
    for (int s = 0; s < kWideStages; ++s) full(s).init(1), empty(s).init(kConsumers / 32 * kPair);
    hopper::publish_barriers();
  }
  meet_pair();
  const int rank = rank_in_pair(), group = static_cast<int>(threadIdx.x) / 128;
  const int outputs = kTwoMatrices<Body> ? in.columns / 2 : in.columns, across = (outputs + kOutput - 1) / kOutput;
  const int tiles = across * ((in.rows + kPair * kTile - 1) / (kPair * kTile)), first_tile = static_cast<int>(blockIdx.x) / kPair;
  const int next_tile = static_cast<int>(gridDim.x) / kPair;
  const auto row_of_tile = [&](int tile) { return (tile / across * kPair + rank) * kTile; };
  if (threadIdx.x >= kConsumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == kConsumers) {
      int stage = 0;
      uint32_t round = 1;
      for (int tile = first_tile; tile < tiles; tile += next_tile) {
        const int row = row_of_tile(tile), column = tile % across * kOutput;
        for (int step = 0; step < in.steps; ++step) {
          empty(stage).wait(round);
          full(stage).expect(kWideStage);
          const uint32_t a = base + static_cast<uint32_t>(stage) * kWideStage, b = a + kOperand;
          copy_tile(a, in.a, step * kDepth, row, full(stage));
          copy_tile_to_both(b + static_cast<uint32_t>(rank) * kOperand, kTwoMatrices<Body> && rank == 1 ? in.second : in.b, step * kDepth,
                            kTwoMatrices<Body> ? column : column + rank * kTile, full(stage));
          if (++stage == kWideStages) stage = 0, round ^= 1;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const auto release = [&](int stage) {
      if (lane < kPair) arrive_at(empty(stage), lane);
    };
    const uint32_t rows = base >> 4 | 1u << 16;  // low word of a descriptor
    const auto own = body.own();
    const Staging staging{base + kWideStaged + static_cast<uint32_t>(warp) * 2 * Staging::kBytes};
    int index = 0;  // of the step
    for (int tile = first_tile; tile < tiles; tile += next_tile) {
      const int row0 = row_of_tile(tile) + group * 64 + warp % 4 * 16, column0 = tile % across * kOutput;
      float d[2][64];
      const auto multiply = [&](bool first) {
        const int stage = index % kWideStages;
        full(stage).wait(static_cast<uint32_t>(index / kWideStages) & 1);
        const uint32_t b = rows + static_cast<uint32_t>(stage) * (kWideStage >> 4) + (kOperand >> 4);
        const uint32_t a = rows + static_cast<uint32_t>(stage) * (kWideStage >> 4) + static_cast<uint32_t>(group) * (kOperand >> 5);
        begin_products();
#pragma unroll
        for (int k = 0; k < kDepth / 16; ++k) multiply_wide(d, a + 2 * k, b + 2 * k, !first || k > 0);
        end_products();
        ++index;
      };
      multiply(true);
      for (int step = 1; step < in.steps; ++step) {
        multiply(false);
        wait_products<1>();
        release((index - 2) % kWideStages);
      }
      wait_products<0>();
      release((index - 1) % kWideStages);
      hopper::hold(d[0]), hopper::hold(d[1]);
      body.finish(own, d, WarpTile{row0, column0, outputs}, staging);
    }
    staging.wait();
  }
  meet_pair();
#endif
}

/// Destination of rows of `columns` values.
inline CUtensorMap stored(const Tensor& y, int64_t columns) { return tensor_map(matrix(y, columns), y.size() / columns, columns, 16); }

/// C [rows, columns] = A [rows, k] B [columns, k]ᵀ; for a body with kTwoMatrices, B is [columns / 2, k] and `second` the other half.
template <class Body>
void wide_product(int device, int64_t rows, int64_t columns, int64_t k, const Matrix& a, const Matrix& b, const Matrix& second,
                  const Body& body) {
  const int64_t matrices = kTwoMatrices<Body> ? 2 : 1;
  WideOperands in{};
  in.rows = static_cast<int>(rows), in.columns = static_cast<int>(columns), in.steps = static_cast<int>((k + kDepth - 1) / kDepth);
  in.a = tensor_map(a, rows, k, kTile), in.b = tensor_map(b, columns / matrices, k, kTile);
  if (kTwoMatrices<Body>) in.second = tensor_map(second, columns / matrices, k, kTile);
  const int64_t tiles = (rows + kPair * kTile - 1) / (kPair * kTile) * ((columns + kWide - 1) / kWide);
  const auto kernel = wide_kernel<Body>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kWideShared));
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeClusterDimension;
  together.val.clusterDim = {kPair, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kPair);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kWideShared;
  config.stream = stream(device);
  config.attrs = &together;
  config.numAttrs = 1;
  static std::map<int, int> at_once;  // clusters that a device holds
  if (!at_once.contains(device)) check(cudaOccupancyMaxActiveClusters(&at_once[device], kernel, &config));
  config.gridDim = dim3(static_cast<unsigned>(kPair * std::min<int64_t>(tiles, at_once[device])));
  check(cudaLaunchKernelEx(&config, kernel, in, body));
}

}  // namespace saccade::cuda::fused
