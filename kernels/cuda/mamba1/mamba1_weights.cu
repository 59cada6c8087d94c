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

/// A warp owns a query t; C_t is carried back through the decays. kDecay: one for each state.
template <class T, bool kDecay>
__global__ void weights_kernel(Inputs<T> x, SharedDecay<T> shared, int64_t sequence, int d, float* weights) {
  const int t = static_cast<int>(blockIdx.x * (kThreads / 32) + threadIdx.x / 32), lane = static_cast<int>(threadIdx.x) % 32;
  if (t >= x.length) return;
  const int64_t first = sequence * x.length;
  float carried[kSlots], a[kSlots];
#pragma unroll
  for (int i = 0; i < kSlots; ++i) {
    const int n = lane + 32 * i;
    carried[i] = n < x.states ? to_float(x.c[(first + t) * x.states + n]) : 0.0f;
    a[i] = kDecay && n < x.states ? -expf(x.a_log[int64_t{d} * x.states + n]) : 0.0f;
  }
  float* row = weights + int64_t{t} * x.length;
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

void mamba1_weights(Stream stream, const Mamba1Scan& in, int64_t sequence, int64_t channel, const Tensor& weights) {
  const bool decay = in.a_log && !in.shared_dt;
  dispatch_cuda(in.u.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const scan::Inputs<T> x = scan::inputs_of<T>(in);
    const unsigned blocks = blocks_for(x.length, scan::kThreads / 32);
    const scan::SharedDecay<T> shared{pointer_or_null<T>(in.shared_dt), pointer_or_null<float>(in.shared_bias), x.a_log};
    const auto kernel = decay ? scan::weights_kernel<T, true> : scan::weights_kernel<T, false>;
    kernel<<<blocks, scan::kThreads, 0, stream>>>(x, shared, sequence, static_cast<int>(channel), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
