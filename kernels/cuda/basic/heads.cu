// A block takes kPositions positions of some sequences: it makes their angles once (in double: positions reach 10^5), then a
// warp takes a head at a time; lane i holds the pairs (i, i + d/2), (i + 32, i + 32 + d/2) …
#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/device/rotation.cuh"
#include "kernels/cuda/device/start_position.cuh"
#include "kernels/ops/heads/heads_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 8, kPositions = kHeadPositions;
constexpr float kUnitEpsilon = 1e-12f, kRmsEpsilon = 1e-5f;

struct Problem {
  int batch, length, heads, width;
  QkNorm norm;
  double rotary_base;
  StartPosition place;  ///< of row 0; where sequences differ each has a block row of its own
};

template <int kPairs>
struct Row {
  float low[kPairs], high[kPairs];
};

template <int kPairs, class T>
__device__ Row<kPairs> load_row(const T* x, int width) {
  const int half = (width + 1) / 2, lane = threadIdx.x % 32;
  Row<kPairs> row;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    const int i = lane + 32 * p;
    row.low[p] = i < half ? to_float(x[i]) : 0.0f;
    row.high[p] = i + half < width && i < half ? to_float(x[i + half]) : 0.0f;
  }
  return row;
}

template <int kPairs, class T>
__device__ void store_row(T* x, const Row<kPairs>& row, int width, bool add) {
  const int half = (width + 1) / 2, lane = threadIdx.x % 32;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    const int i = lane + 32 * p;
    if (i >= half) continue;
    x[i] = from_float<T>(row.low[p] + (add ? to_float(x[i]) : 0.0f));
    if (i + half < width) x[i + half] = from_float<T>(row.high[p] + (add ? to_float(x[i + half]) : 0.0f));
  }
}

template <int kPairs>
__device__ float dot(const Row<kPairs>& x, const Row<kPairs>& y) {
  float sum = 0;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) sum += x.low[p] * y.low[p] + x.high[p] * y.high[p];
  return warp_sum(sum);
}

/// 1 / root of the (mean of the) squares; 1 without a norm.
template <int kPairs>
__device__ float inverse_norm(const Problem& p, const Row<kPairs>& x) {
  if (p.norm == QkNorm::none) return 1;
  const float squares = dot(x, x);
  return p.norm == QkNorm::l2 ? rsqrtf(squares + kUnitEpsilon) : rsqrtf(squares / static_cast<float>(p.width) + kRmsEpsilon);
}

/// Cosine and sine of every position and pair of this block.
__device__ void make_angles(const Problem& p, int first, float2* angles) {
  const int half = p.width / 2;
  if (p.rotary_base != 0)
    for (int item = threadIdx.x; item < kPositions * half; item += 32 * kWarps) {
      const double frequency = exp2(-2.0 * (item % half) / p.width * log2(p.rotary_base));
      const double revolutions = static_cast<double>(p.place(blockIdx.y) + first + item / half) * frequency * 0.15915494309189533577;
      angles[item] = cosine_and_sine(revolutions);
    }
  __syncthreads();
}

/// Rotated by the angles; backward rotates back.
template <int kPairs>
__device__ void rotate(const Problem& p, const float2* angles, bool back, Row<kPairs>& x) {
  if (p.rotary_base == 0) return;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int at = threadIdx.x % 32 + 32 * i;
    if (at >= p.width / 2) continue;
    const float c = angles[at].x, s = back ? -angles[at].y : angles[at].y, u = x.low[i], v = x.high[i];
    x.low[i] = u * c - v * s;
    x.high[i] = u * s + v * c;
  }
}

/// f(offset of the row, its angles) for every row of this block, a warp each.
template <class F>
__device__ void for_rows(const Problem& p, const float2* angles, F&& f) {
  const int first = blockIdx.x * kPositions, positions = min(kPositions, p.length - first), rows = positions * p.heads;
  for (int b = blockIdx.y; b < p.batch; b += gridDim.y)
    for (int r = threadIdx.x / 32; r < rows; r += kWarps)
      f(((int64_t{b} * p.length + first) * p.heads + r) * p.width, angles + r / p.heads * (p.width / 2));
}

template <int kPairs, class T>
__global__ void __launch_bounds__(32 * kWarps) forward_kernel(Problem p, const T* x, const float* weight, T* y) {
  extern __shared__ float2 angles[];
  make_angles(p, blockIdx.x * kPositions, angles);
  Row<kPairs> factors;
  if (weight) factors = load_row<kPairs>(weight, p.width);
  for_rows(p, angles, [&](int64_t at, const float2* rotation) {
    Row<kPairs> row = load_row<kPairs>(x + at, p.width);
    const float r = inverse_norm(p, row);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      row.low[i] *= r * (weight ? factors.low[i] : 1.0f);
      row.high[i] *= r * (weight ? factors.high[i] : 1.0f);
    }
    rotate(p, rotation, false, row);
    store_row(y + at, row, p.width, false);
  });
}

template <int kPairs, class T>
__global__ void __launch_bounds__(32 * kWarps)
    backward_kernel(Problem p, const T* x, const float* weight, const T* dy, T* dx, bool add, float* partial) {
  extern __shared__ float2 angles[];
  __shared__ float sums[kWarps][64 * kPairs];
  make_angles(p, blockIdx.x * kPositions, angles);
  Row<kPairs> factors, dweight = {};
  if (weight) factors = load_row<kPairs>(weight, p.width);
  for_rows(p, angles, [&](int64_t at, const float2* rotation) {
    const Row<kPairs> row = load_row<kPairs>(x + at, p.width);
    Row<kPairs> g = load_row<kPairs>(dy + at, p.width);
    rotate(p, rotation, true, g);
    const float r = inverse_norm(p, row);
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      dweight.low[i] += g.low[i] * row.low[i] * r;
      dweight.high[i] += g.high[i] * row.high[i] * r;
      if (weight) g.low[i] *= factors.low[i], g.high[i] *= factors.high[i];
    }
    if (!dx) return;
    if (p.norm != QkNorm::none) {
      const float mean = dot(g, row) * r * r / (p.norm == QkNorm::rms ? static_cast<float>(p.width) : 1.0f);
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        g.low[i] = r * (g.low[i] - row.low[i] * mean);
        g.high[i] = r * (g.high[i] - row.high[i] * mean);
      }
    }
    store_row(dx + at, g, p.width, add);
  });
  if (!partial) return;
  const int half = (p.width + 1) / 2, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int at = lane + 32 * i;
    if (at >= half) continue;
    sums[threadIdx.x / 32][at] = dweight.low[i];
    if (at + half < p.width) sums[threadIdx.x / 32][at + half] = dweight.high[i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < p.width; i += 32 * kWarps) {
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += sums[w][i];
    partial[(int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * p.width + i] = sum;
  }
}

/// A block per column.
__global__ void __launch_bounds__(256) gather_kernel(const float* partial, float* sum, bool add, int64_t rows, int width) {
  float part = 0;
  for (int64_t r = threadIdx.x; r < rows; r += 256) part += partial[r * width + blockIdx.x];
  part = block_sum<256>(part);
  if (threadIdx.x == 0) sum[blockIdx.x] = (add ? sum[blockIdx.x] : 0.0f) + part;
}

Problem problem(const Shape& x, const HeadOptions& options) {
  return {static_cast<int>(x[0]), static_cast<int>(x[1]), static_cast<int>(x[2]),          static_cast<int>(x[3]),
          options.norm,           options.rotary_base,    start_position(options.position)};
}

dim3 grid(const Shape& x, bool own_positions = false) {
  return dim3(static_cast<unsigned>((x[1] + kHeadPositions - 1) / kHeadPositions),
              static_cast<unsigned>(own_positions ? x[0] : head_blocks(x)));
}

/// f(integral_constant of the pairs a lane holds)
template <class F>
void for_pairs(int64_t width, F&& f) {
  if (width > 512) throw DeviceError("[prepare_heads] on CUDA takes head widths up to 512, not " + std::to_string(width));
  if (width <= 64) return f(std::integral_constant<int, 1>{});
  if (width <= 128) return f(std::integral_constant<int, 2>{});
  if (width <= 256) return f(std::integral_constant<int, 4>{});
  f(std::integral_constant<int, 8>{});
}

size_t shared_bytes(int64_t width) { return static_cast<size_t>(kPositions * (width / 2)) * sizeof(float2); }

}  // namespace

void prepare_heads(Stream stream, const Tensor& x, const Tensor& weight, const HeadOptions& options, const Tensor& y) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_pairs(x.dim(3), [&](auto pairs) {
      forward_kernel<decltype(pairs)::value><<<grid(x.shape(), options.position.differs()), 32 * kWarps, shared_bytes(x.dim(3)), stream>>>(
          problem(x.shape(), options), pointer<T>(x), weight ? pointer<float>(weight) : nullptr, pointer<T>(y));
    });
  });
  check_launch();
}

void prepare_heads_backward(Stream stream, const Tensor& x, const Tensor& weight, const HeadOptions& options, const Tensor& dy,
                            const Tensor& dx, bool add_dx, const Tensor& dweight, bool add_dweight, const Tensor& partial) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for_pairs(x.dim(3), [&](auto pairs) {
      backward_kernel<decltype(pairs)::value><<<grid(x.shape()), 32 * kWarps, shared_bytes(x.dim(3)), stream>>>(
          problem(x.shape(), options), pointer<T>(x), weight ? pointer<float>(weight) : nullptr, pointer<T>(dy),
          dx ? pointer<T>(dx) : nullptr, add_dx, dweight ? pointer<float>(partial) : nullptr);
    });
  });
  check_launch();
  if (!dweight) return;
  gather_kernel<<<static_cast<unsigned>(x.dim(3)), 256, 0, stream>>>(pointer<float>(partial), pointer<float>(dweight), add_dweight,
                                                                     partial.dim(0), static_cast<int>(x.dim(3)));
  check_launch();
}

}  // namespace saccade::cuda
