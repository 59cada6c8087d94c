#pragma once
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cpu {

/// weights [H, T, T] of one sequence: exp(s − lse) in the query's own and chosen chunks, zero elsewhere.
template <class T>
void chunk_weights(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& selected, const Tensor& lse,
                   int64_t sequence, const Tensor& weights);

}  // namespace saccade::cpu
