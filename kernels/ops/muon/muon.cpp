#include "kernels/ops/muon/muon.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/expect.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/muon/muon_cuda.h"

namespace saccade {
namespace {

int64_t smaller_side(const Shape& matrix) { return std::min(matrix[0], matrix[1]); }

/// Workspace on the CPU: one matrix at a time, sized for the largest.
struct Workspace {
  Tensor x, y;       ///< [n k]: the iterate and the next one
  Tensor gram, sum;  ///< [min(n, k)²]: A and b A + c A²
};

}  // namespace

double muon_ratio(const Muon& options, const Shape& matrix) {
  const auto n = static_cast<double>(matrix[0]), k = static_cast<double>(matrix[1]);
  return options.match_rms_adamw ? 0.2 * std::sqrt(std::max(n, k)) : std::sqrt(std::max(1.0, n / k));
}

namespace cpu {
namespace {

constexpr int64_t kBlock = 1 << 14;

template <class T>
struct Momentum {
  T scale, momentum, rest;
  bool nesterov;
};

/// u and the new momentum of a block; the sum of the squares of u.
template <class T>
SACCADE_INLINE double momentum_block(const Momentum<T>& o, const T* grad, T* m, T* u, int64_t n) {
  const T ahead = o.nesterov ? o.momentum : T(1);
  for (int64_t i = 0; i < n; ++i) {
    const T g = grad[i] * o.scale;
    m[i] += o.rest * (g - m[i]);
    u[i] = m[i] + (T(1) - ahead) * (g - m[i]);
  }
  return lane_sum<double>(n, [&](int64_t i) SACCADE_INLINE_LAMBDA { return static_cast<double>(u[i]) * static_cast<double>(u[i]); });
}
SACCADE_SIMD double take_momentum(const Momentum<float>& o, const float* g, float* m, float* u, int64_t n) {
  return momentum_block(o, g, m, u, n);
}
SACCADE_SIMD double take_momentum(const Momentum<double>& o, const double* g, double* m, double* u, int64_t n) {
  return momentum_block(o, g, m, u, n);
}

/// y = a x
template <class T>
void scaled(T a, const T* x, T* y, int64_t size) {
  parallel_ranges(size, kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = a * x[i];
  });
}

/// The step's direction u / max(‖u‖, eps) in `x`, and the new momentum.
template <class T>
void first_iterate(const MuonSlot& slot, const Muon& o, double scale, T* x) {
  const int64_t size = slot.value.size(), blocks = (size + kBlock - 1) / kBlock;
  const Momentum<T> options{static_cast<T>(scale), static_cast<T>(o.momentum), static_cast<T>(1 - o.momentum), o.nesterov};
  std::vector<double> squares(static_cast<size_t>(blocks));
  parallel_for(blocks, [&](int64_t b) {
    const int64_t begin = b * kBlock, end = std::min(begin + kBlock, size);
    squares[static_cast<size_t>(b)] =
        take_momentum(options, slot.grad.data<T>() + begin, slot.momentum.data<T>() + begin, x + begin, end - begin);
  });
  double sum = 0;
  for (const double part : squares) sum += part;
  scaled(static_cast<T>(1 / std::max(std::sqrt(sum), o.eps)), x, x, size);
}

/// Newton–Schulz from w.x; returns where the result lies, w.x or w.y.
template <class T>
T* orthogonalised(const Shape& matrix, const Muon& o, const Workspace& w) {
  const int64_t n = matrix[0], k = matrix[1], m = smaller_side(matrix);
  const bool tall = n > k;
  const auto [a, b, c] = o.coefficients;
  T *x = w.x.data<T>(), *y = w.y.data<T>(), *gram = w.gram.data<T>(), *sum = w.sum.data<T>();
  for (int64_t step = 0; step < o.newton_schulz_steps; ++step) {
    gemm<T>(tall, !tall, m, m, tall ? n : k, T(1), x, k, x, k, false, gram, m);
    scaled(static_cast<T>(b), gram, sum, m * m);
    gemm<T>(false, false, m, m, m, static_cast<T>(c), gram, m, gram, m, true, sum, m);
    scaled(static_cast<T>(a), x, y, n * k);
    if (tall)
      gemm<T>(false, false, n, k, k, T(1), x, k, sum, k, true, y, k);
    else
      gemm<T>(false, false, n, k, n, T(1), sum, n, x, k, true, y, k);
    std::swap(x, y);
  }
  return x;
}

template <class T>
void update(const MuonSlot& slot, const Muon& o, double learning_rate, double scale, const Workspace& w) {
  first_iterate(slot, o, scale, w.x.data<T>());
  const T* x = orthogonalised<T>(slot.value.shape(), o, w);
  const double rate = learning_rate * slot.rate;
  const T shrink = static_cast<T>(1 - rate * o.weight_decay), step = static_cast<T>(rate * muon_ratio(o, slot.value.shape()));
  T* value = slot.value.data<T>();
  parallel_ranges(slot.value.size(), kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) value[i] = value[i] * shrink - step * x[i];
  });
}

void muon_step(const std::vector<MuonSlot>& slots, const Muon& o, double learning_rate, double clip, double norm, const Workspace& w) {
  if (!std::isfinite(norm)) return;
  const double scale = clip > 0 && norm > clip ? clip / norm : 1.0;
  for (const MuonSlot& slot : slots)
    dispatch(slot.value.dtype(), [&](auto zero) { update<decltype(zero)>(slot, o, learning_rate, scale, w); });
}

}  // namespace
}  // namespace cpu

namespace {

void check(const MuonSlot& slot) {
  expect(slot.value.rank() == 2, "muon_step", "value is ", slot.value, ", expected a matrix");
  for (const Tensor& x : {slot.grad, slot.momentum})
    expect(x && x.shape() == slot.value.shape() && x.dtype() == slot.value.dtype(), "muon_step", "value is ", slot.value,
           ", gradient or momentum is ", x);
}

/// 2 m² max(n, k) for A, 2 m³ for A², 2 m² max(n, k) for the product with X, every step; value, gradient and momentum read, two written.
Cost cost_of(const std::vector<MuonSlot>& slots, const Muon& options) {
  Cost sum;
  for (const MuonSlot& slot : slots) {
    const Shape& matrix = slot.value.shape();
    const auto m = static_cast<double>(smaller_side(matrix)), long_side = static_cast<double>(std::max(matrix[0], matrix[1]));
    sum.flops += static_cast<double>(options.newton_schulz_steps) * m * m * (4 * long_side + 2 * m) + 12 * m * long_side;
    sum.bytes += static_cast<double>(5 * slot.value.bytes());
  }
  return sum;
}

Workspace cpu_workspace(Tape& tape, const std::vector<MuonSlot>& slots) {
  int64_t size = 1, square = 1;
  for (const MuonSlot& slot : slots) {
    size = std::max(size, slot.value.size());
    square = std::max(square, smaller_side(slot.value.shape()) * smaller_side(slot.value.shape()));
  }
  const DType dtype = slots.front().value.dtype();
  return {tape.empty({size}, dtype), tape.empty({size}, dtype), tape.empty({square}, dtype), tape.empty({square}, dtype)};
}

/// Matrices of one shape side by side, sized for the largest group.
cuda::MuonWorkspace cuda_workspace(Tape& tape, const std::vector<MuonSlot>& slots) {
  int64_t size = 1, square = 1, parts = 1;
  for (const auto& group : cuda::muon_groups(slots)) {
    const Shape& matrix = group.front()->value.shape();
    const auto count = static_cast<int64_t>(group.size());
    size = std::max(size, count * matrix.size());
    square = std::max(square, count * smaller_side(matrix) * smaller_side(matrix));
    parts = std::max(parts, count * cuda::muon_parts(matrix));
  }
  const auto half = [&](int64_t elements) { return tape.empty({elements}, DType::bf16); };
  return {half(size), half(size), half(square), half(square), tape.empty({parts}, DType::f64)};
}

}  // namespace

void muon_step(Tape& tape, const std::vector<MuonSlot>& slots, const Muon& options, const Tensor& learning_rate, double clip,
               const Tensor& norm) {
  for (const MuonSlot& slot : slots) check(slot);
  for (const Tensor& x : {learning_rate, norm})
    expect(x.size() == 1 && x.dtype() == DType::f64, "muon_step", "learning rate or norm is ", x, " ", x.dtype(), ", expected f64 [1]");
  if (slots.empty()) return;
  const bool on_cuda = tape.device().targets_cuda();
  const cuda::MuonWorkspace wide = on_cuda ? cuda_workspace(tape, slots) : cuda::MuonWorkspace{};
  const Workspace w = on_cuda ? Workspace{} : cpu_workspace(tape, slots);
  tape.run(
      "muon_step", cost_of(slots, options),
      [&] { cpu::muon_step(slots, options, *learning_rate.data<double>(), clip, *norm.data<double>(), w); },
      [&] { cuda::muon_step(tape.stream(), slots, options, learning_rate, clip, norm, wide); });
}

}  // namespace saccade
