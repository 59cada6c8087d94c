#include "kernels/cuda/attention/cudnn_attention.h"

#include "kernels/cuda/runtime/cudnn_graph.h"
#include "kernels/engine/plain.h"

#ifdef SACCADE_CUDNN
#include <array>
#include <limits>
#endif

namespace saccade::cuda {

#ifndef SACCADE_CUDNN

bool cudnn_attention_forward(const AttentionForward&) { return false; }

#else
namespace {

bool applies(const AttentionForward& in) {
  const HeadShape& shape = in.task.shape;
  const ScoreOptions& options = in.task.options;
  return tensor_core_type(in.v.dtype()) && in.q.dim(0) == shape.batch && in.k.dim(0) == shape.batch && shape.width % 8 == 0 &&
         shape.width <= 128 && options.scale > 0 && !options.alibi && options.window == 0 && in.task.chunk == 0 && !in.entropy &&
         !in.best && !in.resume && !cudnn_version().empty();
}

/// The graph for one shape and the numbers of its tensors.
struct Forward {
  cudnn::Graph graph;
  int q, k, v, o, lse, scale, lowest;
  bool usable;

  Forward(int device, const HeadShape& s) : graph(device) {
    using Dims = cudnn::Graph::Dims;
    const int64_t B = s.batch, H = s.heads, T = s.length, d = s.width;
    const Dims rows{B, H, T, d}, strides{T * H * d, d, H * d, 1}, scores{B, H, T, T}, line{B, H, T, 1};
    q = graph.input(CUDNN_DATA_BFLOAT16, rows, strides);
    k = graph.input(CUDNN_DATA_BFLOAT16, {B, H, d, T}, {T * H * d, d, 1, H * d});
    v = graph.input(CUDNN_DATA_BFLOAT16, rows, strides);
    o = graph.input(CUDNN_DATA_BFLOAT16, rows, strides);
    lse = graph.input(CUDNN_DATA_FLOAT, line, {H * T, T, 1, 1});
    scale = graph.scalar();
    lowest = graph.scalar();
    const auto temporary = [&](const Dims& dims) { return graph.intermediate(CUDNN_DATA_FLOAT, dims); };
    const int product = temporary(scores), scaled = temporary(scores), masked = temporary(scores), shifted = temporary(scores);
    const int row = graph.intermediate(CUDNN_DATA_INT32, scores), column = graph.intermediate(CUDNN_DATA_INT32, scores);
    const int visible = graph.intermediate(CUDNN_DATA_BOOLEAN, scores), weights = graph.intermediate(CUDNN_DATA_BFLOAT16, scores);
    const int exponentials = temporary(scores), top = temporary(line), sum = temporary(line), logarithm = temporary(line);
    graph.matmul(q, k, product);
    graph.pointwise(CUDNN_POINTWISE_MUL, product, scale, scaled);
    graph.index(scaled, 2, row);
    graph.index(scaled, 3, column);
    graph.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, visible, CUDNN_DATA_BOOLEAN);
    graph.select(scaled, lowest, visible, masked);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, masked, top);
    graph.pointwise(CUDNN_POINTWISE_SUB, masked, top, shifted);
    graph.pointwise(CUDNN_POINTWISE_EXP, shifted, exponentials);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    graph.pointwise(CUDNN_POINTWISE_LOG, sum, logarithm);
    graph.pointwise(CUDNN_POINTWISE_ADD, top, logarithm, lse);
    graph.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, weights);
    graph.matmul(weights, v, o);
    usable = graph.plan();
  }
};

Forward& forward_graph(int device, const HeadShape& shape) {
  using Key = std::array<int64_t, 5>;
  static std::map<Key, std::unique_ptr<Forward> > graphs;
  auto& slot = graphs[{device, shape.batch, shape.length, shape.heads, shape.width}];
  if (!slot) slot = std::make_unique<Forward>(device, shape);
  return *slot;
}

}  // namespace

bool cudnn_attention_forward(const AttentionForward& in) {
  if (!applies(in)) return false;
  const Forward& f = forward_graph(in.o.device().index, in.task.shape);
  if (!f.usable) return false;
  const float scale = static_cast<float>(in.task.options.scale), lowest = -std::numeric_limits<float>::infinity();
  f.graph.run({{f.q, in.q.raw()},
               {f.k, in.k.raw()},
               {f.v, in.v.raw()},
               {f.o, in.o.raw()},
               {f.lse, in.lse.raw()},
               {f.scale, &scale},
               {f.lowest, &lowest}});
  return true;
}

#endif

}  // namespace saccade::cuda
