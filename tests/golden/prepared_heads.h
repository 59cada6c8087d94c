#pragma once
#include "kernels/ops/attention/attention.h"
#include "tests/support/golden_file.h"

namespace saccade::test {

/// Queries and keys of a golden case after its norm and positions, and its score.
struct PreparedHeads {
  Tensor q, k;
  ScoreOptions score;
};
PreparedHeads prepare_golden_heads(Tape& tape, const GoldenCase& c, const std::map<std::string, Tensor>& inputs);

}  // namespace saccade::test
