#include "kernels/ops/causal_conv/causal_conv.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

const RegisterGolden registration("conv1d", [](const GoldenCase& c, DType dtype, Arena& arena) {
  return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
    const Activation f = c.attributes.at("silu") == 1 ? Activation::silu : Activation::none;
    const Tensor bias = x.contains("bias") ? x.at("bias") : Tensor();
    return Tensors{{"y", causal_conv(tape, x.at("x"), x.at("weight"), bias, f)}};
  });
});

}  // namespace
}  // namespace saccade::test
