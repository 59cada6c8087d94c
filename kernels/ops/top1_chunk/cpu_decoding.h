#pragma once
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cpu {

/// Mean keys of the chunks that the n tokens from `first` on complete; k [B, capacity, H, d], means [B, capacity / chunk, H, d].
template <class T>
void extend_mean_keys(const Tensor& k, const Tensor& means, int64_t chunk, int64_t first, int64_t n);

/// Incremental decoding: attention of the newest queries to their own chunk and the selected ones. problem.shape is that of k and v, q and
/// o are [B, n, H, d], selected [B, H, n, top_k].
template <class T>
void cached_chunks(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& selected, int64_t first,
                   const Tensor& o);

}  // namespace saccade::cpu
