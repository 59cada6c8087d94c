// Chooses between the kernels, and the small ones around them.
#include "kernels/ops/attention/attention_cuda.h"

#include "kernels/cuda/attention/attention_hopper.h"
#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/attention/attention_tiles.cuh"
#include "kernels/cuda/attention/cudnn_attention.h"
#include "kernels/cuda/device/plain_tile.cuh"
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

/// A block owns the queries [first, first + kTile) of a head, of all heads of one sequence after the other; those of sequence
/// `first_sequence` are the first. Scores are written, then exponentials over them.
template <class T>
__global__ void __launch_bounds__(plain::kThreads) weights_kernel(Pattern p, const T* q, const T* k, int64_t q_batch, int64_t k_batch,
                                                                  int first_sequence, const float* lse, float* weights) {
  using plain::kTile;
  __shared__ plain::Workspace workspace;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTile, end = min(p.length, first + kTile);  // the longest first
  const int h = blockIdx.y % p.heads, sequence = first_sequence + blockIdx.y / p.heads, batch_head = sequence * p.heads + h;
  const int64_t stride = p.stride();
  q += sequence * q_batch + h * p.width, k += sequence * k_batch + h * p.width;
  float* map = weights + int64_t{blockIdx.y} * p.length * p.length;
  const auto visible = [&](int t, int j) {
    if (j > t || (p.window > 0 && j <= t - p.window)) return false;
    if (p.chunk == 0 || j / p.chunk == t / p.chunk) return true;
    for (int i = 0; i < p.top_k; ++i)
      if (p.selected[(int64_t{batch_head} * p.length + t) * p.top_k + i] == j / p.chunk) return true;
    return false;
  };
  const int low = p.window > 0 ? max(0, first - p.window + 1) / kTile * kTile : 0;  // before it no query of the block sees a key
  for (int keys = low; keys < end; keys += kTile) {
    plain::Accumulator scores;
    plain::clear(scores);
    const auto element = [&](const T* x, int t, int i) { return t < end ? to_float(x[t * stride + i]) : 0.0f; };
    plain::accumulate<plain::Fast::sum, plain::Fast::sum>(
        scores, workspace, p.width, [&](int row, int i) { return element(q, first + row, i); },
        [&](int column, int i) { return element(k, keys + column, i); });
    plain::for_own(scores, [&](int row, int column, float score) {
      const int t = first + row, j = keys + column;
      if (t < end && j < end)
        map[int64_t{t} * p.length + j] = visible(t, j) ? p.scale * score - p.slope(h) * static_cast<float>(t - j) : -INFINITY;
    });
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int t = first + static_cast<int>(threadIdx.x) / 32; t < end; t += plain::kThreads / 32) {  // a warp per query
    float* row = map + int64_t{t} * p.length;
    float shift = -INFINITY, inverse = 1;
    if (lse) {
      shift = lse[int64_t{batch_head} * p.length + t];
    } else {
      for (int j = low + lane; j < end; j += 32) shift = fmaxf(shift, row[j]);
      shift = warp_max(shift);
      float sum = 0;
      for (int j = low + lane; j < end; j += 32) sum += expf(row[j] - shift);
      inverse = 1 / warp_sum(sum);
    }
    for (int j = lane; j < p.length; j += 32) row[j] = j >= low && j < end ? expf(row[j] - shift) * inverse : 0.0f;
  }
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
  const dim3 grid(blocks_for(shape.length, plain::kTile), static_cast<unsigned>(sequences.count * shape.heads));
  dispatch_cuda(q.dtype(), [&](auto t) {
    using T = decltype(t);
    weights_kernel<<<grid, plain::kThreads, 0, stream>>>(p, pointer<T>(q), pointer<T>(k), stride(q), stride(k),
                                                         static_cast<int>(sequences.first), optional<float>(lse), pointer<float>(weights));
  });
  check_launch();
}

}  // namespace saccade::cuda
