#include "models/training/shards.h"

#include <algorithm>

#include "kernels/ops/adamw/adamw.h"

namespace saccade {

std::vector<std::vector<Piece>> cut_into_shards(const std::vector<Parameter>& parameters, const std::function<bool(size_t)>& whole,
                                                int ranks) {
  int64_t total = 0, before = 0;
  for (const Parameter& p : parameters) total += p.value.size();
  std::vector<std::vector<Piece>> shards(static_cast<size_t>(ranks));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t size = parameters[i].value.size(), step = whole(i) ? size : kNormCut;
    for (int64_t begin = 0; begin < size; begin += step) {
      const int64_t end = std::min(begin + step, size);
      const int64_t middle = before + (begin + end) / 2;
      std::vector<Piece>& shard = shards[static_cast<size_t>(std::min<int64_t>(middle * ranks / total, ranks - 1))];
      if (!shard.empty() && shard.back().parameter == i)
        shard.back().end = end;
      else
        shard.push_back({i, begin, end});
    }
    before += size;
  }
  return shards;
}

Tensor part_of(const Tensor& tensor, const Piece& piece) {
  if (piece.begin == 0 && piece.end == tensor.size()) return tensor;
  return tensor.reshape({tensor.size()}).slice(piece.begin, piece.end);
}

}  // namespace saccade
