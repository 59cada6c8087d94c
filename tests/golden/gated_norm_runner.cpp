#include "kernels/ops/gated_norm/gated_norm.h"

#include "kernels/ops/l2_norm/l2_norm.h"
#include "kernels/ops/norm/norm.h"
#include "tests/golden/stateful_case.h"

namespace saccade::test {
namespace {

using Norm = std::function<Tensor(Tape&, const Tensors&, double eps, const GoldenCase&)>;

GoldenRunner runner(const Norm& norm) {
  return [norm](const GoldenCase& c, DType dtype, Arena& arena) {
    return run_golden(c, dtype, arena, [&](Tape& tape, const Tensors& x) {
      return Tensors{{"y", norm(tape, x, c.attributes.at("eps"), c)}};
    });
  };
}

const RegisterGolden rms("norms/rms_norm", runner([](Tape& tape, const Tensors& x, double eps, const GoldenCase&) {
                           return rms_norm(tape, x.at("x"), x.at("weight"), eps);
                         }));
const RegisterGolden gate_first("norms/rms_norm_gate_first", runner([](Tape& tape, const Tensors& x, double eps, const GoldenCase& c) {
                                  return rms_norm_after_gate(tape, x.at("x"), x.at("z"), x.at("weight"), c.attributes.at("groups"), eps);
                                }));
const RegisterGolden gate_last("norms/rms_norm_gate_last", runner([](Tape& tape, const Tensors& x, double eps, const GoldenCase&) {
                                 return rms_norm_before_gate(tape, x.at("x"), x.at("g"), x.at("weight"), eps);
                               }));
const RegisterGolden l2("norms/l2_sum_eps",
                        runner([](Tape& tape, const Tensors& x, double eps, const GoldenCase&) { return l2_norm(tape, x.at("x"), eps); }));

}  // namespace
}  // namespace saccade::test
