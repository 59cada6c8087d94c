#pragma once
#include "kernels/ops/top1_chunk/cpu_selection.h"

namespace saccade::cpu {

constexpr int64_t kScoreQueries = 128, kScoreKeys = 256;

/// Scores of queries of one head for chunks [begin, end), the last ones complete: out[r, c − begin], rows `ld` apart. Query r stands
/// at q + r · stride and has position first + r. Scores of chunks that are no candidates of a row are undefined.
template <class T>
class ChunkScorer {
 public:
  /// Scores are log masses where means are empty; else those of the mean keys, with ALiBi's bias at the mean distance.
  ChunkScorer(const ChunkProblem& problem, const Tensor& k, const Tensor& means) : problem_(problem), k_(k), means_(means) {}

  /// Chunks per call of score.
  int64_t group() const;
  void score(int64_t b, int64_t h, const T* q, int64_t first, int64_t rows, int64_t begin, int64_t end, T* out, int64_t ld) const;

 private:
  void log_mass(int64_t b, int64_t h, const T* q, int64_t first, int64_t rows, int64_t begin, int64_t end, T* out, int64_t ld) const;

  const ChunkProblem& problem_;
  const Tensor &k_, &means_;
};

}  // namespace saccade::cpu
