#pragma once
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cpu {

/// margin [B, H, T] of the scores that decided (summed over heads when shared): the least of the chosen candidates minus the greatest
/// of the others; +inf with none left over, NaN without candidates.
/// score [B, H, R, chunks] has the queries from `first` on, and so much of margin is written.
template <class T>
void selection_margin(const ChunkProblem& problem, const Tensor& score, int64_t first, const Tensor& selected, const Tensor& margin);

/// captured [B, H, T]: mass of the chosen chunks in the softmax over all visible keys, from the log mass of every candidate
/// [B, H, R, chunks] of the queries from `first` on, and the lse over own and chosen chunks.
template <class T>
void captured_mass(const ChunkProblem& problem, const Tensor& log_mass, int64_t first, const Tensor& selected, const Tensor& lse,
                   const Tensor& captured);

}  // namespace saccade::cpu
