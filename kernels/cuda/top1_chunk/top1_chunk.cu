// Mean keys, the general selection (any type, several chunks, shared by heads, biased scores), the controls and the report.
#include "kernels/ops/top1_chunk/top1_chunk_cuda.h"

#include "kernels/cuda/attention/attention_pattern.cuh"
#include "kernels/cuda/top1_chunk/chunk_controls.cuh"
#include "kernels/cuda/top1_chunk/chunk_mean.cuh"

namespace saccade::cuda {
namespace {

constexpr int kWarps = 8, kOwn = 4, kRows = kWarps * kOwn, kLane = 32;

struct Problem {
  int batch, length, heads, width, chunk, window, top_k;
  float scale;
  bool alibi, released_alibi, shared;
  int64_t q_batch, k_batch;

  __device__ float slope(int h) const { return alibi ? alibi_slope(h, heads, released_alibi) : 0.0f; }
  __device__ int64_t stride() const { return int64_t{heads} * width; }
};

/// Block (complete chunk, columns of all heads, sequence).
template <int kPiece, class T>
__global__ void __launch_bounds__(kMeanThreads) means_kernel(const T* k, T* means, int64_t length, int64_t chunk, int64_t row) {
  mean_of_rows<kPiece>(k + (blockIdx.z * length + blockIdx.x * chunk) * row, row, chunk,
                       means + (int64_t{blockIdx.z} * gridDim.x + blockIdx.x) * row);
}

template <class T>
__device__ void copy_rows(float* to, int pitch, const T* x, int64_t stride, int width, int count) {
  __syncthreads();
  for (int item = threadIdx.x; item < kLane * width; item += kWarps * 32) {
    const int r = item / width, i = item % width;
    to[r * pitch + i] = r < count ? to_float(x[r * stride + i]) : 0.0f;
  }
  __syncthreads();
}

/// Scores of a warp's four queries in one head. k: mean keys (then lane i scores chunk `from` + i), or keys (then every lane
/// has the log mass of chunk `from`).
template <class T>
struct Scorer {
  const Problem& p;
  const T *q, *k;
  bool means;
  float *queries, *keys;  ///< shared memory, pitches width and width + 1
  int first, count;       ///< queries of this block

  __device__ void take_queries(int b, int h) const {
    copy_rows(queries, p.width, q + b * p.q_batch + first * p.stride() + h * p.width, p.stride(), p.width, count);
  }
  __device__ float product(int r) const {
    const float *x = queries + (threadIdx.x / 32 * kOwn + r) * p.width, *y = keys + threadIdx.x % 32 * (p.width + 1);
    float sum = 0;
    for (int i = 0; i < p.width; ++i) sum += x[i] * y[i];
    return sum * p.scale;
  }
  __device__ void score(int b, int h, int from, int complete, float (&out)[kOwn]) const {
    const T* rows = k + b * p.k_batch + h * p.width;
    const float slope = p.slope(h);
    if (means) {
      copy_rows(keys, p.width + 1, rows + from * p.stride(), p.stride(), p.width, min(kLane, complete - from));
      const float middle = mean_position(from + static_cast<int>(threadIdx.x % 32), p.chunk);
#pragma unroll
      for (int r = 0; r < kOwn; ++r)
        out[r] = product(r) - slope * (static_cast<float>(first + static_cast<int>(threadIdx.x / 32) * kOwn + r) - middle);
      return;
    }
    float max[kOwn], sum[kOwn] = {};
#pragma unroll
    for (int r = 0; r < kOwn; ++r) max[r] = -INFINITY;
    const int end = (from + 1) * p.chunk;
    for (int key = from * p.chunk; key < end; key += kLane) {
      copy_rows(keys, p.width + 1, rows + key * p.stride(), p.stride(), p.width, min(kLane, end - key));
      const int j = key + threadIdx.x % 32;
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        const int t = first + threadIdx.x / 32 * kOwn + r;
        const bool visible = j < end && (p.window == 0 || j > t - p.window);
        const float s = visible ? product(r) - slope * static_cast<float>(t - j) : -INFINITY;
        const float top = fmaxf(max[r], warp_max(s)), shift = top == -INFINITY ? 0.0f : top;
        sum[r] = sum[r] * expf(max[r] - shift) + warp_sum(expf(s - shift));
        max[r] = top;
      }
    }
#pragma unroll
    for (int r = 0; r < kOwn; ++r) out[r] = max[r] == -INFINITY ? -INFINITY : max[r] + logf(sum[r]);
  }
};

/// Puts a candidate among the best of a query, best first; chunks come in increasing order.
__device__ void offer(float* score, int32_t* chunk, int top_k, int& filled, float s, int c) {
  if (filled == top_k && !(s > score[top_k - 1])) return;
  int at = filled < top_k ? filled++ : top_k - 1;
  for (; at > 0 && s > score[at - 1]; --at) score[at] = score[at - 1], chunk[at] = chunk[at - 1];
  score[at] = s;
  chunk[at] = c;
}

/// Block (x, y): 32 of the `rows` queries from `from` on of batch_head y, or of sequence y where heads choose together. With `scores`
/// [B, H, rows, chunks] all scores are written instead of choosing, which is for all queries.
template <class T>
__global__ void __launch_bounds__(32 * kWarps)
    score_kernel(Problem p, const T* q, const T* k, bool means, int from, int rows, int32_t* selected, float* best, float* scores) {
  extern __shared__ float memory[];
  const bool together = p.shared && !scores;
  const int row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows, first = from + row, count = min(kRows, rows - row);
  const int batch_head = together ? blockIdx.y * p.heads : blockIdx.y, b = batch_head / p.heads, own = threadIdx.x / 32 * kOwn,
            lane = threadIdx.x % 32;
  const int heads = together ? p.heads : 1, complete = p.length / p.chunk, chunks = (p.length + p.chunk - 1) / p.chunk;
  const Scorer<T> scorer{p, q, k, means, memory, memory + kRows * p.width, first, count};
  int filled[kOwn] = {};
  const auto at = [&](int r) { return int64_t{batch_head} * rows + row + own + r; };
  for (int r = 0; r < kOwn; ++r) {
    if (own + r >= count) continue;
    if (scores)
      for (int c = lane; c < chunks; c += 32) scores[at(r) * chunks + c] = -INFINITY;
    else
      for (int i = lane; i < p.top_k; i += 32) selected[at(r) * p.top_k + i] = -1;
  }
  __syncwarp();
  if (heads == 1) scorer.take_queries(b, batch_head % p.heads);
  const int most = (first + count - 1) / p.chunk, group = means ? kLane : 1;
  for (int begin = 0; begin < most; begin += group) {
    float total[kOwn] = {};
    for (int i = 0; i < heads; ++i) {
      const int h = batch_head % p.heads + i;
      if (heads > 1) scorer.take_queries(b, h);
      float s[kOwn];
      scorer.score(b, h, begin, complete, s);
#pragma unroll
      for (int r = 0; r < kOwn; ++r) total[r] += s[r];
    }
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      const int candidates = own + r < count ? (first + own + r) / p.chunk : 0;
      if (scores) {
        if (lane < group && begin + lane < candidates) scores[at(r) * chunks + begin + lane] = total[r];
        continue;
      }
      for (int i = 0; i < group; ++i) {
        const float s = __shfl_sync(0xffffffffu, total[r], i);
        if (lane == 0 && begin + i < candidates)
          offer(best + at(r) * p.top_k, selected + at(r) * p.top_k, p.top_k, filled[r], s, begin + i);
      }
    }
  }
  if (!together) return;
  __syncwarp();
  for (int r = 0; r < kOwn; ++r)
    if (own + r < count)
      for (int h = 1; h < p.heads; ++h)
        for (int i = lane; i < p.top_k; i += 32) selected[(at(r) + int64_t{h} * p.length) * p.top_k + i] = selected[at(r) * p.top_k + i];
}

/// A thread per query.
__global__ void control_kernel(Problem p, Random random, bool drawn, int64_t queries, int32_t* selected) {
  const int64_t i = int64_t{blockIdx.x} * 128 + threadIdx.x;
  if (i >= queries) return;
  const int64_t sequence = i / p.length, t = i % p.length;
  take_control(random, drawn, p.top_k, p.shared ? sequence / p.heads * p.heads : sequence, t, t / p.chunk, selected + i * p.top_k);
}

/// Of one query in a tile: scores stand at its row, all else at its place among the queries.
struct TileQuery {
  int64_t row, batch_head, t, place, chunks;
  __device__ TileQuery(const Problem& p, int64_t first, int64_t rows, int64_t i)
      : row(i), batch_head(i / rows), t(first + i % rows), place(batch_head * p.length + t), chunks((p.length + p.chunk - 1) / p.chunk) {}
};

/// A thread per query of the `rows` from `first` on.
__global__ void margin_kernel(Problem p, const float* score, int64_t first, int64_t rows, const int32_t* selected, float* margin,
                              int64_t queries) {
  const int64_t i = int64_t{blockIdx.x} * 128 + threadIdx.x;
  if (i >= queries) return;
  const TileQuery at(p, first, rows, i);
  const int64_t chunks = at.chunks, candidates = at.t / p.chunk, of_first_head = (at.batch_head / p.heads * p.heads) * rows + i % rows;
  float least = INFINITY, best_other = -INFINITY;
  bool others = false;
  for (int64_t c = 0; c < candidates; ++c) {
    float s = 0;
    if (p.shared)
      for (int h = 0; h < p.heads; ++h) s += score[(of_first_head + h * rows) * chunks + c];
    else
      s = score[at.row * chunks + c];
    bool chosen = false;
    for (int k = 0; k < p.top_k; ++k) chosen |= selected[at.place * p.top_k + k] == c;
    if (chosen)
      least = fminf(least, s);
    else
      best_other = fmaxf(best_other, s), others = true;
  }
  margin[at.place] = candidates == 0 ? NAN : (others ? least - best_other : INFINITY);
}

__device__ __forceinline__ float log_add(float a, float b) {
  const float high = fmaxf(a, b), low = fminf(a, b);
  return low == -INFINITY ? high : high + log1pf(expf(low - high));
}

__global__ void captured_kernel(Problem p, const float* log_mass, int64_t first, int64_t rows, const int32_t* selected, const float* lse,
                                float* captured, int64_t queries) {
  const int64_t i = int64_t{blockIdx.x} * 128 + threadIdx.x;
  if (i >= queries) return;
  const TileQuery at(p, first, rows, i);
  float inside = -INFINITY, all = lse[at.place];
  for (int64_t c = 0; c < at.t / p.chunk; ++c) {
    bool chosen = false;
    for (int slot = 0; slot < p.top_k; ++slot) chosen = chosen || selected[at.place * p.top_k + slot] == c;
    float& sum = chosen ? inside : all;
    sum = log_add(sum, log_mass[at.row * at.chunks + c]);
  }
  captured[at.place] = expf(inside - all);
}

Problem plain(const ChunkProblem& problem) {
  const HeadShape& shape = problem.shape;
  Problem p{};
  p.batch = static_cast<int>(shape.batch), p.length = static_cast<int>(shape.length), p.heads = static_cast<int>(shape.heads);
  p.width = static_cast<int>(shape.width), p.chunk = static_cast<int>(std::min(problem.options.chunk, shape.length + 1));
  p.window = static_cast<int>(std::min(problem.score.window, shape.length)), p.top_k = static_cast<int>(problem.options.top_k);
  p.scale = static_cast<float>(problem.score.scale), p.alibi = problem.score.alibi, p.released_alibi = problem.score.released_alibi,
  p.shared = problem.options.share_selection;
  return p;
}

int64_t batch_stride(const HeadShape& shape, const Tensor& x) { return x.dim(0) == 1 && shape.batch > 1 ? 0 : x.size() / x.dim(0); }

/// Where the choice of all queries goes, or the scores of some.
struct ScoreOutput {
  int32_t* selected = nullptr;
  float *best = nullptr, *scores = nullptr;
  int64_t first = 0, rows = 0;
};

void launch_scores(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                   const ScoreOutput& out) {
  const HeadShape& shape = problem.shape;
  const Tensor& rows = means ? means : k;
  Problem p = plain(problem);
  p.q_batch = batch_stride(shape, q), p.k_batch = batch_stride(shape, rows);
  const int shared = static_cast<int>((kRows * shape.width + kLane * (shape.width + 1)) * 4);
  const bool together = p.shared && !out.scores;
  const dim3 grid(blocks_for(out.rows, kRows), static_cast<unsigned>(together ? shape.batch : shape.sequences()));
  dispatch_cuda(q.dtype(), [&](auto t) {
    using T = decltype(t);
    allow_shared(score_kernel<T>, shared);
    score_kernel<T><<<grid, 32 * kWarps, shared, stream>>>(p, pointer<T>(q), pointer<T>(rows), static_cast<bool>(means),
                                                           static_cast<int>(out.first), static_cast<int>(out.rows), out.selected, out.best,
                                                           out.scores);
  });
  check_launch();
}

}  // namespace

void chunk_means(Stream stream, const ChunkProblem& problem, const Tensor& k, const Tensor& means) {
  dispatch_cuda(k.dtype(), [&](auto t) {
    using T = decltype(t);
    const int64_t row = problem.shape.stride();
    for_mean_piece<T>(row, [&](auto piece) {
      constexpr int kPiece = decltype(piece)::value;
      const dim3 grid(static_cast<unsigned>(means.dim(1)), blocks_for(row, kMeanColumns<kPiece>), static_cast<unsigned>(means.dim(0)));
      means_kernel<kPiece>
          <<<grid, kMeanThreads, 0, stream>>>(pointer<T>(k), pointer<T>(means), problem.shape.length, problem.options.chunk, row);
    });
  });
  check_launch();
}

void select_chunks(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means,
                   const Tensor& selected, const Tensor& best) {
  if (!problem.needs_scores()) {
    const int64_t queries = selected.size() / problem.options.top_k;
    control_kernel<<<blocks_for(queries, 128), 128, 0, stream>>>(plain(problem), Random(problem.options.seed, "top1_chunk.random"),
                                                                 problem.options.selection == ChunkSelection::random, queries,
                                                                 pointer<int32_t>(selected));
    return check_launch();
  }
  if (problem.candidates(problem.shape.length - 1) == 0) return fill_bytes(stream, selected.raw(), 0xff, selected.bytes());
  if (selects_on_tensor_cores(problem, q.dtype()) && hopper_select(stream, problem, q, k, means, selected)) return;
  if (selects_on_tensor_cores(problem, q.dtype())) return select_on_tensor_cores(stream, problem, q, k, means, selected);
  launch_scores(stream, problem, q, k, means,
                {.selected = pointer<int32_t>(selected), .best = pointer<float>(best), .rows = problem.shape.length});
}

void score_chunks(Stream stream, const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, int64_t first,
                  const Tensor& score) {
  launch_scores(stream, problem, q, k, means, {.scores = pointer<float>(score), .first = first, .rows = score.dim(2)});
}

void selection_margin(Stream stream, const ChunkProblem& problem, const Tensor& score, int64_t first, const Tensor& selected,
                      const Tensor& margin) {
  const int64_t rows = score.dim(2), queries = problem.shape.sequences() * rows;
  margin_kernel<<<blocks_for(queries, 128), 128, 0, stream>>>(plain(problem), pointer<float>(score), first, rows,
                                                              pointer<int32_t>(selected), pointer<float>(margin), queries);
  check_launch();
}

void captured_mass(Stream stream, const ChunkProblem& problem, const Tensor& log_mass, int64_t first, const Tensor& selected,
                   const Tensor& lse, const Tensor& captured) {
  const int64_t rows = log_mass.dim(2), queries = problem.shape.sequences() * rows;
  captured_kernel<<<blocks_for(queries, 128), 128, 0, stream>>>(plain(problem), pointer<float>(log_mass), first, rows,
                                                                pointer<int32_t>(selected), pointer<float>(lse), pointer<float>(captured),
                                                                queries);
  check_launch();
}

}  // namespace saccade::cuda
