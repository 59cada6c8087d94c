#include "kernels/ops/top1_chunk/top1_chunk_decoding.h"

#include "kernels/engine/expect.h"
#include "kernels/ops/decoding/position_tasks.h"
#include "kernels/ops/top1_chunk/cpu_decoding.h"
#include "kernels/ops/top1_chunk/top1_chunk_decoding_cuda.h"

namespace saccade {

void extend_mean_keys(Tape& tape, const Tensor& k, const Tensor& means, const ChunkOptions& options, const TokenPosition& position,
                      int64_t n) {
  const double completed = static_cast<double>(n) * static_cast<double>(k.size()) / static_cast<double>(k.dim(1));
  tape.run(
      "top1_chunk.extend_means", {completed, completed * static_cast<double>(byte_size(k.dtype()))},
      [&] {
        for_positions(position, k.dim(0), [&](int64_t b, int64_t count, int64_t first) {
          dispatch(k.dtype(), [&](auto zero) {
            cpu::extend_mean_keys<decltype(zero)>(k.slice(b, b + count), means.slice(b, b + count), options.chunk, first, n);
          });
        });
      },
      [&] { cuda::extend_mean_keys(tape.stream(), k, means, options.chunk, position, n); });
}

CachedChunk cached_top1_chunk(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& means, const ScoreOptions& score,
                              const ChunkOptions& options, const TokenPosition& position) {
  const HeadShape shape{v.dim(0), q.dim(1), v.dim(2), v.dim(3)};
  expect(k.shape() == v.shape() && q.dim(0) == v.dim(0) && q.dim(2) == v.dim(2) && q.dim(3) == v.dim(3) &&
             position.first + q.dim(1) <= v.dim(1) && static_cast<bool>(means) == keeps_mean_keys(options),
         "cached_top1_chunk", "q is ", q, ", k ", k, ", v ", v, ", means ", means, ", first position ", position.first,
         "; expected [B, n, H, d], twice [B, capacity, H, d] with first + n <= capacity, and means for approx");
  const int64_t capacity = v.dim(1);
  const ChunkProblem problem{{shape.batch, capacity, shape.heads, shape.width}, score, options};
  const CachedChunk out{tape.empty({shape.batch, shape.length, shape.heads, shape.width}, v.dtype()),
                        tape.empty({shape.batch, shape.heads, shape.length, options.top_k}, DType::i32)};
  cuda::ChunkScratch scratch;
  if (tape.device().targets_cuda()) {
    if (problem.needs_scores()) scratch.scores = tape.empty(cuda::chunk_scores(shape, options.chunk, capacity), DType::f32);
    scratch.partial = tape.empty(cuda::chunk_partial(shape, options), DType::f32);
  }
  const double queries = static_cast<double>(q.size()), chunks = static_cast<double>(position.first / options.chunk);
  const double scored = !problem.needs_scores() ? 0 : means ? chunks : chunks * static_cast<double>(options.chunk);
  const double attended = static_cast<double>((options.top_k + 1) * options.chunk);
  tape.run(
      "cached_top1_chunk",
      {queries * (2 * scored + 4 * attended), queries * (scored + 2 * attended) * static_cast<double>(byte_size(v.dtype()))},
      [&] {
        dispatch(v.dtype(), [&](auto zero) {
          using T = decltype(zero);
          for_positions_at_once(position, shape.batch, [&](int64_t b, int64_t n, int64_t first) {
            const auto own = [&](const Tensor& x) { return sequences_of(x, b, n); };
            const ChunkProblem part{{n, capacity, shape.heads, shape.width}, score, options};
            cpu::select_chunks<T>(part, own(q), own(k), own(means), own(out.selected), first);
            cpu::cached_chunks<T>(part, own(q), own(k), own(v), own(out.selected), first, own(out.o));
          });
        });
      },
      [&] {
        cuda::cached_top1_chunk(tape.stream(), {shape, score, q, k, v, out.o, position}, options, means, out.selected, scratch);
      });
  return out;
}

}  // namespace saccade
