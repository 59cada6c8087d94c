#pragma once
/// WKV in chunks of 16 tokens for bf16 heads of 32 or 64 channels: products between tokens go to tensor cores, the decays between the
/// tokens of a chunk are running products in float32, all ≤ 1 (the secondary chunks of arXiv:2312.06635, section 4.3, as chunks of their
/// own). Device code only.
///
/// A thread owns a token and eight channels; for matrix products a warp owns 16 columns.
#include "kernels/cuda/device/tensor_core.cuh"
#include "kernels/cuda/wkv/wkv.cuh"

namespace saccade::cuda::wkv5 {

template <int kHeadWidth>
struct Chunk {
  static constexpr int kWidth = kHeadWidth, kGroups = kWidth / 8, kThreads = kTile * kGroups, kRow = kWidth + 4;
  static constexpr int kTokensOfWarp = 32 / kGroups;

  static __device__ int token() { return static_cast<int>(threadIdx.x) / kGroups; }
  static __device__ int group() { return static_cast<int>(threadIdx.x) % kGroups; }
  static __device__ int channel() { return group() * 8; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ int first_token() { return warp() * kTokensOfWarp; }  ///< of the warp
};

using Eight = float[8];

__device__ __forceinline__ void load_eight(const float* from, Eight& x) {
  const float4 a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4);
  x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
__device__ __forceinline__ void store_eight(const Eight& x, float* to) {
  *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(to + 4) = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ __forceinline__ void unpack(const uint4& bits, Eight& x) {
  const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) x[2 * i] = __uint_as_float(words[i] << 16), x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
}
__device__ __forceinline__ uint4 pack(const Eight& x) {
  return {pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7])};
}
__device__ __forceinline__ void store_shared(uint32_t at, const uint4& x) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t at, float x) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(at), "h"(__bfloat16_as_ushort(__float2bfloat16_rn(x))) : "memory");
}

/// Sum over the lanes of a token, in all of them.
template <class C>
__device__ __forceinline__ float token_sum(float x) {
#pragma unroll
  for (int offset = C::kGroups / 2; offset > 0; offset >>= 1) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

template <class C>
struct alignas(16) FloatRows {
  float x[kTile][C::kRow];
  __device__ float* own() { return x[C::token()] + C::channel(); }
  __device__ const float* of(int token) const { return x[token] + C::channel(); }
};
template <class C>
struct alignas(128) HalfRows {
  bf16 x[kTile * C::kWidth];
  __device__ SharedRows<C::kWidth> rows() const { return {shared_address(x)}; }
  __device__ void put_own(const uint4& eight) { store_shared(rows().at(C::token(), C::group()), eight); }
};
struct alignas(128) Square {
  bf16 x[kTile * kTile];
  __device__ SharedRows<kTile> rows() const { return {shared_address(x)}; }
  __device__ void put(int row, int column, float value) {
    store_shared(rows().at(row, column / 8) + static_cast<uint32_t>(column % 8 * 2), value);
  }
};

/// The thread's eight elements of x [B, T, H, N] at a token; zeros beyond the end.
template <class C>
__device__ __forceinline__ uint4 fetch(const Head& head, const bf16* x, int token) {
  if (!x || token >= head.length) return {0, 0, 0, 0};
  return *reinterpret_cast<const uint4*>(x + head.at(token, C::channel()));
}

/// λ and e^λ of the thread's elements; 0 and 1 beyond the end.
template <class C>
__device__ __forceinline__ void decays_at(const Head& head, const Decays<bf16>& decays, const uint4& fetched, int token, Eight& rate,
                                          Eight& decay) {
  if (decays.constant)
    load_eight(decays.constant + head.parameter(C::channel()), rate);
  else
    unpack(fetched, rate);
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    rate[c] = token < head.length ? -__expf(fminf(rate[c], 8.0f)) : 0.0f;
    decay[c] = __expf(rate[c]);
  }
}

/// Π of the decays of the tokens after the thread's own, or before it.
template <class C>
__device__ __forceinline__ void decay_after(const FloatRows<C>& w, Eight& product) {
#pragma unroll
  for (int c = 0; c < 8; ++c) product[c] = 1;
  for (int i = C::first_token() + 1; i < kTile; ++i) {
    if (i <= C::token()) continue;
    Eight decay;
    load_eight(w.of(i), decay);
#pragma unroll
    for (int c = 0; c < 8; ++c) product[c] *= decay[c];
  }
}
template <class C>
__device__ __forceinline__ void decay_before(const FloatRows<C>& w, Eight& product) {
#pragma unroll
  for (int c = 0; c < 8; ++c) product[c] = 1;
  for (int j = 0; j < C::token(); ++j) {
    Eight decay;
    load_eight(w.of(j), decay);
#pragma unroll
    for (int c = 0; c < 8; ++c) product[c] *= decay[c];
  }
}

/// c [16 x 16] += a b over kWidth, a = rows of a tile, b = 16 columns of a matrix whose rows are summed over.
template <class C>
__device__ __forceinline__ void multiply_columns(float (&c)[2][4], const SharedRows<C::kWidth>& a, const SharedRows<C::kWidth>& b) {
#pragma unroll
  for (int k = 0; k < C::kWidth / 16; ++k) {
    uint32_t left[4], right[4];
    a.load_a(left, 0, k);
    b.load_b_transposed(right, 16 * k, C::warp());
    multiply(c[0], left, right[0], right[1]);
    multiply(c[1], left, right[2], right[3]);
  }
}

/// Position of element i (0 … 3) of the n-th 16 x 8 accumulator in its tile; i and i + 1 are neighbours for even i.
struct Spot {
  int row, column;
};
__device__ __forceinline__ Spot spot(int n, int i) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return {lane / 4 + i / 2 * 8, 8 * n + lane % 4 * 2 + i % 2};
}

/// Carries a state Sᵀ [v, c] through a head: S ← diag(Π e^λ) S + x̃ᵀ o, x̃ = x times the decays between it and the end of the chunk:
/// from the left x, o = k, v, from the right r, dy.
struct StatePass {
  const bf16 *r, *k, *o;
  Decays<bf16> decays;
  const float *bonus, *start;  ///< start null: zeros
  bf16* y;                     ///< outputs, from the left; null: none
  bf16* saved;                 ///< Sᵀ where a chunk begins, [B, H, chunks, N, N]; null: not wanted
  float* carried;              ///< [S | Π e^λ] of wkv_carried_shape; null: one segment
  Goal<float> end;
  bool from_right;
};
/// One pass, or two passes without outputs in parallel. The segments of a head run in parallel: first from zeros, for every segment's end
/// state and decay, which are then combined from segment to segment; then from the true starts. The first of two passes has these already.
void run_state_pass(Stream stream, const cpu::WkvInputs& in, const StatePass& pass, const StatePass* second = nullptr);

}  // namespace saccade::cuda::wkv5
