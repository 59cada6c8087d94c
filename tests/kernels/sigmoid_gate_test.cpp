#include "kernels/ops/sigmoid_gate/sigmoid_gate.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

class SigmoidGateTest : public QObject {
  Q_OBJECT

  static std::vector<Tensor> op(Tape& tape, const std::vector<Tensor>& x) { return {sigmoid_gate(tape, x[0])}; }

 private Q_SLOTS:
  void gradient() {
    for (int64_t n : {1, 37}) CHECK_OP(op, {random_array({n, 3}, 1)});
    QVERIFY(check_threads(op, {random_array({6000, 7}, 2)}).isEmpty());
  }

  void stays_exact_in_mixed_precision() {
    Arena arena(Device::plan(Engine::cuda));
    Tape tape(arena, true);
    Tensor x = tape.empty({2, 3}, DType::bf16);
    x.set_differentiable(true);
    QVERIFY(sigmoid_gate(tape, x).dtype() == DType::f32);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SigmoidGateTest)
#include "sigmoid_gate_test.moc"
