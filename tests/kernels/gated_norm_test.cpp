#include "kernels/ops/gated_norm/gated_norm.h"

#include "kernels/ops/l2_norm/l2_norm.h"
#include "kernels/ops/split/split.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

class GatedNormTest : public QObject {
  Q_OBJECT

  static std::vector<Array> inputs(int64_t rows, int64_t width) {
    return {random_array({rows, width}, 1), random_array({rows, width}, 2), random_array({width}, 3)};
  }

 private Q_SLOTS:
  void gate_first() {
    for (int64_t groups : {1, 3}) {
      const Op op = [=](Tape& tape, const std::vector<Tensor>& x) {
        return std::vector<Tensor>{rms_norm_after_gate(tape, x[0], x[1], x[2], groups, 1e-5)};
      };
      for (int64_t rows : {1, 7}) CHECK_OP(op, inputs(rows, 15));
      CHECK_OP(op, inputs(37, 12));  // not 6: two channels can nearly vanish together, where differences are poor
      QVERIFY(check_threads(op, inputs(3000, 39)).isEmpty());
    }
  }

  void gate_last() {
    const Op op = [](Tape& tape, const std::vector<Tensor>& x) {
      return std::vector<Tensor>{rms_norm_before_gate(tape, x[0], x[1], x[2], 1e-6)};
    };
    for (int64_t rows : {1, 7}) CHECK_OP(op, inputs(rows, 15));
    CHECK_OP(op, inputs(37, 6));
    QVERIFY(check_threads(op, inputs(3000, 35)).isEmpty());
  }

  void unit_vectors() {
    for (int64_t rows : {1, 41})
      CHECK_OP([](Tape& tape, const std::vector<Tensor>& x) { return std::vector<Tensor>{l2_norm(tape, x[0], 1e-6)}; },
               {random_array({rows, 7}, 4)});
  }

  void split_pieces() {
    const auto op = [](Tape& tape, const std::vector<Tensor>& x) { return split(tape, x[0], {3, 1, 7}); };
    for (const QString& problem : {check_gradient(op, {random_array({2, 5, 11}, 5)}), check_threads(op, {random_array({300, 11}, 5)})})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    const Op one = [](Tape& tape, const std::vector<Tensor>& x) { return std::vector<Tensor>{split(tape, x[0], {3, 8})[1]}; };
    const QString problem = check_gradient(one, {random_array({4, 11}, 6)});  // the other piece has no gradient
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
    const Array x = random_array({2, 11}, 7), y = run_op(one, {x}, DType::f64, Device::cpu()).values[0];
    for (size_t i = 0; i < 8; ++i) QCOMPARE(y.values[8 + i], x.values[14 + i]);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GatedNormTest)
#include "gated_norm_test.moc"
