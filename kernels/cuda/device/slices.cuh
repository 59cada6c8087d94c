#pragma once
/// Kernels with a sum over each slice of n values, x [tokens, groups · n]: a team of threads holds a slice in registers.
#include <string>

#include "kernels/cuda/device/values.cuh"
#include "kernels/ops/shared/slices.h"

namespace saccade::cuda {

struct Slices {
  int64_t tokens;
  int groups, n;
};

/// kSize threads of a warp, or with 0 the whole block. Packed: a thread holds neighbours (n is a multiple of the vector width);
/// else 4 values a block's width apart. Block (p, g) goes over slice g of the p-th share of the tokens.
template <class T, int kSize, bool kPacked>
class Team {
 public:
  static constexpr int kThreads = kSize > 0 ? 256 : kPacked ? 512 : 1024;  ///< most threads per block
  static constexpr int kCount = kPacked ? kVector<T> : 4;
  using Mine = Values<kCount>;

  __device__ explicit Team(const Slices& s)
      : n_(s.n),
        row_(s.groups * s.n),
        group_(static_cast<int>(blockIdx.y)),
        lane_(static_cast<int>(kSize > 0 ? threadIdx.x % kSize : threadIdx.x)),
        team_(static_cast<int>(kSize > 0 ? threadIdx.x / kSize : 0)),
        teams_(static_cast<int>(kSize > 0 ? blockDim.x / kSize : 1)) {
    const int64_t share = (s.tokens + gridDim.x - 1) / gridDim.x;
    token_ = blockIdx.x * share + team_ - teams_;
    end_ = min(s.tokens, (blockIdx.x + 1) * share);
  }

  /// Moves to the next token; the teams of a block stay together, those beyond the last token hold zeros.
  __device__ bool next() {
    token_ += teams_;
    return token_ - team_ < end_;
  }
  __device__ bool has(int i) const { return position(i) < n_; }

  /// Index of the slice in a tensor of tokens, and in a parameter [groups, n].
  template <class U>
  __device__ Mine load(const U* x) const {
    return token_ < end_ ? read(x + token_ * row_ + group_ * n_) : Mine();
  }
  template <class U>
  __device__ Mine parameter(const U* p) const {
    return read(p + group_ * n_);
  }
  template <class U>
  __device__ void store(U* y, const Mine& x, bool add = false) const {
    if (!y || token_ >= end_) return;
    y += token_ * row_ + group_ * n_;
    if constexpr (kPacked) {
      if (has(0)) store_values(y + position(0), x, add);
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        if (has(i)) y[position(i)] = from_float<U>((add ? to_float(y[position(i)]) : 0.0f) + x.v[i]);
    }
  }

  /// Sums over the team, in every thread, in a fixed order; several at once cost little more than one.
  template <int K>
  struct Sums {
    float of[K];
  };
  template <int K>
  __device__ Sums<K> sum(Sums<K> x) {
    constexpr int kLanes = kSize > 0 ? kSize : 32;
#pragma unroll
    for (int offset = kLanes / 2; offset > 0; offset >>= 1)
#pragma unroll
      for (int k = 0; k < K; ++k) x.of[k] += __shfl_xor_sync(0xffffffffu, x.of[k], offset);
    if constexpr (kSize == 0) {
      __shared__ float warps[2][K][32];  // used alternately: a thread that writes one again has passed the barrier after the other's reads
      buffer_ = 1 - buffer_;
#pragma unroll
      for (int k = 0; k < K; ++k)
        if (threadIdx.x % 32 == 0) warps[buffer_][k][threadIdx.x / 32] = x.of[k];
      __syncthreads();
      x = {};
      for (unsigned w = 0; w < blockDim.x / 32; ++w)
#pragma unroll
        for (int k = 0; k < K; ++k) x.of[k] += warps[buffer_][k][w];
    }
    return x;
  }
  /// Of this thread alone: Σ a_i and Σ a_i b_i.
  __device__ static float own_total(const Mine& a) {
    float x = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) x += a.v[i];
    return x;
  }
  __device__ static float own_dot(const Mine& a, const Mine& b) {
    float x = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) x += a.v[i] * b.v[i];
    return x;
  }
  __device__ float total(const Mine& a) { return sum(Sums<1>{own_total(a)}).of[0]; }
  __device__ float dot(const Mine& a, const Mine& b) { return sum(Sums<1>{own_dot(a, b)}).of[0]; }

  /// The block's row of parts [share, groups, n] = Σ of `mine` over its teams, in order. Nothing when parts is null.
  __device__ void write_part(float* parts, const Mine& mine) const {
    if (!parts) return;
    parts += int64_t{blockIdx.x} * row_ + group_ * n_;
    if constexpr (kSize == 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        if (has(i)) parts[position(i)] = mine.v[i];
    } else {
      __shared__ float sums[kThreads * kCount];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        if (has(i)) sums[team_ * n_ + position(i)] = mine.v[i];
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < n_; i += kThreads) {
        float sum = 0;
        for (int t = 0; t < teams_; ++t) sum += sums[t * n_ + i];
        parts[i] = sum;
      }
    }
  }

 private:
  __device__ int position(int i) const { return kPacked ? lane_ * kCount + i : lane_ + static_cast<int>(blockDim.x) * i; }
  template <class U>
  __device__ Mine read(const U* p) const {
    Mine r;
    if constexpr (kPacked) {
      if (has(0)) r = load_values<kCount>(p + position(0));
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        if (has(i)) r.v[i] = to_float(p[position(i)]);
    }
    return r;
  }

  int n_;
  int64_t row_;
  int group_, lane_, team_, teams_;
  int64_t token_, end_;
  int buffer_ = 0;
};

template <class T, int kSize, bool kPacked>
struct TeamOf {
  using type = Team<T, kSize, kPacked>;
};

/// Calls launch(TeamOf<…>, grid, threads) with the team that suits the width; shares: of the tokens, 0: one token a team.
template <class T, class Launch>
void with_team(const char* op, const Slices& s, int64_t shares, Launch&& launch) {
  const int packs = s.n / kVector<T>;
  const auto go = [&](auto team, int threads, int size) {
    const unsigned x = shares > 0 ? static_cast<unsigned>(shares) : blocks_for(s.tokens, size > 0 ? threads / size : 1);
    launch(team, dim3(x, static_cast<unsigned>(s.groups)), static_cast<unsigned>(threads));
    check_launch();
  };
  const auto whole_warps = [](int threads) { return (threads + 31) / 32 * 32; };
  if (s.n % kVector<T> == 0 && packs <= 8) return go(TeamOf<T, 8, true>{}, 256, 8);
  if (s.n % kVector<T> == 0 && packs <= 16) return go(TeamOf<T, 16, true>{}, 256, 16);
  if (s.n % kVector<T> == 0 && packs <= 32) return go(TeamOf<T, 32, true>{}, 256, 32);
  if (s.n % kVector<T> == 0 && packs <= 512) return go(TeamOf<T, 0, true>{}, whole_warps(packs), 0);
  if (s.n <= 4096) return go(TeamOf<T, 0, false>{}, whole_warps((s.n + 3) / 4), 0);
  throw DeviceError(std::string("[") + op + "] the CUDA engine does not take slices of " + std::to_string(s.n));
}

}  // namespace saccade::cuda
