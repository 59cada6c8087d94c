#include "kernels/ops/norm/norm.h"

#include <cmath>

#include "tests/support/op_checks.h"

namespace saccade::test {

class NormTest : public QObject {
  Q_OBJECT

  static std::vector<Array> inputs(int rows, int width) {
    return {random_array({rows, width}, 1), random_array({width}, 2), random_array({width}, 3)};
  }
  static std::vector<Tensor> rms(Tape& t, const std::vector<Tensor>& x) { return {rms_norm(t, x[0], x[1], 1e-5)}; }
  static std::vector<Tensor> layer(Tape& t, const std::vector<Tensor>& x) { return {layer_norm(t, x[0], x[1], x[2], 1e-5)}; }

 private Q_SLOTS:
  void norms_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("width");
    QTest::newRow("primes") << 7 << 13;
    QTest::newRow("more rows than a block") << 37 << 5;
    QTest::newRow("wide") << 2 << 67;
  }
  void norms() {
    QFETCH(int, rows);
    QFETCH(int, width);
    const std::vector<Array> all = inputs(rows, width);
    CHECK_OP(rms, {all[0], all[1]});
    CHECK_OP(layer, all);
  }
  /// A single element: the centred norm is constant, the other one is x / |x|.
  void width_one() {
    const std::vector<Array> all = inputs(5, 1);
    for (const QString& problem : {check_plan(rms, {all[0], all[1]}), check_threads(rms, {all[0], all[1]}), check_threads(layer, all)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    COMPARE_CLOSE(run_op(layer, all, DType::f64, Device::cpu()).values[0], (Array{{5, 1}, std::vector<double>(5, all[2].values[0])}), 1e-12,
                  "y");
  }
  void many_rows() {
    const std::vector<Array> all = inputs(4099, 17);
    for (const QString& problem :
         {check_float(rms, {all[0], all[1]}), check_threads(rms, {all[0], all[1]}), check_float(layer, all), check_threads(layer, all)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }
  /// A large common offset must not spoil the variance.
  void offset_in_float() {
    std::vector<Array> all = inputs(3, 64);
    for (double& x : all[0].values) x = 100 + std::round(x * 64) / 64;
    const QString problem = difference(run_op(layer, all, DType::f32, Device::cpu()).values[0],
                                       run_op(layer, all, DType::f64, Device::cpu()).values[0], 2e-5, "y");
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void values() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = to_tensor({{1, 2}, {3, 4}}, DType::f64, arena), gain = to_tensor({{2}, {1, 10}}, DType::f64, arena),
                 bias = to_tensor({{2}, {5, 6}}, DType::f64, arena);
    const double r = std::sqrt(12.5 + 1e-3), s = std::sqrt(0.25 + 1e-3);
    COMPARE_CLOSE(to_array(rms_norm(tape, x, gain, 1e-3)), (Array{{1, 2}, {3 / r, 40 / r}}), 1e-15, "rms");
    COMPARE_CLOSE(to_array(layer_norm(tape, x, gain, bias, 1e-3)), (Array{{1, 2}, {5 - 0.5 / s, 6 + 5 / s}}), 1e-15, "layer");
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 8}, DType::f32), g = tape.empty({9}, DType::f32), ok = tape.empty({8}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, rms_norm(tape, x, g, 1e-5));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, layer_norm(tape, x, ok, g, 1e-5));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, layer_norm(tape, x, ok, {}, 1e-5));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::NormTest)
#include "norm_test.moc"
