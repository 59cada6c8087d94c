#include "kernels/ops/top1_element/top1_element.h"

#include <cmath>

#include "kernels/engine/transfer.h"
#include "tests/golden/prepared_heads.h"
#include "tests/support/golden_file.h"

namespace saccade::test {
namespace {

/// ln p of every key for every query, [B, H, T, T].
Array log_weights(Tape& tape, const PreparedHeads& heads) {
  const int64_t B = heads.q.dim(0), T = heads.q.dim(1), H = heads.q.dim(2);
  Array all{{B, H, T, T}, {}, false};
  for (int64_t b = 0; b < B; ++b)
    for (double w : to_doubles(attention_weights(tape, heads.q, heads.k, heads.score, b))) all.values.push_back(std::log(w));
  return all;
}

const RegisterGolden registration("top1_element", [](const GoldenCase& c, DType dtype, Arena& arena) {
  Array scores;
  GoldenResult result = run_golden(c, dtype, arena, [&](Tape& tape, const std::map<std::string, Tensor>& x) {
    const PreparedHeads heads = prepare_golden_heads(tape, c, x);
    if (tape.device().is_cpu()) scores = log_weights(tape, heads);
    const Top1Element a = top1_element(tape, heads.q, heads.k, x.at("v"), heads.score, true);
    return std::map<std::string, Tensor>{{"o", a.o}, {"selected", a.selected}, {"lse", a.lse}, {"entropy", a.entropy}};
  });
  result.scores["selected"] = scores;
  return result;
});

}  // namespace
}  // namespace saccade::test
