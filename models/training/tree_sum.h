#pragma once
#include <map>
#include <vector>

#include "kernels/engine/captured_graph.h"
#include "kernels/engine/tape.h"

namespace saccade {

/// Sums lists of tensors by a fixed binary tree over their number: leaves 2i and 2i + 1 are added first, then those sums by two, and so on;
/// where the number is no power of two, what is left over is added from the right, ((0 1) (2 3)) (4 5). So leaves 0 … 2^k − 1, 2^k … may be
/// summed in different places, and their sums by another tree, with the same bytes. Takes memory for bit_width(most − 1) lists.
class TreeSum {
 public:
  /// For at most so many leaves, each a list of tensors like these.
  TreeSum(Arena& arena, const std::vector<Tensor>& like, int64_t most);

  /// Leaf number i of `count`, from 0 on and one after another. Its tensors are written to; those of the last leaf hold the sum then.
  void add(Tape& tape, const std::vector<Tensor>& leaf, int64_t i, int64_t count);

  int64_t bytes() const;  ///< of its memory

 private:
  std::vector<std::vector<Tensor>> sums_;  ///< by level: of 2^level leaves
  /// By what is done: the leaf's number as far as it decides that, and the leaf's place, for leaves do not lie in one.
  std::map<std::vector<uint64_t>, cuda::CapturedGraph> graphs_;
};

}  // namespace saccade
