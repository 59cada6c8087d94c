#include "kernels/ops/group_norm/group_norm.h"

#include <cmath>

#include "kernels/ops/norm/norm.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

class GroupNormTest : public QObject {
  Q_OBJECT

  static Op group(int64_t groups) {
    return [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {group_norm(t, x[0], x[1], x[2], groups, 1e-3)}; };
  }
  static Op unit(double floor) {
    return [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {unit_norm(t, x[0], x.size() > 1 ? x[1] : Tensor(), floor)};
    };
  }
  static std::vector<Array> inputs(int64_t rows, int64_t width) {
    return {random_array({rows, width}, 1), random_array({width}, 2), random_array({width}, 3)};
  }

 private Q_SLOTS:
  void groups() {
    CHECK_OP(group(3), inputs(5, 12));
    CHECK_OP(group(1), inputs(1, 7));
    const std::vector<Array> many = inputs(131, 38);
    for (const QString& problem : {check_float(group(2), many), check_threads(group(2), many)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void one_group_is_layer_norm() {
    const Op layer = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {layer_norm(t, x[0], x[1], x[2], 1e-3)}; };
    const OpRun a = run_op(group(1), inputs(9, 20), DType::f64, Device::cpu()), b = run_op(layer, inputs(9, 20), DType::f64, Device::cpu());
    for (size_t i = 0; i < a.values.size(); ++i) COMPARE_CLOSE(a.values[i], b.values[i], 1e-13, QString::number(i));
  }

  void units() {
    CHECK_OP(unit(1e-12), {random_array({2, 3, 2, 5}, 1), random_array({2, 5}, 2)});
    CHECK_OP(unit(1e-12), {random_array({7, 5}, 1)});
    CHECK_OP(unit(100), {random_array({7, 5}, 1)});  // below the floor it only divides
    const std::vector<Array> many{random_array({2, 67, 3, 20}, 1), random_array({3, 20}, 2)};
    for (const QString& problem : {check_float(unit(1e-12), many), check_threads(unit(1e-12), many)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void values() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = to_tensor({{1, 4}, {3, 4, 0, 0}}, DType::f64, arena), scale = to_tensor({{2, 2}, {1, 0, 5, 5}}, DType::f64, arena);
    COMPARE_CLOSE(to_array(unit_norm(tape, x, {}, 1e-12)), (Array{{1, 4}, {0.6, 0.8, 0, 0}}), 1e-15, "unit");
    COMPARE_CLOSE(to_array(unit_norm(tape, x.reshape({2, 2}), scale, 1e-12)), (Array{{2, 2}, {1, 0, 0, 0}}), 1e-15, "scaled");
    const Tensor gain = to_tensor({{4}, {1, 1, 2, 2}}, DType::f64, arena), bias = to_tensor({{4}, {0, 0, 1, 3}}, DType::f64, arena);
    const double z = 0.5 / std::sqrt(0.25 + 1e-3);
    COMPARE_CLOSE(to_array(group_norm(tape, x, gain, bias, 2, 1e-3)), (Array{{1, 4}, {-z, z, 1, 3}}), 1e-15, "group");
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 8}, DType::f32), g = tape.empty({8}, DType::f32), wrong = tape.empty({9}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, group_norm(tape, x, wrong, wrong, 1, 1e-5));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, group_norm(tape, x, g, g, 3, 1e-5));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, unit_norm(tape, x, wrong, 1e-12));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GroupNormTest)
#include "group_norm_test.moc"
