#pragma once
/// Barriers in shared memory that count bytes (mbarrier), and TMA copies of tiles between shared and device memory, on Hopper. Device code
/// only.
#include <cuda.h>

#include <cstdint>

namespace saccade::cuda::hopper {

/// A barrier in shared memory whose phase ends when `arrivals` and the announced bytes have arrived.
__device__ __forceinline__ void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Waits until the phase of the given parity has ended.
__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Copies a box of a four-dimensional tensor to shared memory; the barrier counts its bytes. Outside the tensor: zeros.
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap& map, uint32_t barrier, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
               "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

/// Makes this thread's writes to shared memory visible to TMA and to wgmma.
__device__ __forceinline__ void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Copies shared memory to device memory, or adds it to the floats there, asynchronously.
__device__ __forceinline__ void put_bytes(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void add_floats(float* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
/// Commits this thread's copies so far as a group; waits until TMA has read the shared memory of all but the last kPending groups.
__device__ __forceinline__ void commit_writes() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void finish_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
/// Waits until this thread's copies and additions are complete.
__device__ __forceinline__ void finish_writes() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nfence.proxy.async;" ::: "memory");
}

/// Copies device memory to shared memory; the barrier counts the bytes.
__device__ __forceinline__ void get_bytes(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
               "r"(barrier)
               : "memory");
}

/// A counter in device memory that orders thread blocks: TMA writes before an increment are visible after its observation.
__device__ __forceinline__ void await_count(const int* count, int wanted) {
  const auto read = [&] {
    int seen;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
    return seen;
  };
  while (read() != wanted) __nanosleep(40);
  asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ __forceinline__ void raise_count(int* count) { asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(count) : "memory"); }

}  // namespace saccade::cuda::hopper
