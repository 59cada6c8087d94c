#pragma once
/// Products of tf32 on tensor cores (PTX: mma.m16n8k8). Device code only.
#include "kernels/cuda/device/device_code.cuh"

namespace saccade::cuda {

/// To 11 significant bits.
__device__ __forceinline__ float round_to_tf32(float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

/// c [16, 8] += a [16, 8] b [8, 8] by a warp. With g = lane / 4, t = lane mod 4: a at (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
/// b at (t, g), (t + 4, g); c at (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
__device__ __forceinline__ void multiply_tf32(float* c, const float (&a)[4], float b0, float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

}  // namespace saccade::cuda
