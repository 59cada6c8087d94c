#include "kernels/cuda/mamba1/mamba1_scan.cuh"

namespace saccade::cuda {
namespace scan {
namespace {

constexpr int kSlots = static_cast<int>(kMaxScanStates / 32);  ///< states of a lane

/// Log decay −e^α softplus(s + b) of a token, the same for all channels and states; zero without s.
template <class T>
struct SharedDecay {
  const T* s;
  const float *bias, *exponent;
  __device__ float of(int64_t row) const { return s ? -expf(exponent[0]) * softplus(to_float(s[row]) + bias[0]) : 0.0f; }
};

/// Channels that one launch goes through.
struct Shown {
  static constexpr int kMost = 16;
  int count, channels[kMost];
};

/// A warp owns a query t of a channel (blockIdx.y) of a sequence (blockIdx.z, from `first_sequence` on), whose maps are `stride` elements
/// apart; C_t is carried back through the decays. kDecay: one for each state.
template <class T, bool kDecay>
__global__ void weights_kernel(Inputs<T> x, SharedDecay<T> shared, int64_t first_sequence, Shown shown, int64_t stride, float* weights) {
  const int d = shown.channels[blockIdx.y];
  const int t = static_cast<int>(blockIdx.x * (kThreads / 32) + threadIdx.x / 32), lane = static_cast<int>(threadIdx.x) % 32;
  if (t >= x.length) return;
  const int64_t first = (first_sequence + blockIdx.z) * x.length;
  float carried[kSlots], a[kSlots];
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const int n = lane + 32 * i;
    carried[i] = n < x.states ? to_float(x.c[(first + t) * x.states + n]) : 0.0f;
    a[i] = kDecay && n < x.states ? -expf(x.a_log[int64_t{d} * x.states + n]) : 0.0f;
  }
  float* row = weights + blockIdx.z * stride + (int64_t{blockIdx.y} * x.length + t) * x.length;
  for (int j = t; j >= 0; --j) {
    const float step = softplus(to_float(x.dt[(first + j) * x.width + d]) + x.bias[d]);
    const float log_decay = kDecay ? 0.0f : shared.of(first + j);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const int n = lane + 32 * i;
      if (n >= x.states) break;
      sum += carried[i] * to_float(x.b[(first + j) * x.states + n]);
      carried[i] *= expf(kDecay ? step * a[i] : log_decay);
    }
    sum = warp_sum(sum);
    if (lane == 0) row[j] = step * sum + (j == t ? x.skip[d] : 0.0f);
  }
  for (int j = t + 1 + lane; j < x.length; j += 32) row[j] = 0;
}

}  // namespace
}  // namespace scan

void mamba1_weights(Stream stream, const Mamba1Scan& in, const Sequences& sequences, const std::vector<int64_t>& channels,
                    const Tensor& weights) {
  const bool decay = in.a_log && !in.shared_dt;
  const auto count = static_cast<int64_t>(channels.size()), map = weights.dim(1) * weights.dim(2);
  dispatch_cuda(in.u.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const scan::Inputs<T> x = scan::inputs_of<T>(in);
    const unsigned blocks = blocks_for(x.length, scan::kThreads / 32);
    const scan::SharedDecay<T> shared{pointer_or_null<T>(in.shared_dt), pointer_or_null<float>(in.shared_bias), x.a_log};
    const auto kernel = decay ? scan::weights_kernel<T, true> : scan::weights_kernel<T, false>;
    for (int64_t i = 0; i < count; i += scan::Shown::kMost) {
      scan::Shown shown{static_cast<int>(std::min<int64_t>(count - i, scan::Shown::kMost)), {}};
      for (int c = 0; c < shown.count; ++c) shown.channels[c] = static_cast<int>(channels[static_cast<size_t>(i + c)]);
      const dim3 grid(blocks, static_cast<unsigned>(shown.count), static_cast<unsigned>(sequences.count));
      kernel<<<grid, scan::kThreads, 0, stream>>>(x, shared, sequences.first, shown, count * map, pointer<float>(weights) + i * map);
    }
  });
  check_launch();
}

}  // namespace saccade::cuda
