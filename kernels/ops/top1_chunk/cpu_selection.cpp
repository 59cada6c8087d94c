#include "kernels/ops/top1_chunk/cpu_selection.h"

#include "kernels/engine/parallel.h"
#include "kernels/engine/random.h"
#include "kernels/ops/top1_chunk/cpu_scores.h"

namespace saccade::cpu {
namespace {

/// The best candidates of one query so far, best first; chunks must be offered in increasing order.
template <class T>
struct Best {
  T* score;
  int32_t* chunk;
  int64_t top_k, filled = 0;

  void offer(T s, int32_t c) {
    if (filled == top_k && !(s > score[top_k - 1])) return;
    int64_t at = filled < top_k ? filled++ : top_k - 1;
    for (; at > 0 && s > score[at - 1]; --at) score[at] = score[at - 1], chunk[at] = chunk[at - 1];
    score[at] = s;
    chunk[at] = c;
  }
};

/// Queries of one head at positions first … first + rows − 1: their rows, and what they choose.
template <class T>
struct HeadQueries {
  const T* q;
  int32_t* selected;
};

/// `heads` heads of sequence b from head h on choose together.
template <class T>
void select_block(const ChunkProblem& problem, const ChunkScorer<T>& scorer, int64_t b, int64_t h, const std::vector<HeadQueries<T>>& heads,
                  int64_t first, int64_t rows) {
  const int64_t top_k = problem.options.top_k, group = scorer.group(), most = problem.candidates(first + rows - 1);
  T* total = scratch<T, 5>(kScoreQueries * group);
  T* one = heads.size() > 1 ? scratch<T, 6>(kScoreQueries * group) : nullptr;
  T* best_scores = scratch<T, 7>(kScoreQueries * top_k);
  Best<T> best[kScoreQueries];
  for (int64_t r = 0; r < rows; ++r) {
    best[r] = {best_scores + r * top_k, heads[0].selected + r * top_k, top_k};
    std::fill_n(best[r].chunk, top_k, -1);
  }
  for (int64_t begin = 0; begin < most; begin += group) {
    const int64_t end = std::min(most, begin + group), n = end - begin;
    scorer.score(b, h, heads[0].q, first, rows, begin, end, total, group);
    for (size_t other = 1; other < heads.size(); ++other) {
      scorer.score(b, h + static_cast<int64_t>(other), heads[other].q, first, rows, begin, end, one, group);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < n; ++i) total[r * group + i] += one[r * group + i];
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < std::min(n, problem.candidates(first + r) - begin); ++i)
        best[r].offer(total[r * group + i], static_cast<int32_t>(begin + i));
  }
  for (size_t other = 1; other < heads.size(); ++other) std::copy_n(heads[0].selected, rows * top_k, heads[other].selected);
}

template <class T>
void select_by_score(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, const Tensor& selected,
                     int64_t position) {
  const HeadShape queries{problem.shape.batch, q.dim(1), problem.shape.heads, problem.shape.width};
  const bool shared = problem.options.share_selection;
  const int64_t groups = shared ? queries.batch : queries.sequences(), heads = shared ? queries.heads : 1;
  const int64_t blocks = (queries.length + kScoreQueries - 1) / kScoreQueries;
  const ChunkScorer<T> scorer(problem, k, means);
  parallel_for(groups * blocks, [&](int64_t task) {
    const int64_t sequence = task / blocks * heads, first = (blocks - 1 - task % blocks) * kScoreQueries;  // the longest first
    const int64_t b = sequence / queries.heads, h = sequence % queries.heads;
    std::vector<HeadQueries<T>> together;
    for (int64_t i = 0; i < heads; ++i)
      together.push_back({queries.rows<T>(q, b, h + i) + first * queries.stride(),
                          selected.data<int32_t>() + ((sequence + i) * queries.length + first) * problem.options.top_k});
    select_block(problem, scorer, b, h, together, position + first, std::min(kScoreQueries, queries.length - first));
  });
}

/// Control: the latest complete chunks.
void take_recent(const ChunkProblem& problem, int64_t t, int32_t* chosen) {
  for (int64_t i = 0; i < problem.options.top_k; ++i)
    chosen[i] = static_cast<int32_t>(std::max<int64_t>(problem.candidates(t) - 1 - i, -1));
}

/// Control: distinct candidates, uniformly (Floyd's sampling), by counters of (batch_head, position, slot) alone.
void take_random(const ChunkProblem& problem, const Random& random, int64_t batch_head, int64_t t, int32_t* chosen) {
  const int64_t candidates = problem.candidates(t), count = std::min(problem.options.top_k, candidates);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t last = candidates - count + i;
    const uint64_t counter = (static_cast<uint64_t>(batch_head) << 40) + (static_cast<uint64_t>(t) << 8) + static_cast<uint64_t>(i);
    const auto drawn = static_cast<int32_t>(random.below(static_cast<uint64_t>(last) + 1, counter));
    chosen[i] = std::find(chosen, chosen + i, drawn) == chosen + i ? drawn : static_cast<int32_t>(last);
  }
  std::fill(chosen + count, chosen + problem.options.top_k, -1);
}

void select_control(const ChunkProblem& problem, const Tensor& selected, int64_t first) {
  const HeadShape& shape = problem.shape;
  const int64_t length = selected.dim(2);
  const Random random(problem.options.seed, "top1_chunk.random");
  parallel_for(shape.sequences(), [&](int64_t sequence) {
    const int64_t batch_head = problem.options.share_selection ? sequence / shape.heads * shape.heads : sequence;
    for (int64_t t = first; t < first + length; ++t) {
      int32_t* chosen = selected.data<int32_t>() + (sequence * length + t - first) * problem.options.top_k;
      if (problem.options.selection == ChunkSelection::random) {
        take_random(problem, random, batch_head, t, chosen);
      } else {
        take_recent(problem, t, chosen);
      }
    }
  });
}

}  // namespace

template <class T>
void select_chunks(const ChunkProblem& problem, const Tensor& q, const Tensor& k, const Tensor& means, const Tensor& selected,
                   int64_t first) {
  if (problem.needs_scores()) {
    select_by_score<T>(problem, q, k, means, selected, first);
  } else {
    select_control(problem, selected, first);
  }
}

template void select_chunks<float>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t);
template void select_chunks<double>(const ChunkProblem&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t);

}  // namespace saccade::cpu
