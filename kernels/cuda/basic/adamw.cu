#include <bit>

#include "kernels/cuda/basic/optimizer_step.cuh"
#include "kernels/ops/adamw/adamw_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kThreads = 256, kPerThread = 8;
constexpr int64_t kPiece = kAdamWSlice;
static_assert(kPiece == kThreads * kPerThread);

/// What one block works on.
struct SlotSlice {
  float *value, *grad, *first, *second;
  bf16* copy;   ///< null: none
  double rate;  ///< multiplies the learning rate
  int count;
  bool decay;
};

/// Part of a tensor from an element on; null where there is none.
template <class T>
T* part(const Tensor& x, int64_t begin) {
  return x ? pointer<T>(x) + begin : nullptr;
}

std::vector<SlotSlice> slot_slices(const std::vector<AdamWSlot>& slots) {
  std::vector<SlotSlice> all;
  for (const AdamWSlot& slot : slots)
    for (int64_t begin = 0; begin < slot.value.size(); begin += kPiece)
      all.push_back({part<float>(slot.value, begin), part<float>(slot.grad, begin), part<float>(slot.first_moment, begin),
                     part<float>(slot.second_moment, begin), part<bf16>(slot.compute_copy, begin), slot.rate,
                     static_cast<int>(std::min(kPiece, slot.value.size() - begin)), slot.decay});
  return all;
}

/// The pieces of the slots, on the device.
struct Table {
  const SlotSlice* pieces;
  int count;
};
Table table(Stream stream, const std::vector<AdamWSlot>& slots) {
  std::vector<uintptr_t> key;
  for (const AdamWSlot& slot : slots) {
    for (const Tensor& x : {slot.value, slot.grad, slot.first_moment, slot.second_moment, slot.compute_copy})
      key.push_back(x ? reinterpret_cast<uintptr_t>(x.raw()) : 0);
    key.push_back(static_cast<uintptr_t>(slot.value.size()));
    key.push_back(slot.decay);
    key.push_back(std::bit_cast<uintptr_t>(slot.rate));
  }
  const std::vector<SlotSlice> all = slot_slices(slots);
  return {device_table(stream, key, all), static_cast<int>(all.size())};
}

__global__ void __launch_bounds__(kThreads) squares_kernel(const SlotSlice* pieces, double* partial) {
  const SlotSlice p = pieces[blockIdx.x];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const int i = threadIdx.x + k * kThreads;
    if (i < p.count) sum += p.grad[i] * p.grad[i];
  }
  const double total = block_sum_double<kThreads>(static_cast<double>(sum));
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads) norm_of_parts_kernel(const double* partial, double* norm, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += kThreads) sum += partial[i];
  sum = block_sum_double<kThreads>(sum);
  if (threadIdx.x == 0) *norm = sqrt(sum);
}

/// kPerThread neighbours, moved 16 bytes at a time.
struct Floats {
  float x[kPerThread];
  __device__ __forceinline__ void load(const float* p) {
#pragma unroll
    for (int i = 0; i < kPerThread; i += 4) {
      const Pack<float> piece = load_pack(p + i);
#pragma unroll
      for (int j = 0; j < 4; ++j) x[i + j] = piece.v[j];
    }
  }
  __device__ __forceinline__ void store(float* p) const {
#pragma unroll
    for (int i = 0; i < kPerThread; i += 4) store_pack(p + i, Pack<float>{x[i], x[i + 1], x[i + 2], x[i + 3]});
  }
};
static_assert(kPerThread == kVector<bf16>);

__global__ void __launch_bounds__(kThreads)
    update_kernel(const SlotSlice* pieces, AdamW o, const double* rates, double clip, const double* norm) {
  const double n = *norm;
  if (!isfinite(n)) return;
  const SlotSlice p = pieces[blockIdx.x];
  const float scale = gradient_scale(clip, n), rate = static_cast<float>(rates[0] * p.rate);
  const float step_size = static_cast<float>(rates[0] * p.rate / rates[1]), inverse_correction2 = static_cast<float>(1.0 / rates[2]);
  const float shrink = 1.0f - (p.decay ? rate * static_cast<float>(o.weight_decay) : 0.0f);
  const float beta1 = static_cast<float>(o.beta1), beta2 = static_cast<float>(o.beta2), eps = static_cast<float>(o.eps);
  const auto update = [&](float g, float& m, float& v, float& w) {
    g *= scale;
    m = beta1 * m + (1.0f - beta1) * g;
    v = beta2 * v + (1.0f - beta2) * g * g;
    w = w * shrink - step_size * m / (sqrtf(v * inverse_correction2) + eps);
  };
  if (p.count < kPiece) {
    for (int i = threadIdx.x; i < p.count; i += kThreads) {
      update(p.grad[i], p.first[i], p.second[i], p.value[i]);
      if (p.copy) p.copy[i] = __float2bfloat16_rn(p.value[i]);
    }
    return;
  }
  const int at = threadIdx.x * kPerThread;
  Floats g, m, v, w;
  g.load(p.grad + at), m.load(p.first + at), v.load(p.second + at), w.load(p.value + at);
  Pack<bf16> copy;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    update(g.x[k], m.x[k], v.x[k], w.x[k]);
    copy.v[k] = __float2bfloat16_rn(w.x[k]);
  }
  m.store(p.first + at), v.store(p.second + at), w.store(p.value + at);
  if (p.copy) store_pack(p.copy + at, copy);
}

}  // namespace

void gradient_squares(Stream stream, const std::vector<AdamWSlot>& slots, const Tensor& squares) {
  const Table t = table(stream, slots);
  squares_kernel<<<static_cast<unsigned>(t.count), kThreads, 0, stream>>>(t.pieces, pointer<double>(squares));
  check_launch();
}

void norm_of_squares(Stream stream, const Tensor& squares, const Tensor& norm) {
  norm_of_parts_kernel<<<1, kThreads, 0, stream>>>(pointer<double>(squares), pointer<double>(norm), static_cast<int>(squares.size()));
  check_launch();
}

void adamw_step(Stream stream, const std::vector<AdamWSlot>& slots, const AdamW& options, const Tensor& rates, double clip,
                const Tensor& norm) {
  const Table t = table(stream, slots);
  update_kernel<<<static_cast<unsigned>(t.count), kThreads, 0, stream>>>(t.pieces, options, pointer<double>(rates), clip,
                                                                         pointer<double>(norm));
  check_launch();
}

}  // namespace saccade::cuda
