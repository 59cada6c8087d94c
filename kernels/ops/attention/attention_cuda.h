#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/plain.h"
#include "kernels/engine/tensor.h"
#include "kernels/ops/attention/head_shape.h"
#include "kernels/ops/shared/sequences.h"

namespace saccade::cuda {

/// Of a popular group of chunks, queries beyond the first kExtraQueries are summed by separate blocks.
constexpr int kExtraQueries = 1024;

/// Queries sorted by the chunk they chose, and how blocks share them (made by kernels/ops/top1_chunk/top1_chunk_cuda.h). `top_k` counts
/// the top-k slots.
struct QueryLists {
  Tensor selected;       ///< i32 [B, H, T, top_k]
  Tensor order;          ///< i32 [B, H, top_k, T]
  Tensor offsets;        ///< i32 [B, H, top_k, chunks + 1]
  Tensor tiles;          ///< i32 [B, H, top_k, tiles, 2] group of chunks and index in `order` where a tile of queries begins; −1: none
  Tensor extras;         ///< i32 [B, H, top_k, extras, 2] the same for each kExtraQueries queries after the first of a group
  Tensor extra_offsets;  ///< i32 [B, H, top_k, groups + 1] which extras belong to a group
};

/// Common arguments of attention kernels. `batch_head` is the index b H + h of a head of a sequence.
struct AttentionTask {
  HeadShape shape;
  ScoreOptions options;
  int64_t chunk = 0;      ///< 0: all earlier keys; else each query's own chunk, and with lists the chosen ones
  QueryLists lists = {};  ///< empty: queries in order
  int64_t slot = 0;       ///< top-k slot of the chosen chunk
  bool local = true;      ///< backward with lists: own chunk too
};

/// bf16 heads of these widths go to tensor cores, everything else to plain kernels.
inline bool on_tensor_cores(DType dtype, int64_t width) {
  return tensor_core_type(dtype) && (width == 16 || width == 32 || width == 64 || width == 128);
}
/// Rows of queries, or of keys, per block.
inline int64_t attention_block_rows(DType dtype, int64_t width) { return !on_tensor_cores(dtype, width) ? 32 : (width <= 64 ? 128 : 64); }
/// Chunks that share a block's keys.
inline int64_t group_chunks(int64_t chunk, int64_t block_rows) { return std::max<int64_t>(1, block_rows / chunk); }
/// Blocks per chunk, for chunks longer than a block's rows.
inline int64_t chunk_blocks(int64_t chunk, int64_t block_rows) { return std::max<int64_t>(1, (chunk + block_rows - 1) / block_rows); }
/// Most groups of kExtraQueries queries that one (sequence, head) needs.
inline int64_t max_extras(int64_t length) { return length / kExtraQueries; }

/// q, k, v f32 or bf16 [B, T, H, d] (q, k may be [1, …]), o alike; lse, entropy f32 and best i32 [B, H, T]. entropy, best may be
/// empty. With lists only the listed queries are computed, against the chunk they chose. `resume`: continues from o, lse, entropy.
struct AttentionForward {
  AttentionTask task;
  Tensor q, k, v, o, lse, entropy, best;
  bool resume = false;
};
void attention_forward(Stream stream, const AttentionForward& in);

/// P recomputed from lse, dS = P ∘ (dO vᵀ − delta), delta = rowsum(dO ∘ o). Empty targets are left out. With `best`, dv_j = Σ_{t:
/// best(t) = j} dO_t. With lists: the listed queries' chosen chunks, and in dk, dv also the own chunks if task.local.
struct AttentionBackward {
  AttentionTask task;
  Tensor q, k, v, d_o, lse, delta, best;
  Tensor dq, dk, dv;
  bool add_dq = false, add_dk = false, add_dv = false;
  Tensor partial = {};          ///< workspace f32: extra_scratch with lists; for dense attention query_sums, its counts cleared
  int64_t gradient_stride = 0;  ///< elements between positions of dq, dk, dv; 0: H d
  double rotary_base = 0;       ///< not 0: dq and dk are rotated back by the angles of their positions (kernels/ops/heads/heads.h)
};
void attention_backward(Stream stream, const AttentionBackward& in);

/// Shape of the workspace of a backward pass with lists.
inline Shape extra_scratch(const HeadShape& shape, int64_t chunk, DType dtype) {
  const int64_t rows = attention_block_rows(dtype, shape.width);
  return {shape.sequences(), std::max<int64_t>(1, max_extras(shape.length)), chunk_blocks(chunk, rows) * 2, rows, shape.width};
}

/// Queries per tile of dq, summed in float by kernels whose blocks own keys.
constexpr int kQueryTile = 64;
constexpr int kShareOfQueries = kQueryTile * 64;  ///< floats: heads of up to 64
/// Whether this GPU has such kernels.
inline bool sums_queries(const HeadShape& shape, const ScoreOptions& options, DType dtype) {
  return tensor_core_type(dtype) && shape.width % 8 == 0 && shape.width <= 64 && shape.length >= 2 * kQueryTile && !options.alibi &&
         options.scale > 0;
}
/// Shape of their workspace: the sums, and the number of blocks of keys added so far.
inline Shape query_sums(const HeadShape& shape) {
  return {shape.sequences() * ((shape.length + kQueryTile - 1) / kQueryTile), kShareOfQueries + 1};
}

/// Index of the first count in it.
inline int* query_counts(const Tensor& sums) { return static_cast<int*>(sums.raw()) + sums.dim(0) * kShareOfQueries; }

/// delta = rowsum(dO ∘ o): delta[b, h, t] = d_o[b, t, h] · o[b, t, h]; delta f32. Clears the counts of `sums`, unless that is empty.
void output_dots(Stream stream, const HeadShape& shape, const Tensor& d_o, const Tensor& o, const Tensor& delta, const Tensor& sums = {});
/// sum (+)= Σ_b x[b], in order of b.
void sum_over_batch(Stream stream, const Tensor& x, const Tensor& sum, bool add);
/// p_tj of some sequences, f32 [sequences · H, T, T]. With `chunk`, exp(s − lse) in the own chunk and those in selected [B, H, T, top_k].
void attention_weights(Stream stream, const HeadShape& shape, const ScoreOptions& options, const Tensor& q, const Tensor& k,
                       const Sequences& sequences, int64_t chunk, const Tensor& selected, const Tensor& lse, const Tensor& weights);

}  // namespace saccade::cuda
