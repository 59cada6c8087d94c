#include "models/training/tree_sum.h"

#include <bit>
#include <cstdint>

#include "kernels/ops/tensor_sums/tensor_sums.h"

namespace saccade {

TreeSum::TreeSum(Arena& arena, const std::vector<Tensor>& like, int64_t most) {
  for (auto left = static_cast<uint64_t>(most - 1); left > 0; left >>= 1) {
    sums_.emplace_back();
    for (const Tensor& x : like) sums_.back().push_back(arena.allocate(x.shape(), x.dtype()));
  }
}

int64_t TreeSum::bytes() const {
  int64_t bytes = 0;
  for (const std::vector<Tensor>& level : sums_)
    for (const Tensor& x : level) bytes += x.bytes();
  return bytes;
}

void TreeSum::add(Tape& tape, const std::vector<Tensor>& leaf, int64_t i, int64_t count) {
  if (leaf.empty()) return;
  const auto number = static_cast<uint64_t>(i);
  const bool last = i == count - 1;
  const auto complete = static_cast<size_t>(std::countr_one(number));  // levels whose other half this leaf completes
  // Sums that stand: the set bits of its number. The last leaf takes all of them, another one those that it completes.
  const uint64_t taken = last ? number : (uint64_t{1} << complete) - 1;
  graphs_[{taken, last, leaf.front().id()}](tape.device(), [&] {
    for (size_t level = 0; level < sums_.size(); ++level)
      if (taken >> level & 1) add_all(tape, leaf, sums_[level]);
    if (!last) copy_all(tape, sums_[complete], leaf);
  });
}

}  // namespace saccade
