#include "kernels/ops/avey/enricher.h"

#include "kernels/ops/avey/fuser.h"
#include "kernels/ops/linear/linear.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

class AveyEnricherTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void enrich_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("gated_rows");
    QTest::addColumn<int>("features");
    QTest::addColumn<int>("tail");
    QTest::addColumn<QString>("activation");
    QTest::newRow("one row") << 1 << 1 << 4 << 2 << "relu2";
    QTest::newRow("last layer") << 11 << 5 << 13 << 6 << "relu2";
    QTest::newRow("no head") << 7 << 7 << 8 << 8 << "relu2";
    QTest::newRow("none") << 7 << 7 << 9 << 4 << "none";
    QTest::newRow("relu") << 7 << 7 << 9 << 4 << "relu";
    QTest::newRow("gelu") << 7 << 3 << 9 << 4 << "gelu";
    QTest::newRow("silu") << 7 << 3 << 9 << 4 << "silu";
  }
  void enrich() {
    QFETCH(int, rows);
    QFETCH(int, gated_rows);
    QFETCH(int, features);
    QFETCH(int, tail);
    QFETCH(QString, activation);
    const Activation f = parse_activation(activation.toStdString());
    const auto op = [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const avey::Enriched z = avey::enrich(t, x[0], x[1], x[2], f, tail, gated_rows);
      return z.h ? std::vector<Tensor>{z.r, z.l, z.h} : std::vector<Tensor>{z.r, z.l};
    };
    const std::vector<Array> inputs{random_array({rows, 5}, 1), random_array({features, 5}, 2), random_array({features}, 3)};
    CHECK_OP(op, inputs);
    const auto plain = [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {activate(t, linear(t, x[0], x[1], x[2]), f)};
    };
    const OpRun ours = run_op(op, inputs, DType::f64, Device::cpu()), whole = run_op(plain, inputs, DType::f64, Device::cpu());
    const auto at = [&](int64_t row, int64_t column) { return whole.values[0].values[static_cast<size_t>(row * features + column)]; };
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < tail / 2; ++c)
        QVERIFY(std::abs(ours.values[0].values[static_cast<size_t>(row * tail / 2 + c)] - at(row, c)) < 1e-12);
      const int64_t gated = row - (rows - gated_rows);
      for (int64_t c = tail; gated >= 0 && c < features; ++c)
        QVERIFY(std::abs(ours.values[2].values[static_cast<size_t>(gated * (features - tail) + c - tail)] - at(row, c)) < 1e-12);
    }
  }

  void many_rows() {
    const auto op = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const avey::Enriched z = avey::enrich(t, x[0], x[1], x[2], Activation::relu2, 24, 1201);
      return {z.r, z.l, z.h};
    };
    const std::vector<Array> inputs{random_array({2311, 17}, 1), random_array({51, 17}, 2), random_array({51}, 3)};
    for (const QString& problem : {check_float(op, inputs), check_threads(op, inputs), check_plan(op, inputs)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void fuse_data() {
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("fused");
    QTest::addColumn<int>("head");
    QTest::addColumn<QString>("activation");
    QTest::newRow("one row") << 1 << 1 << 2 << "none";
    QTest::newRow("primes") << 7 << 7 << 3 << "none";
    QTest::newRow("last layer") << 11 << 4 << 3 << "none";
    QTest::newRow("no head") << 5 << 5 << 0 << "none";
    QTest::newRow("gelu") << 5 << 3 << 2 << "gelu";
    QTest::newRow("relu") << 5 << 3 << 2 << "relu";
    QTest::newRow("relu2") << 5 << 3 << 2 << "relu2";
    QTest::newRow("silu") << 5 << 3 << 2 << "silu";
  }
  void fuse() {
    QFETCH(int, rows);
    QFETCH(int, fused);
    QFETCH(int, head);
    QFETCH(QString, activation);
    const Activation f = parse_activation(activation.toStdString());
    const auto op = [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {avey::fuse(t, x[0], x[1], {{}, x[2], head ? x[5] : Tensor()}, x[3], x[4], f)};
    };
    std::vector<Array> inputs{random_array({rows, 3}, 1), random_array({fused, 4}, 2), random_array({fused, 4}, 3),
                              random_array({3, 4 + head}, 4), random_array({3}, 5)};
    if (head) inputs.push_back(random_array({fused, head}, 6));
    CHECK_OP(op, inputs);
  }

  void fuse_values() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const auto tensor = [&](const Array& a) { return to_tensor(a, DType::f64, arena); };
    const Tensor y =
        avey::fuse(tape, tensor({{2, 1}, {1, 10}}), tensor({{1, 2}, {2, 3}}), {{}, tensor({{1, 2}, {5, 7}}), tensor({{1, 1}, {4}})},
                   tensor({{1, 3}, {1, 2, 3}}), tensor({{1}, {100}}), Activation::none);
    QCOMPARE(to_array(y).values, (std::vector<double>{10 + 100 + 2 * 5 * 1 + 3 * 7 * 2 + 4 * 3}));  // the last row of h
  }

  void fuse_many_rows() {
    const auto op = [](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {avey::fuse(t, x[0], x[1], {{}, x[2], x[5]}, x[3], x[4], Activation::none)};
    };
    const std::vector<Array> inputs{random_array({2311, 17}, 1), random_array({2311, 12}, 2), random_array({2311, 12}, 3),
                                    random_array({17, 39}, 4),   random_array({17}, 5),       random_array({2311, 27}, 6)};
    for (const QString& problem : {check_float(op, inputs), check_threads(op, inputs), check_plan(op, inputs)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AveyEnricherTest)
#include "avey_enricher_test.moc"
