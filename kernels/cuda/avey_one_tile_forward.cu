// W = tril(A) * Cos(Z) and Y = W Z of contexts that are one tile each: two warpgroups have 64 queries each, W stays in registers.
#include "kernels/avey/context_weights.h"
#include "kernels/cuda/avey_one_tile.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/values.cuh"

namespace saccade::cuda::tiles {
namespace {

using namespace one_tile;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/// to = from where `wanted`; written so that sums stay in registers.
__device__ __forceinline__ void take_if(float& to, float from, bool wanted) {
  asm("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p mov.f32 %0, %1;\n}\n" : "+f"(to) : "f"(from), "r"(static_cast<int>(wanted)));
}
#endif

__global__ void __launch_bounds__(kThreads, 2)
    forward_kernel(const Plan p, const bf16* Z, const float* A, float* inverse, bf16* Y, const bf16* gate, bf16* gated) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char shared[];
  __shared__ float norms[kTile];
  const uint32_t z = shared_address(shared);
  const Context context(p, blockIdx.x);
  copy_context(z, p, Z, [&](int position) { return context.row(position); });
  copies_are_there();
  uint32_t weights[8][4];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  {
    float s[64];
    const uint32_t rows = z + static_cast<uint32_t>(group()) * (kBlock / 2);
    begin_products();
    int block = 0;
    do {
      const uint32_t at = static_cast<uint32_t>(block) * kBlock;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        multiply_background<false, false>(s, descriptor(rows + at + 32 * k, 16), descriptor(z + at + 32 * k, 16), block == 0 && k == 0);
    } while (++block < blocks_of(p.r));
    end_products();
    wait_products<0>();
    hopper::hold(s);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = line(half), row = position < p.C ? context.row(position) : -1;
      float even = 0, odd = 0;  // of the diagonal, where this lane has some of it
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        take_if(even, s[n * 4 + half * 2], position / 8 == n);
        take_if(odd, s[n * 4 + half * 2 + 1], position / 8 == n);
      }
      if (lane % 4 != lane / 8) continue;
      const float norm = row < 0 ? 0.0f : rsqrtf((lane / 4 % 2 ? odd : even) + static_cast<float>(avey::kCosineEps));
      norms[position] = norm;
      if (row >= 0 && (position >= context.before || blockIdx.x == 0)) inverse[row] = norm;
    }
    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int t = line(half);
      const float* of_t = A + int64_t{min(t, p.C - 1)} * p.C;
      const float of_row = norms[t];
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        const int j = column_of(n);
        const float2 a = *reinterpret_cast<const float2*>(of_t + min(j, p.C - 2)), keys = *reinterpret_cast<const float2*>(norms + j);
        weights[n / 2][n % 2 * 2 + half] = pack_bf16(j <= t ? a.x * s[n * 4 + half * 2] * (of_row * keys.x) : 0.0f,
                                                     j + 1 <= t ? a.y * s[n * 4 + half * 2 + 1] * (of_row * keys.y) : 0.0f);
      }
    }
  }
  int64_t rows[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) rows[half] = line(half) < p.C ? context.result(line(half)) : -1;
  for (int block = 0; block < (p.r + 63) / 64; ++block) {
    const auto column_of = [&](int part) { return 64 * block + 8 * (4 * part + lane % 4); };
    Pack<bf16> of_gate[2][2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int part = 0; part < 2; ++part)
        of_gate[half][part] =
            gated && rows[half] >= 0 && column_of(part) < p.r ? load_pack(gate + rows[half] * p.r + column_of(part)) : Pack<bf16>{};
    float y[32];
    const uint32_t at = z + static_cast<uint32_t>(block) * kBlock;
    hopper::hold(weights);
    begin_products();
#pragma unroll
    for (uint32_t k = 0; k < 8; ++k) hopper::multiply_transposed(y, weights[k], hopper::rows_of_64(at) + k * hopper::kNextRows, k > 0);
    end_products();
    wait_products<0>();
    hopper::hold(y);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = pack_bf16(y[(4 * part + i) * 4 + half * 2], y[(4 * part + i) * 4 + half * 2 + 1]);
        gather_piece(words);
        if (rows[half] < 0 || column_of(part) >= p.r) continue;
        const int64_t to = rows[half] * p.r + column_of(part);
        const uint4 piece = make_uint4(words[0], words[1], words[2], words[3]);
        *reinterpret_cast<uint4*>(Y + to) = piece;
        if (gated) store_pack(gated + to, times(piece, of_gate[half][part]));
      }
  }
#endif
}

}  // namespace

void contextualize_one_tile(int device, const Plan& p, const Tensor& Z, const Tensor& A, const Tensor& inverse, const Tensor& Y,
                            const avey::Gate& gate) {
  check(cudaFuncSetAttribute(forward_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostBlocks * kBlock));
  forward_kernel<<<static_cast<unsigned>(p.contexts), kThreads, static_cast<uint32_t>(blocks_of(p.r)) * kBlock, stream(device)>>>(
      p, pointer<bf16>(Z), pointer<float>(A), pointer<float>(inverse), pointer<bf16>(Y), pointer_or_null<bf16>(gate.factor),
      pointer_or_null<bf16>(gate.product));
  check_launch();
}

}  // namespace saccade::cuda::tiles
