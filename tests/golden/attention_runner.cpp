#include "kernels/ops/attention/attention.h"

#include "tests/golden/prepared_heads.h"
#include "tests/support/golden_file.h"

namespace saccade::test {
namespace {

const RegisterGolden registration("attention", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const std::map<std::string, Tensor>& x) {
    const PreparedHeads heads = prepare_golden_heads(tape, c, x);
    const Attention a = attention(tape, heads.q, heads.k, x.at("v"), heads.score, true);
    return std::map<std::string, Tensor>{{"o", a.o}, {"lse", a.lse}, {"entropy", a.entropy}};
  });
});

}  // namespace
}  // namespace saccade::test
