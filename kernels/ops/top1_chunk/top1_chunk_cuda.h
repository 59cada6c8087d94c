#pragma once
#include "kernels/ops/attention/attention_cuda.h"
#include "kernels/ops/top1_chunk/chunk_attention.h"

namespace saccade::cuda {

/// Whether selection runs on tensor cores: top_k 1, no shared selection, scores without ALiBi's bias.
inline bool selects_on_tensor_cores(const ChunkProblem& p, DType dtype) {
  if (!on_tensor_cores(dtype, p.shape.width) || p.options.top_k != 1 || p.options.share_selection || !(p.score.scale > 0)) return false;
  if (p.score.alibi) return false;
  const int64_t chunk = p.options.chunk;
  return p.options.selection == ChunkSelection::approx || (p.score.window == 0 && (chunk % 64 == 0 || chunk == 32 || chunk == 16));
}

/// means[b, c, h] = mean of the keys of complete chunk c; k, means f32 or bf16.
void chunk_means(Stream stream, const ChunkProblem& problem, const Tensor& k, const Tensor& means);

/// selected i32 [B, H, T, top_k] as on the CPU. `best` is workspace f32 of the same shape, empty where tensor cores select.
void select_chunks(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                   const Tensor& selected, const Tensor& best);
/// The same on tensor cores; `means` empty: exact.
void select_on_tensor_cores(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                            const Tensor& selected);

/// The same with Hopper's wgmma: chunks of a multiple of 64, heads of up to 64. Returns false and does nothing on other GPUs and in other
/// cases.
bool hopper_select(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                   const Tensor& selected);

/// Queries per block of the sort.
constexpr int64_t kSortSegment = 2048;
/// Counting sort of the queries by chosen chunk. counts: workspace i32 [B · H · top_k, segments, chunks]. block_rows as attention takes.
void sort_queries(Stream stream, const ChunkProblem& problem, int64_t block_rows, const QueryLists& lists, const Tensor& counts);

/// Attention to the chosen chunks and the own chunk, one softmax over the union. entropy may be empty.
void chunk_forward(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v, const QueryLists& lists,
                   const Tensor& o, const Tensor& lse, const Tensor& entropy);
/// The same with Hopper's wgmma: one chosen chunk of 128 keys, bf16 heads of up to 64, no window, no ALiBi, no entropy; lse is −∞ on entry.
/// Returns false and does nothing on other GPUs and in other cases.
bool hopper_chunk_forward(Stream stream, const AttentionForward& in);
/// Its gradients; in.sorted is not used. partial: workspace (extra_scratch) where dk or dv are wanted.
void chunk_backward(Stream stream, const cpu::ChunkBackward& in, const QueryLists& lists, const Tensor& o, const Tensor& partial);

/// score f32 [B, H, R, chunks] of the R queries from `first` on: log mass, or scale · q · mean where means are given; −inf where a chunk
/// is no candidate.
void score_chunks(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, int64_t first,
                  const Tensor& score);
/// Of the same queries: margin f32 [B, H, T] of the choice selected i32 [B, H, T, top_k]; captured f32 [B, H, T] from the log masses.
void selection_margin(Stream stream, const ChunkProblem& problem, const Tensor& score, int64_t first, const Tensor& selected,
                      const Tensor& margin);
void captured_mass(Stream stream, const ChunkProblem& problem, const Tensor& log_mass, int64_t first, const Tensor& selected,
                   const Tensor& lse, const Tensor& captured);

}  // namespace saccade::cuda
