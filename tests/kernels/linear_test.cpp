#include "kernels/ops/linear/linear.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

class LinearTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void linear_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("in");
    QTest::addColumn<int>("out");
    QTest::newRow("one") << 1 << 1 << 1;
    QTest::newRow("primes") << 13 << 7 << 5;
    QTest::newRow("wide") << 3 << 17 << 2;
    QTest::newRow("tall") << 2 << 2 << 19;
  }
  void linear() {
    QFETCH(int, rows);
    QFETCH(int, in);
    QFETCH(int, out);
    const std::vector<Array> inputs{random_array({rows, in}, 1), random_array({out, in}, 2), random_array({out}, 3)};
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::linear(t, x[0], x[1], x[2])}; }, inputs);
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::linear(t, x[0], x[1])}; },
             {inputs[0], inputs[1]});
  }

  void residual() {
    const std::vector<Array> inputs{random_array({2, 5, 7}, 1), random_array({3, 7}, 2), random_array({2, 5, 3}, 3), random_array({3}, 4)};
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::linear(t, x[0], x[1], {}, x[2])}; },
             {inputs[0], inputs[1], inputs[2]});
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::linear(t, x[0], x[1], x[3], x[2])}; },
             inputs);
    // Onto the very tensor it reads.
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::linear(t, x[0], x[1], {}, x[0])}; },
             {random_array({4, 7}, 1), random_array({7, 7}, 2)});
  }

  void values() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = to_tensor({{1, 2, 2}, {1, 2, 3, 4}}, DType::f32, arena),
                 w = to_tensor({{3, 2}, {1, 0, 0, 1, 2, -1}}, DType::f32, arena);
    const Tensor b = to_tensor({{3}, {10, 20, 30}}, DType::f32, arena);
    COMPARE_CLOSE(to_array(saccade::linear(tape, x, w, b)), (Array{{1, 2, 3}, {11, 22, 30, 13, 24, 32}}), 1e-7, "y");
  }

  void larger_than_tiles() {
    const std::vector<Array> inputs{random_array({2, 401, 67}, 1), random_array({311, 67}, 2), random_array({311}, 3)};
    const Op op = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> { return {saccade::linear(t, x[0], x[1], x[2])}; };
    for (const QString& problem : {check_float(op, inputs), check_threads(op, inputs), check_plan(op, inputs)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void several() {
    const std::vector<Array> inputs{random_array({2, 5, 7}, 1), random_array({3, 7}, 2), random_array({4, 7}, 3), random_array({1, 7}, 4)};
    CHECK_OP([](Tape& t, const std::vector<Tensor>& x) { return linears(t, x[0], {x[1], x[2], x[3]}); }, inputs);
    const auto some_unused = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {linears(t, x[0], {x[1], x[2], x[3]})[1]};
    };
    const OpRun run = run_op(some_unused, inputs, DType::f32, Device::cpu());
    QCOMPARE(run.values.size(), 5u);
  }

  void shapes() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    const Tensor x = tape.empty({2, 8}, DType::f32), w = tape.empty({4, 9}, DType::f32);
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, saccade::linear(tape, x, w));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument,
                             saccade::linear(tape, x, tape.empty({4, 8}, DType::f32), {}, tape.empty({3, 4}, DType::f32)));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, linears(tape, x, {w}));
    try {
      saccade::linear(tape, x, w);
    } catch (const std::invalid_argument& e) {
      QCOMPARE(QString(e.what()), "[linear] x is [2, 8] f32, weight is [4, 9] f32; expected x [..., in], weight [out, in]");
    }
  }

  void cost() {
    Arena arena(Device::plan());
    Tape tape(arena, false);
    saccade::linear(tape, tape.empty({5, 8}, DType::f32), tape.empty({3, 8}, DType::f32));
    QCOMPARE(tape.cost().flops, 2.0 * 5 * 8 * 3);
    QCOMPARE(tape.cost().bytes, 4.0 * (5 * 8 + 3 * 8 + 5 * 3));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LinearTest)
#include "linear_test.moc"
