// Attention on ordinary cores, for f32 and for widths that tensor cores do not take: the clearest account of what happens.
// A warp owns four rows. For scores its lanes own 32 rows of the other side, for sums they own columns of the head.
#include "kernels/cuda/attention/attention_pattern.cuh"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 8, kOwn = 4, kRows = kWarps * kOwn, kLane = 32;

/// Copies up to 32 rows to shared memory as floats, zeros after `count`; rows lie `pitch` apart there.
template <class T, class Position>
__device__ void copy_rows(float* to, int pitch, const T* x, int64_t stride, int width, int count, Position&& position) {
  for (int item = threadIdx.x; item < kLane * width; item += kWarps * 32) {
    const int r = item / width, i = item % width;
    to[r * pitch + i] = r < count ? to_float(x[position(r) * stride + i]) : 0.0f;
  }
}

__device__ __forceinline__ float dot(const float* x, const float* y, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class T, int kColumns, bool kGather>
__global__ void __launch_bounds__(32 * kWarps) forward_kernel(const ForwardArgs<T> a) {
  extern __shared__ float memory[];
  const int width = a.p.width, lane = threadIdx.x % 32, own = threadIdx.x / 32 * kOwn;
  float *queries = memory, *keys = queries + kRows * width, *values = keys + kLane * (width + 1);
  const QueryBlock block = query_block<kGather, kRows>(a.p);
  if (block.count == 0) return;
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads;
  const int64_t stride = a.p.stride(), row_offset = int64_t{block.batch_head} * a.p.length, column = h * width;
  T* o = a.o + b * a.v_batch + column;
  copy_rows(queries, width, a.q + b * a.q_batch + column, stride, width, block.count, [&](int r) { return block.position(r); });
  Sight seen[kOwn];
  int t[kOwn], best_key[kOwn];
  float max[kOwn], sum[kOwn], weighted[kOwn], best[kOwn], acc[kOwn][kColumns];
#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
    t[r] = own + r < block.count ? block.position(own + r) : -1;
    seen[r] = t[r] < 0 ? Sight{0, 0} : sight(a.p, t[r], kGather ? a.p.chosen(block.batch_head, t[r]) : -1);
    const bool resume = a.resume && t[r] >= 0 && a.lse[row_offset + t[r]] != -INFINITY;
    max[r] = resume ? a.lse[row_offset + t[r]] : -INFINITY, sum[r] = resume ? 1.0f : 0.0f;
    weighted[r] = resume && a.entropy ? -a.entropy[row_offset + t[r]] : 0.0f;
    best[r] = -INFINITY, best_key[r] = 0;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) acc[r][c] = resume && lane + 32 * c < width ? to_float(o[t[r] * stride + lane + 32 * c]) : 0.0f;
  }
  const float slope = a.p.slope(h);
  for (int key = block.key_begin; key < block.key_end; key += kLane) {
    const int count = min(kLane, a.p.length - key);
    __syncthreads();
    copy_rows(keys, width + 1, a.k + b * a.k_batch + column, stride, width, count, [&](int r) { return key + r; });
    copy_rows(values, width, a.v + b * a.v_batch + column, stride, width, count, [&](int r) { return key + r; });
    __syncthreads();
    const int j = key + lane;
    float p[kOwn];
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      const float s =
          j >= seen[r].low && j < seen[r].high
              ? a.p.scale * dot(queries + (own + r) * width, keys + lane * (width + 1), width) - slope * static_cast<float>(t[r] - j)
              : -INFINITY;
      if (s > best[r]) best[r] = s, best_key[r] = j;
      const float top = fmaxf(max[r], warp_max(s)), shift = top == -INFINITY ? 0.0f : top;
      const float correction = expf(max[r] - shift);
      p[r] = expf(s - shift);
      weighted[r] =
          (correction > 0 ? (weighted[r] + (max[r] - shift) * sum[r]) * correction : 0.0f) + warp_sum(p[r] > 0 ? p[r] * (s - shift) : 0.0f);
      sum[r] = sum[r] * correction + warp_sum(p[r]);
      max[r] = top;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) acc[r][c] *= correction;
    }
    for (int i = 0; i < kLane; ++i)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float value = lane + 32 * c < width ? values[i * width + lane + 32 * c] : 0.0f;
#pragma unroll
        for (int r = 0; r < kOwn; ++r) acc[r][c] += __shfl_sync(0xffffffffu, p[r], i) * value;
      }
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
#pragma unroll
    for (int step = 1; step < 32; step <<= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, best[r], step);
      const int at = __shfl_xor_sync(0xffffffffu, best_key[r], step);
      if (other > best[r] || (other == best[r] && at < best_key[r])) best[r] = other, best_key[r] = at;
    }
    if (t[r] < 0) continue;
    const float inverse = sum[r] > 0 ? 1 / sum[r] : 0.0f;
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (lane + 32 * c < width) o[t[r] * stride + lane + 32 * c] = from_float<T>(acc[r][c] * inverse);
    if (lane != 0) continue;
    a.lse[row_offset + t[r]] = sum[r] > 0 ? max[r] + logf(sum[r]) : -INFINITY;
    if (a.entropy) a.entropy[row_offset + t[r]] = sum[r] > 0 ? logf(sum[r]) - weighted[r] * inverse : 0.0f;
    if (a.best) a.best[row_offset + t[r]] = best_key[r];
  }
}

template <class T, int kColumns, bool kGather>
__global__ void __launch_bounds__(32 * kWarps) query_gradient_kernel(const BackwardArgs<T> a) {
  extern __shared__ float memory[];
  const int width = a.p.width, lane = threadIdx.x % 32, own = threadIdx.x / 32 * kOwn;
  float *queries = memory, *outputs = queries + kRows * width, *keys = outputs + kRows * width, *values = keys + kLane * (width + 1);
  const QueryBlock block = query_block<kGather, kRows>(a.p);
  if (block.count == 0) return;
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads;
  const int64_t stride = a.p.stride(), row_offset = int64_t{block.batch_head} * a.p.length, column = h * width;
  const int64_t offset = b * a.p.length * stride + column;
  copy_rows(queries, width, a.q + b * a.q_batch + column, stride, width, block.count, [&](int r) { return block.position(r); });
  copy_rows(outputs, width, a.d_o + offset, stride, width, block.count, [&](int r) { return block.position(r); });
  Sight seen[kOwn];
  int t[kOwn];
  float acc[kOwn][kColumns] = {};
#pragma unroll
  for (int r = 0; r < kOwn; ++r) {
    t[r] = own + r < block.count ? block.position(own + r) : -1;
    seen[r] = t[r] < 0 ? Sight{0, 0} : sight(a.p, t[r], kGather ? a.p.chosen(block.batch_head, t[r]) : -1);
  }
  const float slope = a.p.slope(h);
  for (int key = block.key_begin; key < block.key_end; key += kLane) {
    const int count = min(kLane, a.p.length - key);
    __syncthreads();
    copy_rows(keys, width + 1, a.k + b * a.k_batch + column, stride, width, count, [&](int r) { return key + r; });
    copy_rows(values, width + 1, a.v + b * a.v_batch + column, stride, width, count, [&](int r) { return key + r; });
    __syncthreads();
    const int j = key + lane;
    float ds[kOwn];
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      ds[r] = 0;
      if (j < seen[r].low || j >= seen[r].high) continue;
      const float s = a.p.scale * dot(queries + (own + r) * width, keys + lane * (width + 1), width) - slope * static_cast<float>(t[r] - j);
      const float dp = dot(outputs + (own + r) * width, values + lane * (width + 1), width);
      ds[r] = expf(s - a.lse[row_offset + t[r]]) * (dp - a.delta[row_offset + t[r]]) * a.p.scale;
    }
    for (int i = 0; i < kLane; ++i)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float x = lane + 32 * c < width ? keys[i * (width + 1) + lane + 32 * c] : 0.0f;
#pragma unroll
        for (int r = 0; r < kOwn; ++r) acc[r][c] += __shfl_sync(0xffffffffu, ds[r], i) * x;
      }
  }
#pragma unroll
  for (int r = 0; r < kOwn; ++r)
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (t[r] >= 0 && lane + 32 * c < width) {
        T* to = a.dq + a.gradient(block.batch_head, t[r]) + lane + 32 * c;
        *to = from_float<T>(acc[r][c] + (a.add_dq ? to_float(*to) : 0.0f));
      }
}

template <class T, int kColumns>
__global__ void __launch_bounds__(32 * kWarps) key_gradient_kernel(const BackwardArgs<T> a, bool extra) {
  extern __shared__ float memory[];
  const int width = a.p.width, lane = threadIdx.x % 32, own = threadIdx.x / 32 * kOwn;
  float *keys = memory, *values = keys + kRows * width, *queries = values + kRows * width, *outputs = queries + kLane * (width + 1);
  const KeyBlock block = key_block<kRows>(a.p, extra);
  if (block.count <= 0) return;
  const int b = block.batch_head / a.p.heads, h = block.batch_head % a.p.heads;
  const int64_t stride = a.p.stride(), row_offset = int64_t{block.batch_head} * a.p.length, column = h * width;
  const int64_t offset = b * a.p.length * stride + column;
  copy_rows(keys, width, a.k + b * a.k_batch + column, stride, width, block.count, [&](int r) { return block.key + r; });
  copy_rows(values, width, a.v + b * a.v_batch + column, stride, width, block.count, [&](int r) { return block.key + r; });
  float dk[kOwn][kColumns] = {}, dv[kOwn][kColumns] = {};
  const float slope = a.p.slope(h);
  for (int first = 0; first < block.queries(); first += kLane) {
    const int count = min(kLane, block.queries() - first);
    __syncthreads();
    copy_rows(queries, width + 1, a.q + b * a.q_batch + column, stride, width, count, [&](int r) { return block.position(first + r); });
    copy_rows(outputs, width + 1, a.d_o + offset, stride, width, count, [&](int r) { return block.position(first + r); });
    __syncthreads();
    const int t = lane < count ? block.position(first + lane) : -1;
    const Sight seen = t < 0 ? Sight{0, 0} : sight(a.p, t, first + lane < block.in_order ? -1 : a.p.chosen(block.batch_head, t));
    const float lse = t < 0 ? 0.0f : a.lse[row_offset + t], delta = t < 0 ? 0.0f : a.delta[row_offset + t];
    const int best = t < 0 || !a.best ? -1 : a.best[row_offset + t];
    float p[kOwn], ds[kOwn];
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      const int j = block.key + own + r;
      p[r] = ds[r] = 0;
      if (j < seen.low || j >= seen.high) continue;
      const float s = a.p.scale * dot(keys + (own + r) * width, queries + lane * (width + 1), width) - slope * static_cast<float>(t - j);
      const float dp = dot(values + (own + r) * width, outputs + lane * (width + 1), width);
      p[r] = expf(s - lse);
      ds[r] = p[r] * (dp - delta) * a.p.scale;
      if (a.best) p[r] = best == j ? 1.0f : 0.0f;
    }
    for (int i = 0; i < kLane; ++i)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const bool inside = lane + 32 * c < width;
        const float x = inside ? queries[i * (width + 1) + lane + 32 * c] : 0.0f;
        const float y = inside ? outputs[i * (width + 1) + lane + 32 * c] : 0.0f;
#pragma unroll
        for (int r = 0; r < kOwn; ++r) {
          dk[r][c] += __shfl_sync(0xffffffffu, ds[r], i) * x;
          dv[r][c] += __shfl_sync(0xffffffffu, p[r], i) * y;
        }
      }
  }
  const int pieces = chunk_pieces(a.p.chunk, kRows);
#pragma unroll
  for (int r = 0; r < kOwn; ++r)
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int i = lane + 32 * c;
      if (own + r >= block.count || i >= width) continue;
      const auto part = [&](int64_t index, int which) {
        return a.partial +
               ((((int64_t{block.batch_head} * a.p.max_extras + index) * pieces + block.piece) * 2 + which) * kRows + own + r) * width + i;
      };
      if (extra) {
        *part(blockIdx.x / pieces, 0) = dk[r][c];
        *part(blockIdx.x / pieces, 1) = dv[r][c];
        continue;
      }
      for (int index = block.extra_begin; index < block.extra_end; ++index) dk[r][c] += *part(index, 0), dv[r][c] += *part(index, 1);
      const int64_t at = a.gradient(block.batch_head, block.key + own + r) + i;
      if (a.dk) a.dk[at] = from_float<T>(dk[r][c] + (a.add_dk ? to_float(a.dk[at]) : 0.0f));
      if (a.dv) a.dv[at] = from_float<T>(dv[r][c] + (a.add_dv ? to_float(a.dv[at]) : 0.0f));
    }
}

/// f(type, columns per lane)
template <class F>
void for_type(const Tensor& x, int64_t width, F&& f) {
  if (width > 256) throw DeviceError("[attention] on CUDA takes head widths up to 256, not " + std::to_string(width));
  dispatch_cuda(x.dtype(), [&](auto t) {
    if (width <= 32)
      f(t, std::integral_constant<int, 1>{});
    else if (width <= 64)
      f(t, std::integral_constant<int, 2>{});
    else if (width <= 128)
      f(t, std::integral_constant<int, 4>{});
    else
      f(t, std::integral_constant<int, 8>{});
  });
}

}  // namespace

void plain_forward(Stream stream, const AttentionForward& in) {
  const HeadShape& shape = in.task.shape;
  for_type(in.v, shape.width, [&](auto t, auto columns) {
    using T = decltype(t);
    constexpr int C = decltype(columns)::value;
    const ForwardArgs<T> args = forward_args<T>(in);
    const int shared = static_cast<int>((kRows * shape.width + kLane * (2 * shape.width + 1)) * 4);
    const auto launch = [&](auto kernel, int64_t tiles) {
      allow_shared(kernel, shared);
      kernel<<<dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(shape.sequences())), 32 * kWarps, shared, stream>>>(args);
      check_launch();
    };
    in.task.lists.order ? launch(forward_kernel<T, C, true>, args.p.max_tiles)
                        : launch(forward_kernel<T, C, false>, (shape.length + kRows - 1) / kRows);
  });
}

void plain_backward(Stream stream, const AttentionBackward& in) {
  const HeadShape& shape = in.task.shape;
  const bool gather = static_cast<bool>(in.task.lists.order);
  const auto batch_heads = static_cast<unsigned>(shape.sequences()), tiles = blocks_for(shape.length, kRows);
  for_type(in.v, shape.width, [&](auto t, auto columns) {
    using T = decltype(t);
    constexpr int C = decltype(columns)::value;
    const BackwardArgs<T> args = backward_args<T>(in);
    const int shared = static_cast<int>((2 * kRows * shape.width + 2 * kLane * (shape.width + 1)) * 4);
    if (in.dq) {
      const auto launch = [&](auto kernel, unsigned blocks) {
        allow_shared(kernel, shared);
        kernel<<<dim3(blocks, batch_heads), 32 * kWarps, shared, stream>>>(args);
        check_launch();
      };
      gather ? launch(query_gradient_kernel<T, C, true>, static_cast<unsigned>(args.p.max_tiles))
             : launch(query_gradient_kernel<T, C, false>, tiles);
    }
    if (!in.dk && !in.dv) return;
    allow_shared(key_gradient_kernel<T, C>, shared);
    const auto pieces = static_cast<unsigned>(chunk_pieces(args.p.chunk, kRows));
    if (gather && args.p.max_extras > 0) {
      key_gradient_kernel<T, C>
          <<<dim3(static_cast<unsigned>(args.p.max_extras) * pieces, batch_heads), 32 * kWarps, shared, stream>>>(args, true);
      check_launch();
    }
    const unsigned blocks = gather ? static_cast<unsigned>(args.p.groups) * pieces : tiles;
    key_gradient_kernel<T, C><<<dim3(blocks, batch_heads), 32 * kWarps, shared, stream>>>(args, false);
    check_launch();
  });
}

}  // namespace saccade::cuda
