#include "tests/golden/prepared_heads.h"

#include <cmath>

#include "kernels/ops/heads/heads.h"

namespace saccade::test {

PreparedHeads prepare_golden_heads(Tape& tape, const GoldenCase& c, const std::map<std::string, Tensor>& inputs) {
  const std::string position = c.attributes.value("position", "none");
  HeadOptions heads{parse_qk_norm(c.attributes.value("qk_norm", "none"))};
  if (position == "rotary") heads.rotary_base = c.attributes.value("rotary_base", 10000.0);
  const auto gain = [&](const char* name) { return inputs.contains(name) ? inputs.at(name) : Tensor(); };
  const Tensor &q = inputs.at("q"), &k = inputs.at("k");
  const double temperature = c.attributes.value("temperature", 1.0);
  ScoreOptions score;
  score.scale = 1 / (temperature * (heads.norm == QkNorm::l2 ? 1.0 : std::sqrt(static_cast<double>(q.dim(3)))));
  score.window = c.attributes.value("window", int64_t{0});
  score.alibi = position == "alibi";
  return {prepare_heads(tape, q, gain("q_gain"), heads), prepare_heads(tape, k, gain("k_gain"), heads), score};
}

}  // namespace saccade::test
