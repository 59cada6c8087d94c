#pragma once
/// Shared by the WKV kernels. Device code only.
#include "kernels/cuda/device/lane_sums.cuh"
#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/wkv/wkv_cuda.h"

namespace saccade::cuda::wkv5 {

constexpr int kTile = static_cast<int>(kWkvTile);

/// A head of kPadded channels, distributed over warps: kLanes lanes hold one row or column of the state, kEach elements each, in vectors of
/// four, so that the lanes read neighbouring vectors of a row in shared memory.
template <int kPaddedWidth, int kEachLane>
struct Widths {
  static constexpr int kPadded = kPaddedWidth, kEach = kEachLane, kLanes = kPadded / kEach, kSpan = 32 / kLanes;
  static_assert(kEach % 4 == 0 && kLanes <= 32);

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static __device__ int group() { return lane() / kSpan; }
  /// Index of the lane's i-th element.
  static __device__ int element(int i) { return i / 4 * 4 * kLanes + group() * 4 + i % 4; }
  static __device__ void load(const float* row, float (&x)[kEach]) {
#pragma unroll
    for (int i = 0; i < kEach; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(row + i * kLanes + group() * 4);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  }
};

/// f(a type that stands for the padded width).
template <class F>
void with_padded(int64_t width, F&& f) {
  switch (wkv_padded(width)) {
    case 16: return f(std::integral_constant<int, 16>{});
    case 32: return f(std::integral_constant<int, 32>{});
    case 64: return f(std::integral_constant<int, 64>{});
    case 128: return f(std::integral_constant<int, 128>{});
    default: return f(std::integral_constant<int, 256>{});
  }
}

/// The tokens and channels of one head.
struct Head {
  int64_t sequence, head, heads;
  int length, width;

  /// Of an element of [B, T, H, N].
  __device__ int64_t at(int t, int channel) const { return ((sequence * length + t) * heads + head) * width + channel; }
  __device__ bool holds(int t, int channel) const { return t >= 0 && t < length && channel < width; }
  __device__ int64_t parameter(int channel) const { return head * width + channel; }
  /// Of an element of [B, H, N, N].
  __device__ int64_t state(int row, int column) const { return ((sequence * heads + head) * width + row) * width + column; }
};

/// Raw decays, constant or per token; one of the two is null.
template <class T>
struct Decays {
  const float* constant;
  const T* per_token;

  __device__ float raw(const Head& head, int t, int channel) const {
    return fminf(constant ? constant[head.parameter(channel)] : to_float(per_token[head.at(t, channel)]), 8.0f);
  }
};
/// e^λ, λ = −e^raw
__device__ __forceinline__ float decay_of(float raw) { return __expf(-__expf(raw)); }

template <class T>
Decays<T> decays_of(const cpu::WkvInputs& in) {
  if (in.constant_decay()) return {pointer<float>(in.w_raw), nullptr};
  return {nullptr, pointer<T>(in.w_raw)};
}

/// Goes through a head with a state S [N, N] that decays by rows i:
///   out_j = Σ_i q_i S_ij + (Σ_i q_i p_i bonus_i) x_j,   S_ij ← e^{λ_i} S_ij + p_i x_j
/// y: q, p, x = r, k, v from the left; dv: k, r, dy from the right.
template <class T>
struct Sweep {
  const T *q, *p, *x;  ///< x null: zeros
  Decays<T> decays;
  const float* bonus;
  const float* start;  ///< null: zeros
  Goal<T> out;
  Goal<float> end;
  float* starts;  ///< the state before every tile where not null, [B, H, tiles, padded, padded]
  bool from_right;
};
template <class T>
void run_sweep(Stream stream, const cpu::WkvInputs& in, const Sweep<T>& sweep);

/// Σ over sequences and chunks of parts [B, H, chunks, N] or [B, H, N].
void sum_parts(Stream stream, const cpu::WkvInputs& in, const Tensor& parts, const GradTarget& to);

}  // namespace saccade::cuda::wkv5
