#include "kernels/ops/linear_split/linear_split.h"

#include "kernels/ops/linear/linear.h"
#include "kernels/ops/split/split.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

class LinearSplitTest : public QObject {
  Q_OBJECT

  static std::vector<Tensor> pieces(Tape& tape, const std::vector<Tensor>& x) { return linear_split(tape, x[0], x[1], {4, 1, 6}); }
  static std::vector<Tensor> cut(Tape& tape, const std::vector<Tensor>& x) { return split(tape, linear(tape, x[0], x[1]), {4, 1, 6}); }

 private Q_SLOTS:
  void everything_of_an_op() {
    for (int64_t rows : {1, 7}) CHECK_OP(pieces, {random_array({rows, 5}, 1), random_array({11, 5}, 2)});
  }

  void as_a_linear_cut_into_pieces() {
    const std::vector<Array> inputs{random_array({2, 130, 33}, 1), random_array({11, 33}, 2)};
    const OpRun a = run_op(pieces, inputs, DType::f64, Device::cpu()), b = run_op(cut, inputs, DType::f64, Device::cpu());
    QCOMPARE(a.values.size(), b.values.size());
    for (size_t i = 0; i < a.values.size(); ++i) COMPARE_CLOSE(a.values[i], b.values[i], 1e-13, QString("value %1").arg(i));
  }

  void pieces_that_nobody_used() {
    const Op one = [](Tape& tape, const std::vector<Tensor>& x) { return std::vector<Tensor>{pieces(tape, x)[2]}; };
    const QString problem = check_gradient(one, {random_array({3, 5}, 1), random_array({11, 5}, 2)});
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LinearSplitTest)
#include "linear_split_test.moc"
