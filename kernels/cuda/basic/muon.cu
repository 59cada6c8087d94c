#include <algorithm>
#include <bit>

#include "kernels/cuda/basic/optimizer_step.cuh"
#include "kernels/ops/linear/gemm_cuda.h"
#include "kernels/ops/muon/muon_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kPerThread = 8;
static_assert(kMuonSlice == kThreads * kPerThread);

/// One matrix of a group.
struct Member {
  float *value, *grad, *momentum;
  bf16* copy;   ///< null: none
  double rate;  ///< multiplies the learning rate
};

/// The members of a group, on the device.
const Member* members(Stream stream, const std::vector<const MuonSlot*>& group) {
  std::vector<Member> all;
  std::vector<uintptr_t> key;
  for (const MuonSlot* slot : group) {
    const Member m{pointer<float>(slot->value), pointer<float>(slot->grad), pointer<float>(slot->momentum),
                   slot->compute_copy ? pointer<bf16>(slot->compute_copy) : nullptr, slot->rate};
    for (const void* p :
         {static_cast<void*>(m.value), static_cast<void*>(m.grad), static_cast<void*>(m.momentum), static_cast<void*>(m.copy)})
      key.push_back(reinterpret_cast<uintptr_t>(p));
    key.push_back(static_cast<uintptr_t>(slot->value.size()));
    key.push_back(std::bit_cast<uintptr_t>(slot->rate));
    all.push_back(m);
  }
  return device_table(stream, key, all);
}

struct Options {
  float momentum;
  bool nesterov;
  double clip, weight_decay, eps;
};

__device__ __forceinline__ float direction(const Options& o, float g, float m) { return o.nesterov ? g + o.momentum * (m - g) : m; }

/// Block (piece, matrix): the new momentum, and the sum of the squares of the piece's direction.
__global__ void __launch_bounds__(kThreads)
    momentum_kernel(const Member* members, Options o, const double* norm, int64_t size, double* squares) {
  if (!isfinite(*norm)) return;
  const Member x = members[blockIdx.y];
  const float scale = gradient_scale(o.clip, *norm);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int64_t i = blockIdx.x * kMuonSlice + threadIdx.x + j * kThreads;
    if (i >= size) continue;
    const float g = x.grad[i] * scale, before = x.momentum[i], m = before + (1.0f - o.momentum) * (g - before);
    x.momentum[i] = m;
    const float u = direction(o, g, m);
    sum += u * u;
  }
  const double total = block_sum_double<kThreads>(static_cast<double>(sum));
  if (threadIdx.x == 0) squares[blockIdx.y * gridDim.x + blockIdx.x] = total;
}

/// Block (piece, matrix): X = u / max(‖u‖, eps) in bf16. Every block adds up the squares of its matrix in the same order.
__global__ void __launch_bounds__(kThreads)
    normalise_kernel(const Member* members, Options o, const double* norm, int64_t size, const double* squares, bf16* to) {
  if (!isfinite(*norm)) return;
  const Member x = members[blockIdx.y];
  double sum = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += kThreads) sum += squares[blockIdx.y * gridDim.x + i];
  const auto inverse = static_cast<float>(1.0 / fmax(sqrt(block_sum_double<kThreads>(sum)), o.eps));
  const float scale = gradient_scale(o.clip, *norm);
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int64_t i = blockIdx.x * kMuonSlice + threadIdx.x + j * kThreads;
    if (i < size) to[blockIdx.y * size + i] = __float2bfloat16_rn(direction(o, x.grad[i] * scale, x.momentum[i]) * inverse);
  }
}

/// Block (piece, matrix): w ← w (1 − lr λ) − lr · ratio · X, with `ratio` as muon_step has it.
__global__ void __launch_bounds__(kThreads) apply_kernel(const Member* members, Options o, const double* norm, const double* learning_rate,
                                                         double ratio, int64_t size, const bf16* direction) {
  if (!isfinite(*norm)) return;
  const Member x = members[blockIdx.y];
  const double rate = *learning_rate * x.rate;
  const auto shrink = static_cast<float>(1.0 - rate * o.weight_decay), step = static_cast<float>(rate * ratio);
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int64_t i = blockIdx.x * kMuonSlice + threadIdx.x + j * kThreads;
    if (i >= size) continue;
    const float w = x.value[i] * shrink - step * __bfloat162float(direction[blockIdx.y * size + i]);
    x.value[i] = w;
    if (x.copy) x.copy[i] = __float2bfloat16_rn(w);
  }
}

/// Newton–Schulz on `count` matrices [n, k] in w.x. What is kept is X / s, with the scalar s known here: then
///   X ← a X + (b A + c A²) X   is   s ← a s,  X/s ← X/s + (H + (a c / b²) H²) (X/s),  H = (b / a) A = (b s² / a) (X/s)(X/s)ᵀ,
/// and both sums are products added to a copy in f32, with one rounding. Returns s; the result lies in w.x or, when `swapped`, in w.y.
double newton_schulz(int device, Stream stream, const Shape& matrix, int64_t count, const Muon& o, const MuonWorkspace& w, bool& swapped) {
  const int64_t n = matrix[0], k = matrix[1], m = std::min(n, k), bytes = byte_size(DType::bf16);
  const bool tall = n > k;
  const auto [a, b, c] = o.coefficients;
  const Matrix gram{w.gram.raw(), DType::bf16, m, m * m}, sum{w.sum.raw(), DType::bf16, m, m * m};
  double s = 1;
  swapped = false;
  for (int64_t step = 0; step < o.newton_schulz_steps; ++step) {
    const Tensor &now = swapped ? w.y : w.x, &then = swapped ? w.x : w.y;
    const Matrix x{now.raw(), DType::bf16, k, n * k}, y{then.raw(), DType::bf16, k, n * k};
    gemm(device, tall, !tall, m, m, tall ? n : k, b * s * s / a, x, x, false, gram, count);
    copy_on_device(stream, w.sum.raw(), w.gram.raw(), count * m * m * bytes);
    gemm(device, false, false, m, m, m, a * c / (b * b), gram, gram, true, sum, count);
    copy_on_device(stream, then.raw(), now.raw(), count * n * k * bytes);
    if (tall)
      gemm(device, false, false, n, k, k, 1.0, x, sum, true, y, count);
    else
      gemm(device, false, false, n, k, n, 1.0, sum, x, true, y, count);
    s *= a;
    swapped = !swapped;
  }
  return s;
}

}  // namespace

void muon_step(Stream stream, const std::vector<MuonSlot>& slots, const Muon& options, const Tensor& learning_rate, double clip,
               const Tensor& norm, const MuonWorkspace& w) {
  const Options o{static_cast<float>(options.momentum), options.nesterov, clip, options.weight_decay, options.eps};
  const auto *norm_at = pointer<double>(norm), *rate_at = pointer<double>(learning_rate);
  for (const auto& group : muon_groups(slots)) {
    const Shape& matrix = group.front()->value.shape();
    const auto count = static_cast<int64_t>(group.size());
    const Member* table = members(stream, group);
    const dim3 grid(static_cast<unsigned>(muon_parts(matrix)), static_cast<unsigned>(count));
    momentum_kernel<<<grid, kThreads, 0, stream>>>(table, o, norm_at, matrix.size(), pointer<double>(w.squares));
    normalise_kernel<<<grid, kThreads, 0, stream>>>(table, o, norm_at, matrix.size(), pointer<double>(w.squares), pointer<bf16>(w.x));
    check_launch();
    bool swapped = false;
    const double s = newton_schulz(norm.device().index, stream, matrix, count, options, w, swapped);
    apply_kernel<<<grid, kThreads, 0, stream>>>(table, o, norm_at, rate_at, s * muon_ratio(options, matrix), matrix.size(),
                                                pointer<bf16>(swapped ? w.y : w.x));
    check_launch();
  }
}

}  // namespace saccade::cuda
