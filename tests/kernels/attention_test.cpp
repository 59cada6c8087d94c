#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/alibi.h"

#include "tests/kernels/plain_attention.h"

namespace saccade::test {

class AttentionTest : public QObject {
  Q_OBJECT

  static Op op(const ScoreOptions& options) {
    return [=](Tape& tape, const std::vector<Tensor>& x) {
      const Attention a = attention(tape, x[0], x[1], x[2], options, true);
      return std::vector<Tensor>{a.o, a.lse, a.entropy};
    };
  }

  static void add_options() {
    QTest::addColumn<double>("scale");
    QTest::addColumn<int>("window");
    QTest::addColumn<bool>("alibi");
    QTest::newRow("plain") << 0.5 << 0 << false;
    QTest::newRow("cold") << 4.0 << 0 << false;
    QTest::newRow("alibi") << 0.5 << 0 << true;
    QTest::newRow("window of one") << 0.5 << 1 << false;
    QTest::newRow("window") << 0.5 << 3 << false;
    QTest::newRow("window of a tile and one, alibi") << 0.5 << 65 << true;
    QTest::newRow("window beyond the sequence") << 0.5 << 5000 << false;
  }
  static ScoreOptions options() {
    const auto value = [](const char* name) { return *static_cast<double*>(QTest::qData(name, QMetaType::Double)); };
    return {value("scale"), *static_cast<int*>(QTest::qData("window", QMetaType::Int)),
            *static_cast<bool*>(QTest::qData("alibi", QMetaType::Bool))};
  }

 private Q_SLOTS:
  void small_data() { add_options(); }
  void small() {
    if (options().window != 1) CHECK_OP(op(options()), random_heads(2, 7, 2, 3));
  }

  /// A query that sees itself only: o = v, and the gradients of q and k are zero by mathematics.
  void one_key() {
    for (const auto& [length, window] : {std::pair{1, 0}, {1, 5}, {7, 1}, {131, 1}})
      for (DType dtype : {DType::f32, DType::f64}) {
        const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
        const std::vector<Array> x = random_heads(2, length, 2, 9);
        const OpRun run = run_op(op({0.5, window, true}), x, dtype, Device::cpu());
        COMPARE_CLOSE(run.values[0], x[2], tolerance, "o");
        COMPARE_CLOSE(run.values[5], random_array(x[2].shape, 1000), tolerance, "gradient of v");
        for (size_t i : {2u, 3u, 4u})
          for (double value : run.values[i].values) QVERIFY(std::abs(value) < tolerance);
      }
  }

  /// Sequences of several tiles: the last query of a tile, its neighbours and a prime.
  void tiles_data() { add_options(); }
  void tiles() {
    for (int64_t length : {63, 64, 65, 131, 257, 523}) {
      const std::vector<Array> x = random_heads(2, length, 3, 5);
      const PlainAttention expected = plain_attention(plain_scores(x[0], x[1], 2, options()), x[2]);
      const OpRun run = run_op(op(options()), x, DType::f64, Device::cpu());
      COMPARE_CLOSE(run.values[0], expected.o, 1e-12, "o");
      COMPARE_CLOSE(run.values[1], expected.lse, 1e-12, "lse");
      COMPARE_CLOSE(run.values[2], expected.entropy, 1e-11, "entropy");
    }
    const std::vector<Array> x = random_heads(1, 71, 1, 2);
    for (const QString& problem : {check_threads(op(options()), random_heads(1, 523, 2, 8)), check_plan(op(options()), x)})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
    if (options().window == 1) return;
    for (const QString& problem : {check_gradient(op(options()), x), check_float(op(options()), random_heads(2, 193, 2, 16))})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  /// Twelve heads, the count of the small models of arXiv:2505.18522: both kinds of slopes, and those that the released code prints.
  void slopes_of_alibi() {
    const std::vector<Array> x = random_heads(1, 70, 12, 3);
    for (const bool released : {false, true}) {
      const ScoreOptions score{0.5, 0, true, released};
      COMPARE_CLOSE(run_op(op(score), x, DType::f64, Device::cpu()).values[0], plain_attention(plain_scores(x[0], x[1], 1, score), x[2]).o,
                    1e-12, "o");
    }
    const auto slope = [](int64_t h, int64_t heads) {
      const AlibiSlope s = alibi_slope_of(h, heads, true);
      return std::exp2(-8.0 * static_cast<double>(s.numerator) / static_cast<double>(s.denominator));
    };
    QCOMPARE(slope(0, 12), 0.5);
    QCOMPARE(slope(7, 12), 0.00390625);
    QCOMPARE(slope(8, 12), std::sqrt(0.5));
    QCOMPARE(slope(11, 12), std::pow(2.0, -3.5));
    QCOMPARE(slope(2, 3), 0.25);  // of 3 heads: those of 2, and the first of 4
    QCOMPARE(slope(0, 1), 0.00390625);
  }

  /// Constant keys, and constant keys and queries: one table for all sequences, its gradient their sum.
  void shared_tables() {
    std::vector<Array> x = random_heads(3, 67, 2, 2);
    for (int tables : {1, 2}) {
      for (int i = 2 - tables; i < 2; ++i) x[static_cast<size_t>(i)] = random_array({1, 67, 2, 2}, 9);
      for (const ScoreOptions& score : {ScoreOptions{0.7, 0, false}, ScoreOptions{0.7, 5, true}}) {
        COMPARE_CLOSE(run_op(op(score), x, DType::f64, Device::cpu()).values[0],
                      plain_attention(plain_scores(x[0], x[1], 3, score), x[2]).o, 1e-12, "o");
        for (const QString& problem : {check_gradient(op(score), x), check_threads(op(score), x), check_plan(op(score), x)})
          QVERIFY2(problem.isEmpty(), qPrintable(problem));
      }
    }
  }

  /// One tensor as query, key and value.
  void same_tensor() {
    CHECK_OP(
        [](Tape& tape, const std::vector<Tensor>& x) {
          return std::vector<Tensor>{attention(tape, x[0], x[0], x[0], {0.5, 0, false}).o};
        },
        {random_array({2, 9, 2, 4}, 1)});
  }

  /// Gradients of some inputs only.
  void frozen_inputs() {
    const std::vector<Array> x = random_heads(1, 70, 1, 3);
    const OpRun all = run_op(op({}), x, DType::f64, Device::cpu());
    for (size_t only = 0; only < 3; ++only) {
      const Op with_one = [&](Tape& tape, const std::vector<Tensor>& one) {
        std::vector<Tensor> y(3);
        for (size_t i = 0; i < 3; ++i) {
          y[i] = tape.empty(x[i].shape, DType::f64);
          std::copy(x[i].values.begin(), x[i].values.end(), y[i].data<double>());
        }
        y[only] = one[0];
        return op({})(tape, y);
      };
      COMPARE_CLOSE(run_op(with_one, {x[only]}, DType::f64, Device::cpu()).values[3], all.values[3 + only], 1e-14, "gradient");
    }
  }

  /// Scores in the hundreds: nothing overflows, and the softmax is the maximum.
  void large_scores() {
    const std::vector<Array> x = random_heads(1, 130, 1, 16, 20);
    const PlainAttention expected = plain_attention(plain_scores(x[0], x[1], 1, {}), x[2]);
    const OpRun run = run_op(op({}), x, DType::f32, Device::cpu());
    COMPARE_CLOSE(run.values[0], expected.o, 1e-4, "o");
    COMPARE_CLOSE(run.values[2], expected.entropy, 1e-3, "entropy");
  }

  void entropy_of_equal_scores() {
    std::vector<Array> x = random_heads(1, 100, 1, 4);
    std::fill(x[0].values.begin(), x[0].values.end(), 0.0);
    const Array entropy = run_op(op({}), x, DType::f64, Device::cpu()).values[2];
    for (int t = 0; t < 100; ++t) QVERIFY(std::abs(entropy.values[static_cast<size_t>(t)] - std::log(t + 1.0)) < 1e-12);
  }

  void weights_data() { add_options(); }
  void weights() {
    const std::vector<Array> x = random_heads(2, 67, 2, 5);
    const Array expected = one_sequence(plain_attention(plain_scores(x[0], x[1], 2, options()), x[2]).weights, 1);
    Arena::set_poison(true);
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor q = to_tensor(x[0], DType::f64, arena), k = to_tensor(x[1], DType::f64, arena);
    COMPARE_CLOSE(to_array(attention_weights(tape, q, k, options(), 1)), expected, 1e-12, "weights");
    Arena::set_poison(false);
  }

  /// FLOPs of both products over the visible pairs, and five products backward.
  void cost() {
    const auto flops = [](const ScoreOptions& score) {
      return run_op(op(score), random_heads(2, 10, 3, 4), DType::f32, Device::plan()).cost.flops;
    };
    const double pairs = 10 * 11 / 2, windowed = 1 + 2 + 3 * 8;
    QCOMPARE(flops({1, 0, false}), (4.0 + 10.0) * 2 * 3 * 4 * pairs);
    QCOMPARE(flops({1, 3, false}), (4.0 + 10.0) * 2 * 3 * 4 * windowed);
  }

  /// Memory grows with T, not with T².
  void memory() {
    const auto peak = [](int64_t length) { return run_op(op({}), random_heads(1, length, 1, 4), DType::f32, Device::plan()).peak; };
    QVERIFY(peak(4096) <= 4 * peak(1024));
  }

  void errors() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const auto make = [&](const Shape& shape) { return tape.zeros(shape, DType::f32); };
    const Tensor x = make({2, 5, 2, 4});
    QVERIFY_THROWS_EXCEPTION(UsageError, attention(tape, x, make({2, 6, 2, 4}), x, {}));
    QVERIFY_THROWS_EXCEPTION(UsageError, attention(tape, make({2, 5, 8}), x, x, {}));
    QVERIFY_THROWS_EXCEPTION(UsageError, attention(tape, x, x, tape.zeros({2, 5, 2, 4}, DType::f64), {}));
    QVERIFY_THROWS_EXCEPTION(UsageError, attention(tape, x, x, x, {1, -1, false}));
    QVERIFY_THROWS_EXCEPTION(UsageError, attention_weights(tape, x, x, {}, 2));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AttentionTest)
#include "attention_test.moc"
