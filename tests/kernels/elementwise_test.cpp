#include "kernels/ops/elementwise/elementwise.h"

#include <cmath>

#include "tests/support/op_checks.h"

namespace saccade::test {

class ElementwiseTest : public QObject {
  Q_OBJECT

  static void functions() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"none", "gelu", "relu", "relu2", "silu", "sigmoid", "tanh"}) QTest::newRow(name) << name;
  }

  /// Away from 0, where relu has no derivative.
  static Array bent(const Shape& shape, uint64_t seed) {
    Array array = random_array(shape, seed, 2.0);
    for (double& x : array.values)
      if (std::abs(x) < 1e-2) x = 0.5;
    return array;
  }

 private Q_SLOTS:
  void add() {
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::add(t, x[0], x[1])}; },
             {random_array({3, 37}, 1), random_array({3, 37}, 2)});
  }
  void add_to_itself() {
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::add(t, x[0], x[0])}; },
             {random_array({5}, 1)});
  }
  /// The gradient of a sum is shared by both branches; one of them must not write into the other's.
  void residual() {
    CHECK_OP(
        [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
          const Tensor y = saccade::add(t, x[0], saccade::activate(t, x[0], Activation::gelu));
          return {saccade::add(t, y, saccade::activate(t, y, Activation::silu)), y};
        },
        {random_array({3, 7}, 1)});
  }

  void scaled() {
    const Op op = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const Tensor factor = t.empty({1}, x[0].dtype());
      if (!t.device().is_plan())
        dispatch(factor.dtype(), [&](auto zero) { *factor.data<decltype(zero)>() = static_cast<decltype(zero)>(-2.5); });
      return {saccade::add(t, x[0], saccade::scaled(t, x[0], factor))};
    };
    CHECK_OP(op, {random_array({1}, 1)});
    CHECK_OP(op, {random_array({3, 37}, 1)});
    QCOMPARE(run_op(op, {Array{{2}, {1, -4}}}, DType::f64, Device::cpu()).values[0].values, (std::vector<double>{-1.5, 6}));
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const auto refused = [&](const Tensor& factor) { saccade::scaled(tape, tape.empty({2}, DType::f32), factor); };
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, refused(tape.empty({2}, DType::f32)));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, refused(tape.empty({1}, DType::f64)));
  }

  void activate_data() { functions(); }
  void activate() {
    QFETCH(QString, name);
    const Activation f = parse_activation(name.toStdString());
    CHECK_OP([f](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::activate(t, x[0], f)}; }, {bent({1}, 1)});
    CHECK_OP([f](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::activate(t, x[0], f)}; },
             {bent({5, 37}, 2)});
  }
  void gated_data() { functions(); }
  void gated() {
    QFETCH(QString, name);
    const Activation f = parse_activation(name.toStdString());
    const Op op = [f](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::gated(t, x[0], x[1], f)}; };
    CHECK_OP(op, {bent({1}, 1), random_array({1}, 2)});
    CHECK_OP(op, {bent({5, 37}, 1), random_array({5, 37}, 2)});
    const std::vector<Array> long_inputs{bent({3, 16411}, 3), random_array({3, 16411}, 4)};
    for (const QString& problem : {check_float(op, long_inputs), check_threads(op, long_inputs)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }
  /// Only one side takes a gradient.
  void gated_one_sided() {
    Arena arena(Device::cpu());
    const Array g = random_array({37}, 1), u = random_array({37}, 2), d = random_array({37}, 3);
    for (int side : {0, 1}) {
      Tape tape(arena, true);
      Tensor x[] = {to_tensor(g, DType::f64, arena), to_tensor(u, DType::f64, arena)};
      x[side].set_differentiable(true);
      const Tensor grad = arena.allocate({37}, DType::f64);
      tape.bind_grad(x[side], grad);
      const Tensor y = saccade::gated(tape, x[0], x[1], Activation::relu2);
      tape.backward({{y, to_tensor(d, DType::f64, arena)}});
      Array expected{{37}, {}};
      for (size_t i = 0; i < 37; ++i) {
        const double positive = std::max(g.values[i], 0.0);
        expected.values.push_back(d.values[i] * (side ? positive * positive : 2 * positive * u.values[i]));
      }
      COMPARE_CLOSE(to_array(grad), expected, 1e-14, "gradient");
    }
  }

  void values() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = to_tensor({{3}, {-1, 0, 2}}, DType::f64, arena);
    const auto value = [&](Activation f) { return to_array(saccade::activate(tape, x, f)); };
    COMPARE_CLOSE(value(Activation::gelu), (Array{{3}, {-0.15865525393145707, 0, 1.9544997361036416}}), 1e-15, "gelu");
    COMPARE_CLOSE(value(Activation::silu), (Array{{3}, {-0.2689414213699951, 0, 1.7615941559557649}}), 1e-15, "silu");
    COMPARE_CLOSE(value(Activation::relu), (Array{{3}, {0, 0, 2}}), 0, "relu");
    COMPARE_CLOSE(value(Activation::relu2), (Array{{3}, {0, 0, 4}}), 0, "relu2");
    COMPARE_CLOSE(value(Activation::none), (Array{{3}, {-1, 0, 2}}), 0, "none");
  }

  void refused() {
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_activation("swish"));
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor a = tape.empty({4}, DType::f32), b = tape.empty({5}, DType::f32), c = tape.empty({4}, DType::f64);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, saccade::add(tape, a, b));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, saccade::add(tape, a, c));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, saccade::gated(tape, a, b, Activation::gelu));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, saccade::gated(tape, a, a, Activation::gelu));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ElementwiseTest)
#include "elementwise_test.moc"
