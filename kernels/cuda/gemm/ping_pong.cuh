#pragma once
/// Products on Hopper with operands from several tensors, as blocks of 64 x 64: in persistent blocks one warp loads operands (TMA), and two
/// warpgroups work in ping-pong on separate units of work (wgmma, 128 x 128 sums each), so that the epilogue of one runs during the
/// products of the other.
#include "kernels/cuda/gemm/fused_gemm.cuh"

namespace saccade::cuda::ping_pong {

using fused::Barrier, fused::kConsumers, fused::kDepth, fused::kOperand, fused::kStage, fused::kStrip, fused::kThreads, fused::kTile;
using fused::kBlock, fused::matrices_at, fused::pair_column, fused::store_block, fused::store_matrices;

/// Barrier of the threads of one warpgroup.
__device__ __forceinline__ void sync_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(3 + group) : "memory"); }

/// Shared memory for the operands of a step.
struct Stage {
  uint32_t a, b;
  Barrier full;
  /// 64 x 64 of a matrix into block 0 or 1 of an operand.
  __device__ void left(int block, const CUtensorMap& map, int column, int row) const {
    fused::copy_tile(a + static_cast<uint32_t>(block) * kBlock, map, column, row, full);
  }
  __device__ void right(int block, const CUtensorMap& map, int column, int row) const {
    fused::copy_tile(b + static_cast<uint32_t>(block) * kBlock, map, column, row, full);
  }
};

/// The sums of a warpgroup: two times 64 x 128.
using Sums = float[2][64];

constexpr uint32_t kStaged = 4 * kBlock;  ///< bytes of 128 x 128 values staged for a store
/// Call it before a warpgroup stages again, and before its next sync_group.
__device__ __forceinline__ void staged_is_free() {
  if (threadIdx.x % 128 == 0) hopper::finish_reads<0>();
}
/// Makes a warpgroup's writes to shared memory visible to TMA.
__device__ __forceinline__ void publish(int group) {
  hopper::publish_shared();
  sync_group(group);
}
/// Rounds the sums into blocks at `to`; then store(block of columns, block of rows, its address) by one thread.
template <class Store>
__device__ __forceinline__ void stage(uint32_t to, const Sums& d, Store&& store) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int n = 0; n < 16; n += 2) store_matrices(matrices_at(to, half, n), d[half] + 4 * n);
  publish(static_cast<int>(threadIdx.x) / 128);
  if (threadIdx.x % 128 != 0) return;
  for (int block = 0; block < 4; ++block) store(block % 2, block / 2, to + static_cast<uint32_t>(block) * kBlock);
  hopper::commit_writes();
}

/// Tiles of 128 x 128 that a unit reads besides its operands, loaded as the blocks left 0, left 1, right 0, right 1.
template <int kSlots>
struct Tiles {
  uint32_t base, barriers;
  int index;  ///< of the first one, over all units
  __device__ uint32_t address(int i) const { return base + static_cast<uint32_t>((index + i) % kSlots) * kStage; }
  /// This lane's values of a warpgroup's sums: two pairs of rows eight apart at columns 8 n …, and the same at 8 n + 8 …
  __device__ void load(int i, int half, int n, float (&to)[8]) const { load(i, half, n).unpack(to); }
  using Eight = fused::Eight;
  __device__ Eight load(int i, int half, int n) const { return fused::load_eight(matrices_at(address(i), half, n)); }
  /// Overwrites them.
  __device__ void store(int i, int half, int n, const float* x) const {
    __syncwarp();
    store_matrices(matrices_at(address(i), half, n), x);
  }
  __device__ Barrier full(int i) const { return {barriers + 8 * static_cast<uint32_t>((index + i) % kSlots)}; }
  __device__ Barrier empty(int i) const { return {barriers + 8 * static_cast<uint32_t>(kSlots + (index + i) % kSlots)}; }
  __device__ uint32_t parity(int i) const { return static_cast<uint32_t>((index + i) / kSlots) & 1; }
  __device__ void wait(int i) const { full(i).wait(parity(i)); }
  /// By all threads: what is in `count` tiles goes to matrices, store(i, block of columns, block of rows, its address); then they may be
  /// overwritten.
  template <class Store>
  __device__ void give_back(int count, Store&& store) const {
    publish(static_cast<int>(threadIdx.x) / 128);
    if (threadIdx.x % 128 == 0) {
      for (int i = 0; i < count; ++i)
        for (int block = 0; block < 4; ++block) store(i, block % 2, block / 2, address(i) + static_cast<uint32_t>(block) * kBlock);
      hopper::commit_writes();
      staged_is_free();
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      for (int i = 0; i < count; ++i) empty(i).arrive();
  }
};

/// A work has
///   Unit first(worker), next(unit)      of worker blockIdx.x + gridDim.x · group; unit.valid: there is one
///   steps(unit), transposed_steps(unit)     with kTransposesA, the first transposed_steps (at least one) have A transposed
///   bring(unit, step)                   step(copies) for each: copies(stage) loads four blocks
///   tiles(unit), bring_tile(unit, i, stage)   where it also reads tiles. There are kSlots slots, twice as many as a unit reads: a
///                                       wait for a tile distinguishes only two successive rounds of a slot, so a slot's next tile must
///                                       not be that of the other warpgroup
///   Ask ask(unit)                       what is loaded while the products run
///   watch(unit, a, asked)               where it also reads the left operand of a step, at a in shared memory
///   finish(unit, following, sums, asked, own[, tiles])
///   kStages, kOwn (bytes for each warpgroup), kTransposedB, kTransposesA
template <class Work>
constexpr bool kReadsTiles = requires(const Work& work, const typename Work::Unit& unit) {
  work.tiles(unit);
};
template <class Work>
constexpr bool kWatches = requires(const Work& work) {
  &Work::watch;
};
template <class Work>
constexpr int slots() {
  if constexpr (kReadsTiles<Work>) return Work::kSlots;
  return 0;
}
/// Layout of shared memory: stages, tiles, what the warpgroups own, barriers, marks of the stages, ping-pong barriers.
template <class Work>
struct Shared {
  /// A block on its way to a matrix begins at a multiple of 1024, also that of the second warpgroup: the 128-byte swizzle of bulk tensor
  /// copies goes by bits of the address, that of SharedRows by the row.
  static constexpr uint32_t tiles = Work::kStages * kStage, own = tiles + slots<Work>() * kStage;
  static constexpr uint32_t own_bytes = (Work::kOwn + 1023) / 1024 * 1024;
  static constexpr uint32_t barriers = own + 2 * own_bytes, tile_barriers = barriers + 2 * 8 * Work::kStages;
  static constexpr uint32_t marks = tile_barriers + 2 * 8 * slots<Work>(), counts = marks + 4 * Work::kStages, bytes = counts + 8;
};

/// Reads of shared memory that barriers order in ways racecheck does not follow; tests/gpu/sanitize.py knows these two by name.
__device__ __forceinline__ int mark_of(const volatile int* marks, int stage) { return marks[stage]; }
__device__ __forceinline__ int2 read_counts(const volatile int* counts) { return {counts[0], counts[1]}; }

/// A block's shared memory, as Shared lays it out.
template <class Work>
struct Memory {
  char* start;
  uint32_t base;  ///< its address
  __device__ Barrier full(int stage) const { return {base + Shared<Work>::barriers + 8 * static_cast<uint32_t>(stage)}; }
  __device__ Barrier empty(int stage) const { return full(Work::kStages + stage); }
  __device__ volatile int* marks() const { return reinterpret_cast<volatile int*>(start + Shared<Work>::marks); }
  /// Steps and tiles so far.
  __device__ volatile int* counts() const { return reinterpret_cast<volatile int*>(start + Shared<Work>::counts); }
  __device__ Tiles<slots<Work>()> tiles_from(int index) const {
    return {base + Shared<Work>::tiles, base + Shared<Work>::tile_barriers, index};
  }
  /// By one thread.
  __device__ void init() const {
    for (int s = 0; s < Work::kStages; ++s) full(s).init(1), empty(s).init(4);
    if constexpr (kReadsTiles<Work>)
      for (int s = 0; s < Work::kSlots; ++s) tiles_from(s).full(0).init(1), tiles_from(s).empty(0).init(4);
    counts()[0] = 0, counts()[1] = 0;
    hopper::publish_barriers();
  }
};

constexpr int kLast = 1, kLastTransposed = 2;  ///< marks of a unit's last step and of its last one with A transposed

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// By one thread: loads the steps and tiles of both warpgroups' units in turn.
template <class Work>
__device__ __forceinline__ void produce(const Work& work, const Memory<Work>& memory) {
  constexpr int kStages = Work::kStages;
  const int workers = static_cast<int>(gridDim.x);
  int stage = 0, tile = 0;
  uint32_t round = 1;
  const auto bring = [&](const typename Work::Unit& unit) {
    int left = work.steps(unit), transposed = 0;
    if constexpr (Work::kTransposesA) transposed = work.transposed_steps(unit);
    work.bring(unit, [&](auto&& copies) {
      memory.empty(stage).wait(round);
      memory.marks()[stage] = (--left == 0 ? kLast : 0) + (--transposed == 0 ? kLastTransposed : 0);
      memory.full(stage).expect(kStage);
      const uint32_t a = memory.base + static_cast<uint32_t>(stage) * kStage;
      copies(Stage{a, a + kOperand, memory.full(stage)});
      if (++stage == kStages) stage = 0, round ^= 1;
    });
    if constexpr (kReadsTiles<Work>) {
      const int count = work.tiles(unit);
      for (int i = 0; i < count; ++i, ++tile) {
        const auto at = memory.tiles_from(tile);
        at.empty(0).wait(at.parity(0) ^ 1);
        at.full(0).expect(kStage);
        const uint32_t to = at.base + static_cast<uint32_t>(tile % Work::kSlots) * kStage;
        work.bring_tile(unit, i, Stage{to, to + kOperand, at.full(0)});
      }
    }
  };
  auto one = work.first(static_cast<int>(blockIdx.x)), two = work.first(static_cast<int>(blockIdx.x) + workers);
  while (one.valid || two.valid) {
    if (one.valid) bring(one), one = work.next(one);
    if (two.valid) bring(two), two = work.next(two);
  }
}

/// By a warpgroup: multiplies its units and finishes them while the other one multiplies.
template <class Work>
__device__ __forceinline__ void consume(const Work& work, const Memory<Work>& memory, int group) {
  constexpr int kStages = Work::kStages;
  const int workers = static_cast<int>(gridDim.x);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  char* own = memory.start + Shared<Work>::own + group * Shared<Work>::own_bytes;
  auto mine = work.first(static_cast<int>(blockIdx.x) + group * workers);
  auto other = work.first(static_cast<int>(blockIdx.x) + (1 - group) * workers);
  if (group == 1) fused::give_tensor_cores(0);
  while (mine.valid || other.valid) {
    if (!mine.valid) {
      fused::wait_for_tensor_cores(group);
      fused::give_tensor_cores(1 - group);
      other = work.next(other);
      continue;
    }
    auto asked = work.ask(mine);
    Sums d;
    fused::wait_for_tensor_cores(group);
    const int2 so_far = read_counts(memory.counts());
    const int tile = so_far.y;
    int index = so_far.x, mark = 0;
    sync_group(group);  // all have read it before the first one, perhaps done with its steps, writes
    bool first = true;
    const auto multiply = [&](auto transposed) {
      const int stage = index % kStages;
      memory.full(stage).wait(static_cast<uint32_t>(index / kStages) & 1);
      mark = mark_of(memory.marks(), stage);
      const uint32_t a = memory.base + static_cast<uint32_t>(stage) * kStage, b = a + kOperand;
      begin_products();
#pragma unroll
      for (int k = 0; k < kDepth / 16; ++k)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          multiply_background<decltype(transposed)::value, Work::kTransposedB>(
              d[half],
              descriptor(a + half * kBlock + (decltype(transposed)::value ? 2048 : 32) * k, decltype(transposed)::value ? kBlock : 16),
              Work::kTransposedB ? descriptor(b + 2048 * k, kBlock) : descriptor(b + 32 * k, 16), first && k == 0);
      end_products();
      if constexpr (kWatches<Work>) {
        work.watch(mine, a, asked);
        __syncwarp();
      }
      if (!first) {
        wait_products<1>();
        if (lane == 0) memory.empty((index - 1) % kStages).arrive();
      }
      first = false, ++index;
    };
    if constexpr (Work::kTransposesA) do
        multiply(std::true_type{});
      while (!(mark & kLastTransposed));
    while (!(mark & kLast)) multiply(std::false_type{});
    if (threadIdx.x % 128 == 0) {
      memory.counts()[0] = index;
      if constexpr (kReadsTiles<Work>) memory.counts()[1] = tile + work.tiles(mine);
    }
    fused::give_tensor_cores(1 - group);
    wait_products<0>();
    if (lane == 0) memory.empty((index - 1) % kStages).arrive();
    const auto following = work.next(mine);
    if constexpr (kReadsTiles<Work>)
      work.finish(mine, following, d, asked, own, memory.tiles_from(tile));
    else
      work.finish(mine, following, d, asked, own);
    mine = following;
    if (other.valid) other = work.next(other);
  }
}
#endif

template <class Work>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  const Memory<Work> memory{shared, fused::address(shared)};
  if (threadIdx.x == 0) memory.init();
  __syncthreads();
  if (threadIdx.x >= kConsumers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x == kConsumers) produce(work, memory);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    consume(work, memory, static_cast<int>(threadIdx.x) / 128);
    staged_is_free();
  }
#endif
}

template <class Work>
void launch(int device, const Work& work) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  constexpr uint32_t bytes = Shared<Work>::bytes;
  static_assert(Shared<Work>::tiles % 1024 == 0 && Shared<Work>::own % 1024 == 0 && bytes <= 227 * 1024);
  check(cudaFuncSetAttribute(kernel<Work>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  kernel<Work><<<static_cast<unsigned>(multiprocessors), kThreads, bytes, stream(device)>>>(work);
  check_launch();
}

}  // namespace saccade::cuda::ping_pong
