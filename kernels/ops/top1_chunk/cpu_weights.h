#pragma once
#include "kernels/ops/shared/sequences.h"
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cpu {

/// weights [sequences · H, T, T]: exp(s − lse) in the query's own and chosen chunks, zero elsewhere.
template <class T>
void chunk_weights(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& selected, const Tensor& lse,
                   const Sequences& sequences, const Tensor& weights);

}  // namespace saccade::cpu
