#pragma once
#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/tensor.h"

namespace saccade {
/// Size in i32 of order_by_token's workspace: sorted tokens, positions, the first index of every token, and an upper bound of the sort's
/// own workspace, so that the plan needs no CUDA call.
constexpr int64_t embedding_scratch(int64_t tokens, int64_t vocabulary) { return 7 * (tokens + 64) + vocabulary + 65 + (int64_t{1} << 18); }
}  // namespace saccade

namespace saccade::cuda {

/// y[i] = table[tokens[i]]      table f32 [V, D]   tokens i32 [N]   y f32 or bf16 [N, D]
void embedding(Stream stream, const Tensor& table, const Tensor& tokens, const Tensor& y);

/// Positions 0 … N − 1 by token, ascending within one (a stable sort), and where every token begins, for embedding_backward.
/// tokens i32 [N]   order i32 [embedding_scratch(N, V)]
void order_by_token(Stream stream, const Tensor& tokens, int64_t vocabulary, const Tensor& order);

/// d_table[v] (+)= Σ_{i: tokens[i] = v} dy[i], summed in a fixed order: a block gathers one row of the table. Rows of unused
/// tokens become 0 unless `add`.
void embedding_backward(Stream stream, const Tensor& dy, const Tensor& order, const Tensor& d_table, bool add);

}  // namespace saccade::cuda
