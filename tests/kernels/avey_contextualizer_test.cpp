#include "kernels/ops/avey/contextualizer.h"

#include <cmath>

#include "kernels/ops/avey/reads.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

using avey::ContextLayout;

namespace {

Op contextualize_op(const ContextLayout& layout, bool dynamic, bool own_only) {
  return [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
    return {avey::contextualize(t, x[0], x[1], layout, dynamic, own_only)};
  };
}

/// Y of one context with its padding written out: all C positions, by the formula.
std::vector<double> plain_context(const std::vector<double>& z, const Array& A, int64_t C, int64_t r, bool dynamic) {
  std::vector<double> y(z.size(), 0.0);
  const auto at = [&](int64_t t, int64_t c) { return z[static_cast<size_t>(t * r + c)]; };
  const auto dot = [&](int64_t t, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < r; ++c) sum += at(t, c) * at(j, c);
    return sum;
  };
  for (int64_t t = 0; t < C; ++t)
    for (int64_t j = 0; j <= t; ++j) {
      const double cosine = dynamic ? dot(t, j) / std::sqrt((dot(t, t) + 1e-8) * (dot(j, j) + 1e-8)) : 1;
      for (int64_t c = 0; c < r; ++c) y[static_cast<size_t>(t * r + c)] += A.values[static_cast<size_t>(t * C + j)] * cosine * at(j, c);
    }
  return y;
}

}  // namespace

class AveyContextualizerTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void contextualize_data() {
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("split");
    QTest::addColumn<int>("top_k");
    QTest::addColumn<bool>("padding");
    QTest::addColumn<bool>("dynamic");
    QTest::addColumn<bool>("own_only");
    QTest::newRow("one token") << 1 << 2 << 1 << true << true << false;
    QTest::newRow("shorter than a split") << 3 << 4 << 1 << true << true << true;
    QTest::newRow("whole splits") << 8 << 2 << 2 << true << true << false;
    QTest::newRow("ragged") << 11 << 3 << 2 << true << true << false;
    QTest::newRow("ragged, last layer") << 11 << 3 << 2 << true << true << true;
    QTest::newRow("ragged, masked") << 11 << 3 << 2 << false << true << false;
    QTest::newRow("masked, last layer") << 11 << 3 << 2 << false << true << true;
    QTest::newRow("static") << 11 << 3 << 2 << true << false << false;
    QTest::newRow("static, last layer") << 11 << 3 << 2 << true << false << true;
    QTest::newRow("one context") << 9 << 9 << 0 << false << true << false;
    QTest::newRow("part of one context") << 7 << 9 << 0 << false << true << true;
  }
  void contextualize() {
    QFETCH(int, tokens);
    QFETCH(int, split);
    QFETCH(int, top_k);
    QFETCH(bool, padding);
    QFETCH(bool, dynamic);
    QFETCH(bool, own_only);
    const ContextLayout layout{2, tokens, split, top_k, padding};
    const int64_t C = layout.context_width();
    const std::vector<Array> inputs{random_array({layout.rows(), 3}, 1), random_array({C, C}, 2)};
    CHECK_OP(contextualize_op(layout, dynamic, own_only), inputs);

    const OpRun run = run_op(contextualize_op(layout, dynamic, own_only), inputs, DType::f64, Device::cpu());
    for (int64_t context = 0; context < 2 * layout.splits(); ++context) {
      const avey::ContextRows rows = context_rows(layout, context / layout.splits(), context % layout.splits());
      std::vector<double> z(static_cast<size_t>(C * 3), 0.0);
      int64_t position = rows.first_position, own_position = 0;
      for (const auto& piece : rows.runs) {
        own_position = position;
        for (int64_t i = 0; i < piece.count * 3; ++i)
          z[static_cast<size_t>(position * 3 + i)] = inputs[0].values[static_cast<size_t>(piece.row * 3 + i)];
        position += piece.count;
      }
      const std::vector<double> y = plain_context(z, inputs[1], C, 3, dynamic);
      const int64_t first = rows.runs[2].row - (own_only ? layout.first_own_row() : 0);
      for (int64_t i = 0; i < rows.runs[2].count * 3; ++i)
        QVERIFY(std::abs(run.values[0].values[static_cast<size_t>(first * 3 + i)] - y[static_cast<size_t>(own_position * 3 + i)]) < 1e-12);
    }
  }

  void larger_than_blocks_data() {
    QTest::addColumn<bool>("dynamic");
    QTest::newRow("dynamic") << true;
    QTest::newRow("static") << false;
  }
  void larger_than_blocks() {
    QFETCH(bool, dynamic);
    const ContextLayout layout{3, 401, 67, 2, true};  // 67: blocks of 64 and 3; more contexts than groups
    const int64_t C = layout.context_width();
    const std::vector<Array> inputs{random_array({layout.rows(), 13}, 1), random_array({C, C}, 2)};
    for (bool own_only : {false, true}) {
      const Op op = contextualize_op(layout, dynamic, own_only);
      for (const QString& problem : {check_float(op, inputs), check_threads(op, inputs), check_plan(op, inputs)})
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }
  }

  void no_gradient_above_the_diagonal() {
    const ContextLayout layout{1, 8, 2, 1, true};
    const OpRun run = run_op(contextualize_op(layout, true, false), {random_array({layout.rows(), 3}, 1), random_array({4, 4}, 2)},
                             DType::f64, Device::cpu());
    const std::vector<double>& dA = run.values[2].values;
    for (size_t t = 0; t < 4; ++t)
      for (size_t j = 0; j < 4; ++j) QCOMPARE(dA[t * 4 + j] == 0.0, j > t);
  }

  /// Reads by the definition: shares of sources sum to one, padding has none, chosen rows count by their split's weight.
  void reads() {
    const ContextLayout layout{2, 11, 3, 2, true};
    const int64_t C = layout.context_width(), N = layout.splits();
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Array x = random_array({2, 11, 4}, 5);
    const avey::Ranked ranked =
        avey::rank(tape, to_tensor(x, DType::f64, arena), {3, 2, true, avey::WeightReference::max, avey::RankerQuery::split});
    const Tensor z = to_tensor(random_array({layout.rows(), 3}, 1), DType::f64, arena),
                 A = to_tensor(random_array({C, C}, 2), DType::f64, arena);
    const avey::ContextWeights weights = [&](int64_t b, int64_t i) { return avey::contextualizer_weights(tape, z, A, layout, true, b, i); };
    const Array map = to_array(avey::read_map(tape, weights, ranked, layout, 1, 1)),
                entropy = to_array(avey::read_entropy(tape, weights, ranked, layout, 1));
    const Array chosen = to_array(ranked.chosen), split_weights = to_array(ranked.weights);
    for (int64_t t = 0; t < 11; ++t) {
      double sum = 0, h = 0;
      for (int64_t j = 0; j < 11; ++j) {
        const double share = map.values[static_cast<size_t>(t * 11 + j)];
        QVERIFY(j <= t || share == 0);
        sum += share;
        if (share > 0) h -= share * std::log(share);
      }
      QVERIFY(std::abs(sum - 1) < 1e-12);
      QVERIFY(std::abs(entropy.values[static_cast<size_t>(11 + t)] - h) < 1e-12);
    }
    // Token 10 of split 3: ratio of what it reads from the first row of a chosen split to what it reads from itself.
    const int64_t i = 3, slot = (N + i) * 2, p = static_cast<int64_t>(chosen.values[static_cast<size_t>(slot)]);
    const Array raw = to_array(weights(1, i));
    const double expected =
        raw.values[static_cast<size_t>(1 * raw.shape[2])] * split_weights.values[static_cast<size_t>(slot)] / raw.values.back();
    QVERIFY(std::abs(map.values[static_cast<size_t>(10 * 11 + p * 3)] / map.values.back() - expected) < 1e-12);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AveyContextualizerTest)
#include "avey_contextualizer_test.moc"
