#include "kernels/ops/heads/heads.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/lanes.h"
#include "kernels/cpu/simd.h"
#include "kernels/engine/parallel.h"
#include "kernels/ops/heads/heads_cuda.h"

namespace saccade {
namespace {

constexpr double kUnitEpsilon = 1e-12, kRmsEpsilon = 1e-5;
constexpr int64_t kPositions = 64;  ///< per task

/// Rotates a row by the angles whose cosines and sines are given per pair (i, i + half); backward rotates back.
template <class T>
SACCADE_INLINE void rotate(const T* cosine, const T* sine, int64_t half, T* __restrict__ x) {
  for (int64_t i = 0; i < half; ++i) {
    const T u = x[i], v = x[i + half];
    x[i] = u * cosine[i] - v * sine[i];
    x[i + half] = u * sine[i] + v * cosine[i];
  }
}
template <class T>
SACCADE_INLINE void rotate_back(const T* cosine, const T* sine, int64_t half, T* __restrict__ x) {
  for (int64_t i = 0; i < half; ++i) {
    const T u = x[i], v = x[i + half];
    x[i] = u * cosine[i] + v * sine[i];
    x[i + half] = v * cosine[i] - u * sine[i];
  }
}

/// 1 / root of the (mean of the) squares; 1 without a norm.
template <class T>
SACCADE_INLINE T inverse_norm(QkNorm norm, const T* x, int64_t width) {
  if (norm == QkNorm::none) return 1;
  const T squares = cpu::dot(x, x, width);
  return norm == QkNorm::l2 ? 1 / std::sqrt(squares + static_cast<T>(kUnitEpsilon))
                            : 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(kRmsEpsilon));
}

/// Rows of one position of one sequence, head after head.
template <class T>
struct PositionHeads {
  QkNorm norm;
  int64_t heads, width;
  const T* weight;         ///< null: none
  const T *cosine, *sine;  ///< null: no rotation
};

template <class T>
SACCADE_INLINE void forward_rows(const PositionHeads<T>& rows, const T* x, T* y) {
  for (int64_t h = 0; h < rows.heads; ++h, x += rows.width, y += rows.width) {
    const T r = inverse_norm(rows.norm, x, rows.width);
    if (rows.weight) {
      for (int64_t i = 0; i < rows.width; ++i) y[i] = x[i] * r * rows.weight[i];
    } else {
      for (int64_t i = 0; i < rows.width; ++i) y[i] = x[i] * r;
    }
    if (rows.cosine) rotate(rows.cosine, rows.sine, rows.width / 2, y);
  }
}

/// dx (+)= backward of dy; dweight (null: not wanted) += dy x r. g is scratch of one row.
template <class T>
SACCADE_INLINE void backward_rows(const PositionHeads<T>& rows, const T* x, const T* dy, T* dx, bool add, T* dweight, T* __restrict__ g) {
  const int64_t width = rows.width;
  for (int64_t h = 0; h < rows.heads; ++h, x += width, dy += width, dx += dx ? width : 0) {
    std::copy_n(dy, width, g);
    if (rows.cosine) rotate_back(rows.cosine, rows.sine, width / 2, g);
    const T r = inverse_norm(rows.norm, x, width);
    if (dweight)
      for (int64_t i = 0; i < width; ++i) dweight[i] += g[i] * x[i] * r;
    if (!dx) continue;
    if (rows.weight)
      for (int64_t i = 0; i < width; ++i) g[i] *= rows.weight[i];
    if (rows.norm != QkNorm::none) {
      const T mean = cpu::dot(g, x, width) * r * r / (rows.norm == QkNorm::rms ? static_cast<T>(width) : T(1));
      for (int64_t i = 0; i < width; ++i) g[i] = r * (g[i] - x[i] * mean);
    }
    if (add) {
      for (int64_t i = 0; i < width; ++i) dx[i] += g[i];
    } else {
      std::copy_n(g, width, dx);
    }
  }
}

SACCADE_SIMD void forward(const PositionHeads<float>& rows, const float* x, float* y) { forward_rows(rows, x, y); }
SACCADE_SIMD void forward(const PositionHeads<double>& rows, const double* x, double* y) { forward_rows(rows, x, y); }
SACCADE_SIMD void backward(const PositionHeads<float>& rows, const float* x, const float* dy, float* dx, bool add, float* dweight,
                           float* g) {
  backward_rows(rows, x, dy, dx, add, dweight, g);
}
SACCADE_SIMD void backward(const PositionHeads<double>& rows, const double* x, const double* dy, double* dx, bool add, double* dweight,
                           double* g) {
  backward_rows(rows, x, dy, dx, add, dweight, g);
}

/// Cosines and sines of consecutive positions: exact at the start of a block of kPositions, from there by rotating in double.
template <class T>
class Angles {
 public:
  Angles(double base, int64_t width, int64_t first) {
    if (base == 0) return;
    const int64_t half = width / 2;
    for (int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      const double angle = static_cast<double>(first) * frequency;
      c_.push_back(std::cos(angle)), s_.push_back(std::sin(angle));
      step_c_.push_back(std::cos(frequency)), step_s_.push_back(std::sin(frequency));
    }
    cosine_.assign(c_.begin(), c_.end());
    sine_.assign(s_.begin(), s_.end());
  }

  void next() {
    for (size_t i = 0; i < c_.size(); ++i) {
      const double c = c_[i] * step_c_[i] - s_[i] * step_s_[i];
      s_[i] = s_[i] * step_c_[i] + c_[i] * step_s_[i];
      c_[i] = c;
      cosine_[i] = static_cast<T>(c_[i]);
      sine_[i] = static_cast<T>(s_[i]);
    }
  }

  const T* cosine() const { return cosine_.empty() ? nullptr : cosine_.data(); }
  const T* sine() const { return sine_.empty() ? nullptr : sine_.data(); }

 private:
  std::vector<double> c_, s_, step_c_, step_s_;
  std::vector<T> cosine_, sine_;
};

struct Problem {
  Tensor x, weight;
  HeadOptions options;
  int64_t batch() const { return x.dim(0); }
  int64_t length() const { return x.dim(1); }
  int64_t heads() const { return x.dim(2); }
  int64_t width() const { return x.dim(3); }
  int64_t blocks() const { return (length() + kPositions - 1) / kPositions; }
};

/// Calls f(rows, offset) for every sequence at every position of a block; offset is that of the position's first element.
template <class T, class F>
void for_rows(const Problem& p, int64_t block, F&& f) {
  const int64_t first = block * kPositions, last = std::min(p.length(), first + kPositions), size = p.heads() * p.width();
  Angles<T> angles(p.options.rotary_base, p.width(), p.options.position.first + first);
  const PositionHeads<T> rows{p.options.norm,  p.heads(),    p.width(), p.weight ? p.weight.data<T>() : nullptr,
                              angles.cosine(), angles.sine()};
  for (int64_t t = first; t < last; ++t, angles.next())
    for (int64_t b = 0; b < p.batch(); ++b) f(rows, (b * p.length() + t) * size);
}

template <class T>
void run_forward(const Problem& p, const Tensor& y) {
  parallel_for(p.blocks(), [&](int64_t block) {
    for_rows<T>(p, block, [&](const PositionHeads<T>& rows, int64_t at) { forward(rows, p.x.data<T>() + at, y.data<T>() + at); });
  });
}

/// partial [blocks, width]: each block's share of the weight's gradient (empty: not wanted).
template <class T>
void run_backward(const Problem& p, const Tensor& dy, const GradTarget& dx, const Tensor& partial) {
  parallel_for(p.blocks(), [&](int64_t block) {
    T* dweight = partial ? partial.data<T>() + block * p.width() : nullptr;
    if (dweight) std::fill_n(dweight, p.width(), T(0));
    std::vector<T> g(static_cast<size_t>(p.width()));
    for_rows<T>(p, block, [&](const PositionHeads<T>& rows, int64_t at) {
      backward(rows, p.x.data<T>() + at, dy.data<T>() + at, dx ? dx.tensor.data<T>() + at : nullptr, dx.add, dweight, g.data());
    });
  });
}

template <class T>
void sum_partials(const Tensor& partial, const GradTarget& dweight) {
  const int64_t width = partial.dim(1);
  T* total = dweight.tensor.data<T>();
  if (!dweight.add) std::fill_n(total, width, T(0));
  for (int64_t block = 0; block < partial.dim(0); ++block)
    for (int64_t i = 0; i < width; ++i) total[i] += partial.data<T>()[block * width + i];
}

void check(const Problem& p) {
  if (p.x.rank() != 4) throw UsageError("[prepare_heads] expects x [B, T, H, d], not " + to_string(p.x.shape()));
  if (p.options.rotary_base != 0 && p.width() % 2 != 0)
    throw UsageError("[prepare_heads] expects an even head width for rotary positions, not " + std::to_string(p.width()));
  if ((p.options.norm == QkNorm::rms) != static_cast<bool>(p.weight))
    throw UsageError("[prepare_heads] expects a weight with norm rms and none otherwise");
  if (p.weight && p.weight.size() != p.width())
    throw UsageError("[prepare_heads] expects a weight of " + std::to_string(p.width()) + " elements, not " + to_string(p.weight.shape()));
}

}  // namespace

QkNorm parse_qk_norm(const std::string& name) {
  if (name == "none") return QkNorm::none;
  if (name == "l2") return QkNorm::l2;
  if (name == "rms") return QkNorm::rms;
  throw UsageError("unknown qk_norm \"" + name + "\": expected none, l2 or rms");
}

Tensor prepare_heads(Tape& tape, const Tensor& x, const Tensor& weight, const HeadOptions& options) {
  const Problem p{x, weight, options};
  check(p);
  if (options.norm == QkNorm::none && options.rotary_base == 0) return x;
  Tensor y = tape.empty(x.shape(), x.dtype());
  const double flops = 8.0 * static_cast<double>(x.size()), bytes = static_cast<double>(x.bytes());
  tape.run(
      "prepare_heads", {flops, 2 * bytes},
      [&] {
        for_positions(options.position, x.dim(0), [&](int64_t b, int64_t n, int64_t first) {
          const Problem own{x.slice(b, b + n), weight, {options.norm, options.rotary_base, {first}}};
          dispatch(x.dtype(), [&](auto zero) { run_forward<decltype(zero)>(own, y.slice(b, b + n)); });
        });
      },
      [&] { cuda::prepare_heads(tape.stream(), x, weight, options, y); });
  tape.record({x, weight}, {&y}, [=](Tape& t) {
    const Tensor dy = t.grad(y);
    const GradTarget dx = t.grad_target(x), dweight = t.grad_target(weight);
    const int64_t parts = t.device().targets_cuda() ? cuda::head_partials(x.shape()) : p.blocks();
    const Tensor partial = dweight ? t.empty({parts, p.width()}, weight.dtype()) : Tensor();
    t.run(
        "prepare_heads.backward", {2 * flops, 3 * bytes},
        [&] {
          dispatch(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            run_backward<T>(p, dy, dx, partial);
            if (dweight) sum_partials<T>(partial, dweight);
          });
        },
        [&] {
          cuda::prepare_heads_backward(t.stream(), x, weight, p.options, dy, dx.tensor, dx.add, dweight.tensor, dweight.add, partial);
        });
  });
  return y;
}

}  // namespace saccade
