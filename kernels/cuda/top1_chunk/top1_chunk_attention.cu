#include <limits>

#include "kernels/engine/cuda_basic.h"
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

namespace saccade::cuda {

// Chosen chunks slot by slot, then the own chunk, each going on from what the one before left in o and lse.
void chunk_forward(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v, const QueryLists& lists,
                   const Tensor& o, const Tensor& lse, const Tensor& entropy) {
  fill(stream, lse, -std::numeric_limits<double>::infinity());
  AttentionForward in{{problem.shape, problem.score, problem.options.chunk, lists}, q, k, v, o, lse, entropy, {}, true};
  if (hopper_chunk_forward(stream, in)) return;
  for (in.task.slot = 0; in.task.slot < problem.options.top_k; ++in.task.slot) attention_forward(stream, in);
  in.task.lists = {};
  attention_forward(stream, in);
}

// The own chunk's share of dq first, then slot by slot; dk and dv of a chunk take its own queries with the first slot.
void chunk_backward(Stream stream, const cpu::ChunkBackward& saved, const QueryLists& lists, const Tensor& o, const Tensor& partial) {
  const ChunkProblem& problem = saved.problem;
  output_dots(stream, problem.shape, saved.d_o, o, saved.delta);
  AttentionBackward in{{problem.shape, problem.score, problem.options.chunk},
                       saved.q,
                       saved.k,
                       saved.v,
                       saved.d_o,
                       saved.lse,
                       saved.delta,
                       {},
                       saved.dq.tensor,
                       {},
                       {},
                       saved.dq.add,
                       saved.dk.add,
                       saved.dv.add,
                       partial};
  attention_backward(stream, in);
  in.task.lists = lists;
  in.dk = saved.dk.tensor, in.dv = saved.dv.tensor;
  in.add_dq = true;
  for (in.task.slot = 0; in.task.slot < problem.options.top_k; ++in.task.slot) {
    attention_backward(stream, in);
    in.task.local = false;
    in.add_dk = in.add_dv = true;
  }
}

}  // namespace saccade::cuda
