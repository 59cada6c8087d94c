// A warp, or half of one where that leaves fewer lanes idle, owns a row; for the sums over rows (d_weight, d_bias) a block owns a fixed
// range of rows and writes one partial sum.
#include <climits>

#include "kernels/cuda/device/device_code.cuh"
#include "kernels/ops/norm/norm_cuda.h"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 8;
constexpr size_t kMostShared = 96 * 1024;  ///< of a block, on every supported GPU

struct Moments {
  float mean, inverse;
};

/// Mean and 1 / sqrt(var + eps) of the row at x, by one warp. Reads the row twice when centred (the second time from cache).
template <bool kCentre, class T>
__device__ Moments moments(const T* x, int n, float eps, int lane) {
  float mean = 0;
  if constexpr (kCentre) {
    for (int i = lane; i < n; i += 32) mean += to_float(x[i]);
    mean = warp_sum(mean) / static_cast<float>(n);
  }
  float squares = 0;
  for (int i = lane; i < n; i += 32) {
    const float z = to_float(x[i]) - mean;
    squares += z * z;
  }
  return {mean, rsqrtf(warp_sum(squares) / static_cast<float>(n) + eps)};
}

template <bool kCentre, class T>
__global__ void __launch_bounds__(32 * kWarps)
    norm_kernel(const T* x, const float* weight, const float* bias, T* y, int64_t rows, int n, float eps) {
  const int lane = threadIdx.x % 32;
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  x += row * n, y += row * n;
  const Moments m = moments<kCentre>(x, n, eps, lane);
  for (int i = lane; i < n; i += 32) {
    float z = (to_float(x[i]) - m.mean) * m.inverse * weight[i];
    if constexpr (kCentre) z += bias[i];
    y[i] = from_float<T>(z);
  }
}

/// N neighbouring floats, 16 bytes at a time.
template <int N>
struct Floats {
  float v[N];
  __device__ explicit Floats(const float* p) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const Pack<float> piece = load_pack(p + i);
#pragma unroll
      for (int j = 0; j < 4; ++j) v[i + j] = piece.v[j];
    }
  }
};

/// The same with the row in registers, kPacks pieces of 16 bytes for each of kLanes lanes.
template <bool kCentre, int kLanes, int kPacks, class T>
__global__ void __launch_bounds__(32 * kWarps)
    norm_packed_kernel(const T* x, const float* weight, const float* bias, T* y, int64_t rows, int n, float eps) {
  constexpr int V = kVector<T>;
  const int lane = threadIdx.x % kLanes, packs = n / V;
  const int64_t own = int64_t{blockIdx.x} * (32 * kWarps / kLanes) + threadIdx.x / kLanes, row = min(own, rows - 1);
  x += row * n, y += row * n;
  float z[kPacks][V];
  float sum = 0, squares = 0;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int at = lane + kLanes * p;
    if (at >= packs) continue;
    const Pack<T> piece = load_pack(x + at * V);
#pragma unroll
    for (int v = 0; v < V; ++v) sum += z[p][v] = to_float(piece.v[v]);
  }
  const float mean = kCentre ? sum_of_lanes<kLanes>(sum) / static_cast<float>(n) : 0.0f;
#pragma unroll
  for (int p = 0; p < kPacks; ++p)
    if (lane + kLanes * p < packs)
#pragma unroll
      for (int v = 0; v < V; ++v) squares += (z[p][v] - mean) * (z[p][v] - mean);
  const float inverse = rsqrtf(sum_of_lanes<kLanes>(squares) / static_cast<float>(n) + eps);
  if (own >= rows) return;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int at = lane + kLanes * p;
    if (at >= packs) continue;
    const Floats<V> factor(weight + at * V), offset(kCentre ? bias + at * V : weight);
    Pack<T> piece;
#pragma unroll
    for (int v = 0; v < V; ++v) piece.v[v] = from_float<T>((z[p][v] - mean) * inverse * factor.v[v] + (kCentre ? offset.v[v] : 0.0f));
    store_pack(y + at * V, piece);
  }
}

/// d_x = inverse · (g − mean(g) [centred] − z · mean(g z)) with g = weight · d_y, z = (x − mean) · inverse.
/// A block goes over rows blockIdx.x · warps + warp, + gridDim.x · warps …; partial sums of d_weight, d_bias per block.
/// Shared memory: n floats per warp for each of the sums that are wanted.
template <bool kCentre, class T>
__global__ void __launch_bounds__(32 * kWarps)
    norm_backward_kernel(const T* x, const float* weight, const T* dy, T* dx, bool add, float* weight_parts, float* bias_parts,
                         int64_t rows, int n, float eps) {
  extern __shared__ float sums[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  float* my_weight = sums + warp * n;
  float* my_bias = sums + ((weight_parts ? warps : 0) + warp) * n;
  for (int i = lane; i < n; i += 32) {
    if (weight_parts) my_weight[i] = 0;
    if (bias_parts) my_bias[i] = 0;
  }
  for (int64_t row = int64_t{blockIdx.x} * warps + warp; row < rows; row += int64_t{gridDim.x} * warps) {
    const T *xr = x + row * n, *dr = dy + row * n;
    const Moments m = moments<kCentre>(xr, n, eps, lane);
    float offset = 0, slope = 0;
    for (int i = lane; i < n; i += 32) {
      const float d = to_float(dr[i]), z = (to_float(xr[i]) - m.mean) * m.inverse, g = weight[i] * d;
      slope += g * z;
      if constexpr (kCentre) offset += g;
      if (weight_parts) my_weight[i] += d * z;
      if (bias_parts) my_bias[i] += d;
    }
    slope = warp_sum(slope) / static_cast<float>(n);
    if constexpr (kCentre) offset = warp_sum(offset) / static_cast<float>(n);
    if (!dx) continue;
    T* out = dx + row * n;
    for (int i = lane; i < n; i += 32) {
      const float z = (to_float(xr[i]) - m.mean) * m.inverse;
      const float r = m.inverse * (weight[i] * to_float(dr[i]) - offset - z * slope);
      out[i] = from_float<T>(add ? to_float(out[i]) + r : r);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float g = 0, b = 0;
    for (int w = 0; w < warps; ++w) {
      if (weight_parts) g += sums[w * n + i];
      if (bias_parts) b += sums[((weight_parts ? warps : 0) + w) * n + i];
    }
    if (weight_parts) weight_parts[int64_t{blockIdx.x} * n + i] = g;
    if (bias_parts) bias_parts[int64_t{blockIdx.x} * n + i] = b;
  }
}

/// The same with rows and sums in registers, kPacks pieces of 16 bytes for each of kLanes lanes. Shared memory: n floats per warp.
template <bool kCentre, int kLanes, int kPacks, class T>
__global__ void __launch_bounds__(32 * kWarps)
    norm_backward_packed_kernel(const T* x, const float* weight, const T* dy, T* dx, bool add, float* weight_parts, float* bias_parts,
                                int64_t rows, int n, float eps) {
  extern __shared__ float sums[];
  constexpr int V = kVector<T>, kRows = 32 * kWarps / kLanes;  // of a block at a time
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / 32, packs = n / V;
  float weight_sum[kPacks][V] = {}, bias_sum[kPacks][V] = {};
  for (int64_t first = int64_t{blockIdx.x} * kRows; first < rows; first += int64_t{gridDim.x} * kRows) {
    const int64_t row = first + threadIdx.x / kLanes;
    float z[kPacks][V], d[kPacks][V];
    Pack<T> out[kPacks];  // what d_x holds, fetched with the rest
    float sum = 0, squares = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = lane + kLanes * p;
      const bool in = at < packs && row < rows;
      const Pack<T> a = in ? load_pack(x + row * n + at * V) : Pack<T>{}, b = in ? load_pack(dy + row * n + at * V) : Pack<T>{};
      out[p] = in && add ? load_pack(dx + row * n + at * V) : Pack<T>{};
#pragma unroll
      for (int v = 0; v < V; ++v) {
        sum += z[p][v] = to_float(a.v[v]);
        d[p][v] = to_float(b.v[v]);
      }
    }
    const float mean = kCentre ? sum_of_lanes<kLanes>(sum) / static_cast<float>(n) : 0.0f;
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (lane + kLanes * p < packs)
#pragma unroll
        for (int v = 0; v < V; ++v) squares += (z[p][v] - mean) * (z[p][v] - mean);
    const float inverse = rsqrtf(sum_of_lanes<kLanes>(squares) / static_cast<float>(n) + eps);
    float offset = 0, slope = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = lane + kLanes * p;
      if (at >= packs) continue;
      const Floats<V> factor(weight + at * V);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        z[p][v] = (z[p][v] - mean) * inverse;
        weight_sum[p][v] += d[p][v] * z[p][v];
        if constexpr (kCentre) bias_sum[p][v] += d[p][v];
        d[p][v] *= factor.v[v];
        slope += d[p][v] * z[p][v];
        if constexpr (kCentre) offset += d[p][v];
      }
    }
    slope = sum_of_lanes<kLanes>(slope) / static_cast<float>(n);
    if constexpr (kCentre) offset = sum_of_lanes<kLanes>(offset) / static_cast<float>(n);
    if (!dx || row >= rows) continue;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = lane + kLanes * p;
      if (at >= packs) continue;
#pragma unroll
      for (int v = 0; v < V; ++v)
        out[p].v[v] = from_float<T>((add ? to_float(out[p].v[v]) : 0.0f) + inverse * (d[p][v] - offset - z[p][v] * slope));
      store_pack(dx + row * n + at * V, out[p]);
    }
  }
  const auto gather_warps = [&](float(&mine)[kPacks][V], float* parts) {
    if (!parts) return;
#pragma unroll
    for (int step = kLanes; step < 32; step *= 2)
#pragma unroll
      for (int p = 0; p < kPacks; ++p)
#pragma unroll
        for (int v = 0; v < V; ++v) mine[p][v] += __shfl_xor_sync(0xffffffffu, mine[p][v], step);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < kPacks; ++p)
      if (threadIdx.x % 32 < kLanes && lane + kLanes * p < packs)
#pragma unroll
        for (int v = 0; v < V; ++v) sums[warp * n + (lane + kLanes * p) * V + v] = mine[p][v];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 32 * kWarps) {
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += sums[w * n + i];
      parts[int64_t{blockIdx.x} * n + i] = sum;
    }
  };
  gather_warps(weight_sum, weight_parts);
  if constexpr (kCentre) gather_warps(bias_sum, bias_parts);
}

/// parts[block, j] = Σ x[r, j] over the block's rows; thread = column.
template <class T>
__global__ void column_parts_kernel(const T* x, float* parts, int64_t rows, int64_t columns) {
  const int64_t j = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= columns) return;
  const int64_t share = (rows + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * share, end = min(rows, begin + share);
  float sum = 0;
#pragma unroll 8
  for (int64_t r = begin; r < end; ++r) sum += to_float(x[r * columns + j]);
  parts[blockIdx.y * columns + j] = sum;
}

/// A block owns 32 columns: warp w adds the parts w, w + kSumWarps, …; the warps' sums are added in order.
constexpr int kSumWarps = 32;
__global__ void __launch_bounds__(32 * kSumWarps)
    sum_parts_kernel(const float* parts, float* sums, bool add, int64_t count, int64_t columns) {
  __shared__ float of_warps[kSumWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t j = int64_t{blockIdx.x} * 32 + lane;
  float sum = 0;
  if (j < columns) {
#pragma unroll 8
    for (int64_t p = warp; p < count; p += kSumWarps) sum += parts[p * columns + j];
  }
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || j >= columns) return;
  sum = 0;
#pragma unroll
  for (int w = 0; w < kSumWarps; ++w) sum += of_warps[w][lane];
  sums[j] = add ? sums[j] + sum : sum;
}

/// Lanes of a row and pieces of each.
template <int kLanes, int kPacks>
struct Layout {
  static constexpr int lanes = kLanes, packs = kPacks;
};
/// f(Layout) for rows of n that registers hold, as few lanes idle as can be; false: there is none.
template <class T, int kMost, class F>
bool with_layout(int n, F&& f) {
  const int packs = n % kVector<T> == 0 ? n / kVector<T> : INT_MAX;
  const auto with = [&](auto layout) { return f(layout), true; };
  if (packs <= 32) return with(Layout<32, 1>{});
  if (packs <= 48) return with(Layout<16, 3>{});
  if (packs <= 64) return with(Layout<32, 2>{});
  if (packs <= 96) return with(Layout<32, 3>{});
  if (packs <= 128) return with(Layout<32, 4>{});
  if constexpr (kMost >= 8)
    if (packs <= 256) return with(Layout<32, 8>{});
  return false;
}

template <bool kCentre, class T>
void launch_norm(Stream stream, const T* x, const float* weight, const float* bias, T* y, int64_t rows, int n, float eps) {
  const bool packed = with_layout<T, 8>(n, [&](auto layout) {
    using L = decltype(layout);
    norm_packed_kernel<kCentre, L::lanes, L::packs>
        <<<blocks_for(rows, 32 * kWarps / L::lanes), 32 * kWarps, 0, stream>>>(x, weight, bias, y, rows, n, eps);
  });
  if (!packed) norm_kernel<kCentre><<<blocks_for(rows, kWarps), 32 * kWarps, 0, stream>>>(x, weight, bias, y, rows, n, eps);
  check_launch();
}

}  // namespace

void sum_parts(Stream stream, const Tensor& parts, const Tensor& sums, bool add) {
  const int64_t columns = sums.size();
  sum_parts_kernel<<<blocks_for(columns, 32), 32 * kSumWarps, 0, stream>>>(pointer<float>(parts), pointer<float>(sums), add,
                                                                           parts.size() / columns, columns);
  check_launch();
}

void norm(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, double eps) {
  const int n = static_cast<int>(weight.size());
  const int64_t rows = x.size() / n;
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    if (bias)
      launch_norm<true>(stream, pointer<T>(x), pointer<float>(weight), pointer<float>(bias), pointer<T>(y), rows, n,
                        static_cast<float>(eps));
    else
      launch_norm<false>(stream, pointer<T>(x), pointer<float>(weight), static_cast<const float*>(nullptr), pointer<T>(y), rows, n,
                         static_cast<float>(eps));
  });
}

void norm_backward(Stream stream, const Tensor& x, const Tensor& weight, const Tensor& dy, bool centred, double eps, const Tensor& dx,
                   bool add_dx, const Tensor& d_weight, bool add_weight, const Tensor& weight_parts, const Tensor& d_bias, bool add_bias,
                   const Tensor& bias_parts) {
  const int n = static_cast<int>(weight.size());
  const int64_t rows = x.size() / n;
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto launch = [&](auto kernel, int warps, size_t shared) {
      if (shared > 48 * 1024) check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
      kernel<<<kNormParts, 32 * warps, shared, stream>>>(pointer<T>(x), pointer<float>(weight), pointer<T>(dy),
                                                         dx ? pointer<T>(dx) : nullptr, add_dx,
                                                         d_weight ? pointer<float>(weight_parts) : nullptr,
                                                         d_bias ? pointer<float>(bias_parts) : nullptr, rows, n, static_cast<float>(eps));
      check_launch();
    };
    constexpr int kMost = kVector<T> == 4 ? 8 : 4;
    const bool packed = with_layout<T, kMost>(n, [&](auto layout) {
      using L = decltype(layout);
      const size_t shared = d_weight || d_bias ? sizeof(float) * kWarps * static_cast<size_t>(n) : 0;
      if (centred)
        launch(norm_backward_packed_kernel<true, L::lanes, L::packs, T>, kWarps, shared);
      else
        launch(norm_backward_packed_kernel<false, L::lanes, L::packs, T>, kWarps, shared);
    });
    if (packed) return;
    // As many warps as their sums fit into a block's shared memory.
    const size_t sums = sizeof(float) * static_cast<size_t>(n) * ((d_weight ? 1 : 0) + (d_bias ? 1 : 0));
    const int warps = sums == 0 ? kWarps : static_cast<int>(std::min<size_t>(kWarps, kMostShared / sums));
    if (warps == 0)
      throw DeviceError("[norm] the CUDA engine takes widths up to " + std::to_string(kMostShared / 8) + ", not " + std::to_string(n));
    if (centred)
      launch(norm_backward_kernel<true, T>, warps, sums * static_cast<size_t>(warps));
    else
      launch(norm_backward_kernel<false, T>, warps, sums * static_cast<size_t>(warps));
  });
  if (d_weight) sum_parts(stream, weight_parts, d_weight, add_weight);
  if (d_bias) sum_parts(stream, bias_parts, d_bias, add_bias);
}

void column_sums(Stream stream, const Tensor& x, int64_t columns, const Tensor& sums, bool add, const Tensor& scratch) {
  dispatch_cuda(x.dtype(), [&](auto t) {
    const dim3 grid(blocks_for(columns, 64), kColumnParts);
    column_parts_kernel<<<grid, 64, 0, stream>>>(pointer<decltype(t)>(x), pointer<float>(scratch), x.size() / columns, columns);
  });
  check_launch();
  sum_parts(stream, scratch, sums, add);
}

}  // namespace saccade::cuda
