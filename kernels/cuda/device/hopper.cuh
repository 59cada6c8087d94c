#pragma once
/// Instructions of Hopper (sm_90a): matrix products of a warpgroup that read shared memory (wgmma), registers moved between warpgroups.
/// Device code only; empty for other architectures.
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/device/tma.cuh"
#include "kernels/cuda/device/warpgroup.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace saccade::cuda::hopper {

/// Stores four matrices [8 x 8] of bf16, the inverse of ldmatrix.
__device__ __forceinline__ void store_matrices(uint32_t at, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

__device__ __forceinline__ void store_four(uint32_t to, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
__device__ __forceinline__ float4 load_four(uint32_t from) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from) : "memory");
  return x;
}

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Products are queued: begin, multiply …, commit; `finish<n>` waits until at most n committed groups are under way.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void finish_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving an accumulator's uses across a wait.
template <int kCount>
__device__ __forceinline__ void hold(float (&c)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(c[i])::"memory");
}
template <int kSteps>
__device__ __forceinline__ void hold(uint32_t (&a)[kSteps][4]) {
#pragma unroll
  for (int i = 0; i < kSteps; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(a[i][j])::"memory");
}

/// Names rows of 64 bf16 (128 bytes, 16-byte vectors permuted as TMA and SharedRows do) for a product: the low word of a
/// matrix descriptor; the high one, the same for all, says "swizzled by 128 bytes, eight rows are 1024 bytes". The same value serves
/// a factor whose summed index runs along the rows (16 columns a step) or over the rows (16 rows a step).
__device__ __forceinline__ uint32_t rows_of_64(uint32_t address) { return address >> 4 | 1u << 16; }
constexpr uint32_t kNextColumns = 32 >> 4, kNextRows = 2048 >> 4;  ///< one step of 16 further

/// c [64 x 64] (+)= a bᵀ, b [64 x 16], or, transposed, a b, b [16 x 64]; a [64 x 16] in registers.
template <bool kTransposed>
__device__ __forceinline__ void multiply_registers(float (&c)[32], const uint32_t (&a)[4], uint32_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      ".reg .b64 db;\n"
      "mov.b64 db, {%36, 0x40000040};\n"
      "setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, db, p, 1, 1, %38;\n"
      "}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]),
        "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
        "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]),
        "+f"(c[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(kTransposed)));
}
/// c [64 x N] (+)= a bᵀ, a [64 x 16], b [N x 16]: N is twice the length of c.
__device__ __forceinline__ void multiply(float (&c)[64], uint32_t a, uint32_t b, bool add) {
  const auto whole = [](uint32_t low) { return uint64_t{0x40000040} << 32 | low; };
  multiply_background<false, false>(c, whole(a), whole(b), !add);
}
__device__ __forceinline__ void multiply(float (&c)[32], const uint32_t (&a)[4], uint32_t b, bool add) {
  multiply_registers<false>(c, a, b, add);
}
/// c [64 x 64] (+)= a b, b [16 x 64].
__device__ __forceinline__ void multiply_transposed(float (&c)[32], const uint32_t (&a)[4], uint32_t b, bool add) {
  multiply_registers<true>(c, a, b, add);
}

/// c [64 x 64] (+)= a bᵀ, a and b [64 x 16], or, transposed, aᵀ b, a and b [16 x 64].
template <bool kTransposed>
__device__ __forceinline__ void multiply_shared(float (&c)[32], uint32_t a, uint32_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      ".reg .b64 da, db;\n"
      "mov.b64 da, {%32, 0x40000040};\n"
      "mov.b64 db, {%33, 0x40000040};\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "da, db, p, 1, 1, %35, %35;\n"
      "}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]),
        "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
        "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]),
        "+f"(c[31])
      : "r"(a), "r"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(kTransposed)));
}

/// An accumulator rounded to bf16, as the first factor of a product: kSteps steps of 16.
template <int kCount>
__device__ __forceinline__ void pack(uint32_t (&a)[kCount / 8][4], const float (&c)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount / 8; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) a[k][i] = pack_bf16(c[k * 8 + i * 2], c[k * 8 + i * 2 + 1]);
}

}  // namespace saccade::cuda::hopper
#endif
