#include "kernels/ops/attention/attention.h"
#include "kernels/ops/heads/heads.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

/// A token sees left + 1 keys, its own included.
const RegisterGolden registration("sliding_window_attention", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    HeadOptions heads;
    heads.rotary_base = c.attributes.at("rope") == 1 ? c.attributes.at("rope_base").get<double>() : 0;
    const auto turned = [&](const char* name) { return heads.rotary_base > 0 ? prepare_heads(tape, x.at(name), {}, heads) : x.at(name); };
    ScoreOptions score;
    score.scale = c.attributes.at("scale");
    score.window = c.attributes.at("left").get<int64_t>() + 1;
    return Tensors{{"y", attention(tape, turned("q"), turned("k"), x.at("v"), score).o}};
  });
});

}  // namespace
}  // namespace saccade::test
