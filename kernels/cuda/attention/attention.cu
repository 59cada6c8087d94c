// Chooses between the kernels, and the small ones around them.
#include "kernels/ops/attention/attention_cuda.h"

#include "kernels/cuda/attention/attention_hopper.h"
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/attention/attention_tiles.cuh"
#include "kernels/cuda/attention/cudnn_attention.h"
#include "kernels/ops/head_projection/packed_heads_cuda.h"

namespace saccade::cuda {
namespace {

int64_t batch_stride(const HeadShape& shape, const Tensor& x) {
  return x.dim(0) == 1 && shape.batch > 1 ? 0 : shape.length * shape.heads * shape.width;
}

template <class T>
T* optional(const Tensor& x) {
  return x ? pointer<T>(x) : nullptr;
}

/// A warp per row of one head. `cleared` counts are set to zero, fewer than rows.
template <class T>
__global__ void output_dots_kernel(const T* d_o, const T* o, float* delta, int64_t rows, int length, int heads, int width, int* counts,
                                   int64_t cleared) {
  const int64_t row = int64_t{blockIdx.x} * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = threadIdx.x % 32; i < width; i += 32) sum += to_float(d_o[row * width + i]) * to_float(o[row * width + i]);
  sum = warp_sum(sum);
  const int64_t b = row / heads / length, t = row / heads % length, h = row % heads;
  if (threadIdx.x % 32 != 0) return;
  delta[(b * heads + h) * length + t] = sum;
  if (row < cleared) counts[row] = 0;
}

/// The same with kLanes lanes per row, 16 bytes each.
template <int kLanes>
__global__ void output_dots_packed_kernel(const bf16* d_o, const bf16* o, float* delta, int64_t rows, int length, int heads, int* counts,
                                          int64_t cleared) {
  const int64_t row = (int64_t{blockIdx.x} * 256 + threadIdx.x) / kLanes;
  const int64_t at = (min(row, rows - 1) * kLanes + threadIdx.x % kLanes) * 8;
  const Pack<bf16> x = load_pack(d_o + at), y = load_pack(o + at);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += to_float(x.v[i]) * to_float(y.v[i]);
  sum = sum_of_lanes<kLanes>(sum);
  const int64_t b = row / heads / length, t = row / heads % length, h = row % heads;
  if (threadIdx.x % kLanes != 0) return;
  if (row < rows) delta[(b * heads + h) * length + t] = sum;
  if (row < cleared) counts[row] = 0;
}

template <class T>
__global__ void sum_over_batch_kernel(const T* x, T* sum, bool add, int64_t size, int64_t batch) {
  const int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (i >= size) return;
  float total = add ? to_float(sum[i]) : 0.0f;
  for (int64_t b = 0; b < batch; ++b) total += to_float(x[b * size + i]);
  sum[i] = from_float<T>(total);
}

constexpr int kWeightThreads = 256;

/// A block per (position, head), of all heads of one sequence after the other; those of sequence `first` are the first.
template <class T>
__global__ void __launch_bounds__(kWeightThreads)
    weights_kernel(Pattern p, const T* q, const T* k, int64_t q_batch, int64_t k_batch, int first, const float* lse, float* weights) {
  extern __shared__ float query[];
  const int t = blockIdx.x, h = blockIdx.y % p.heads, sequence = first + blockIdx.y / p.heads, batch_head = sequence * p.heads + h;
  const int64_t stride = p.stride();
  q += sequence * q_batch, k += sequence * k_batch;
  float* row = weights + (int64_t{blockIdx.y} * p.length + t) * p.length;
  for (int i = threadIdx.x; i < p.width; i += kWeightThreads) query[i] = to_float(q[t * stride + h * p.width + i]);
  __syncthreads();
  const auto visible = [&](int j) {
    if (j > t || (p.window > 0 && j <= t - p.window)) return false;
    if (p.chunk == 0 || j / p.chunk == t / p.chunk) return true;
    for (int i = 0; i < p.top_k; ++i)
      if (p.selected[(int64_t{batch_head} * p.length + t) * p.top_k + i] == j / p.chunk) return true;
    return false;
  };
  float top = -INFINITY;
  for (int j = threadIdx.x; j < p.length; j += kWeightThreads) {
    float s = -INFINITY;
    if (visible(j)) {
      s = 0;
      for (int i = 0; i < p.width; ++i) s += query[i] * to_float(k[j * stride + h * p.width + i]);
      s = p.scale * s - p.slope(h) * static_cast<float>(t - j);
    }
    row[j] = s;
    top = fmaxf(top, s);
  }
  float shift = 0, inverse = 1;
  if (lse) {
    shift = lse[int64_t{batch_head} * p.length + t];
  } else {
    __shared__ float tops[kWeightThreads / 32];
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    __syncthreads();
    shift = tops[0];
    for (int w = 1; w < kWeightThreads / 32; ++w) shift = fmaxf(shift, tops[w]);
    float sum = 0;
    for (int j = threadIdx.x; j < p.length; j += kWeightThreads) sum += expf(row[j] - shift);
    inverse = 1 / block_sum<kWeightThreads>(sum);
  }
  for (int j = threadIdx.x; j < p.length; j += kWeightThreads) row[j] = expf(row[j] - shift) * inverse;
}

}  // namespace

Pattern pattern(const AttentionTask& task, DType type) {
  const HeadShape& shape = task.shape;
  Pattern p{};
  p.length = static_cast<int>(shape.length), p.heads = static_cast<int>(shape.heads), p.width = static_cast<int>(shape.width);
  p.window = static_cast<int>(std::min(task.options.window, shape.length)), p.chunk = static_cast<int>(task.chunk);
  p.scale = static_cast<float>(task.options.scale), p.alibi = task.options.alibi;
  p.released_alibi = task.options.released_alibi, p.local = task.local;
  const QueryLists& lists = task.lists;
  if (!lists.order) return p;
  p.selected = pointer<int32_t>(lists.selected), p.order = pointer<int32_t>(lists.order), p.offsets = pointer<int32_t>(lists.offsets);
  p.tiles = pointer<int32_t>(lists.tiles), p.extras = pointer<int32_t>(lists.extras);
  p.extra_offsets = pointer<int32_t>(lists.extra_offsets);
  p.top_k = static_cast<int>(lists.selected.dim(3)), p.slot = static_cast<int>(task.slot);
  p.chunks = static_cast<int>(lists.offsets.dim(3)) - 1, p.groups = static_cast<int>(lists.extra_offsets.dim(3)) - 1;
  p.group_chunks = static_cast<int>(group_chunks(task.chunk, attention_block_rows(type, shape.width)));
  p.max_tiles = static_cast<int>(lists.tiles.dim(3)), p.max_extras = static_cast<int>(max_extras(shape.length));
  return p;
}

template <class T>
ForwardArgs<T> forward_args(const AttentionForward& in) {
  const HeadShape& shape = in.task.shape;
  return {.p = pattern(in.task, in.v.dtype()),
          .q = pointer<T>(in.q),
          .k = pointer<T>(in.k),
          .v = pointer<T>(in.v),
          .q_batch = batch_stride(shape, in.q),
          .k_batch = batch_stride(shape, in.k),
          .v_batch = batch_stride(shape, in.v),
          .o = pointer<T>(in.o),
          .lse = pointer<float>(in.lse),
          .entropy = optional<float>(in.entropy),
          .best = optional<int32_t>(in.best),
          .resume = in.resume};
}
template <class T>
BackwardArgs<T> backward_args(const AttentionBackward& in) {
  const HeadShape& shape = in.task.shape;
  return {.p = pattern(in.task, in.v.dtype()),
          .q = pointer<T>(in.q),
          .k = pointer<T>(in.k),
          .v = pointer<T>(in.v),
          .d_o = pointer<T>(in.d_o),
          .q_batch = batch_stride(shape, in.q),
          .k_batch = batch_stride(shape, in.k),
          .v_batch = batch_stride(shape, in.v),
          .lse = pointer<float>(in.lse),
          .delta = pointer<float>(in.delta),
          .best = optional<int32_t>(in.best),
          .dq = optional<T>(in.dq),
          .dk = optional<T>(in.dk),
          .dv = optional<T>(in.dv),
          .add_dq = in.add_dq,
          .add_dk = in.add_dk,
          .add_dv = in.add_dv,
          .partial = optional<float>(in.partial),
          .gradient_stride = in.gradient_stride ? in.gradient_stride : shape.stride(),
          .angles = nullptr};
}
template ForwardArgs<float> forward_args(const AttentionForward&);
template ForwardArgs<bf16> forward_args(const AttentionForward&);
template BackwardArgs<float> backward_args(const AttentionBackward&);
template BackwardArgs<bf16> backward_args(const AttentionBackward&);

void attention_forward(Stream stream, const AttentionForward& in) {
  if (hopper_forward(stream, in) || cudnn_attention_forward(in)) return;
  on_tensor_cores(in.v.dtype(), in.task.shape.width) ? tensor_forward(stream, in) : plain_forward(stream, in);
}
void attention_backward(Stream stream, const AttentionBackward& in) {
  if (hopper_backward(stream, in)) return;
  on_tensor_cores(in.v.dtype(), in.task.shape.width) ? tensor_backward(stream, in) : plain_backward(stream, in);
  if (in.rotary_base != 0) rotate_heads_back(stream, in.task.shape, in.rotary_base, in.dq, in.gradient_stride);
}

void output_dots(Stream stream, const HeadShape& shape, const Tensor& d_o, const Tensor& o, const Tensor& delta, const Tensor& sums) {
  const int64_t rows = shape.sequences() * shape.length, cleared = sums ? sums.dim(0) : 0;
  int* counts = sums ? query_counts(sums) : nullptr;
  if (on_tensor_cores(o.dtype(), shape.width)) {
    for_width(shape.width, [&](auto width) {
      constexpr int kLanes = decltype(width)::value / 8;
      output_dots_packed_kernel<kLanes><<<blocks_for(rows, 256 / kLanes), 256, 0, stream>>>(
          pointer<bf16>(d_o), pointer<bf16>(o), pointer<float>(delta), rows, static_cast<int>(shape.length), static_cast<int>(shape.heads),
          counts, cleared);
    });
    return check_launch();
  }
  dispatch_cuda(o.dtype(), [&](auto t) {
    using T = decltype(t);
    output_dots_kernel<<<blocks_for(rows, 8), 256, 0, stream>>>(pointer<T>(d_o), pointer<T>(o), pointer<float>(delta), rows,
                                                                static_cast<int>(shape.length), static_cast<int>(shape.heads),
                                                                static_cast<int>(shape.width), counts, cleared);
  });
  check_launch();
}

void sum_over_batch(Stream stream, const Tensor& x, const Tensor& sum, bool add) {
  const int64_t size = x.size() / x.dim(0);
  dispatch_cuda(x.dtype(), [&](auto t) {
    using T = decltype(t);
    sum_over_batch_kernel<<<blocks_for(size, 256), 256, 0, stream>>>(pointer<T>(x), pointer<T>(sum), add, size, x.dim(0));
  });
  check_launch();
}

void attention_weights(Stream stream, const HeadShape& shape, const ScoreOptions& options, const Tensor& q, const Tensor& k,
                       const Sequences& sequences, int64_t chunk, const Tensor& selected, const Tensor& lse, const Tensor& weights) {
  Pattern p = pattern({shape, options, chunk, {}}, q.dtype());
  if (selected) p.selected = pointer<int32_t>(selected), p.top_k = static_cast<int>(selected.dim(3));
  const auto stride = [&](const Tensor& x) { return x.dim(0) == 1 ? 0 : batch_stride(shape, x); };  // one stands for all
  const dim3 grid(static_cast<unsigned>(shape.length), static_cast<unsigned>(sequences.count * shape.heads));
  dispatch_cuda(q.dtype(), [&](auto t) {
    using T = decltype(t);
    weights_kernel<<<grid, kWeightThreads, static_cast<size_t>(shape.width) * 4, stream>>>(p, pointer<T>(q), pointer<T>(k), stride(q),
                                                                                           stride(k), static_cast<int>(sequences.first),
                                                                                           optional<float>(lse), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
