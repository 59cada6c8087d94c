#include "kernels/ops/avey/contexts.h"

#include "tests/support/op_checks.h"

namespace saccade::test {

using avey::ContextLayout;

namespace {

/// x [B, T, D], weights [B, N, k], chosen i32 [B, N, k] → rows.
Op contexts_op(int64_t split, int64_t top_k, bool padding) {
  return [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
    const ContextLayout layout{x[0].dim(0), x[0].dim(1), split, top_k, padding};
    return {avey::contexts(t, x[0], top_k ? avey::Ranked{x[2], x[1], {}} : avey::Ranked{}, layout)};
  };
}

Array chosen_splits(int64_t B, int64_t N, int64_t k) {
  Array chosen{{B, N, k}, {}, true};
  for (int64_t b = 0; b < B; ++b)
    for (int64_t i = 0; i < N; ++i)
      for (int64_t s = 0; s < k; ++s)
        chosen.values.push_back(s < std::min(i, k) ? static_cast<double>(b + i <= k ? s : i - std::min(i, k) + s) : -1);
  return chosen;
}

}  // namespace

class AveyContextsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void contexts_data() {
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("split");
    QTest::addColumn<int>("top_k");
    QTest::addColumn<bool>("padding");
    QTest::newRow("one token") << 1 << 4 << 2 << true;
    QTest::newRow("shorter than a split") << 3 << 4 << 1 << false;
    QTest::newRow("whole splits") << 12 << 3 << 2 << true;
    QTest::newRow("ragged") << 17 << 3 << 2 << true;
    QTest::newRow("ragged, masked") << 17 << 3 << 2 << false;
    QTest::newRow("no earlier splits") << 5 << 5 << 0 << false;
  }
  void contexts() {
    QFETCH(int, tokens);
    QFETCH(int, split);
    QFETCH(int, top_k);
    QFETCH(bool, padding);
    const int64_t N = (tokens + split - 1) / split;
    std::vector<Array> inputs{random_array({2, tokens, 3}, 1)};
    if (top_k) inputs.insert(inputs.end(), {random_array({2, N, top_k}, 2), chosen_splits(2, N, top_k)});
    CHECK_OP(contexts_op(split, top_k, padding), inputs);
  }

  void values() {
    const Array x{{1, 5, 1}, {1, 2, 3, 4, 5}}, weights{{1, 3, 1}, {0, 0.5, 2}}, chosen{{1, 3, 1}, {-1, 0, 0}, true};
    const OpRun run = run_op(contexts_op(2, 1, true), {x, weights, chosen}, DType::f64, Device::cpu());
    const std::vector<double> rows{0, 0, 0.5, 1, 2, 4, 1, 2, 3, 4, 5};  // padding, chosen of 1 and 2, own
    QCOMPARE(run.values[0].values, rows);
  }

  void layout() {
    const ContextLayout l{2, 17, 3, 2, true};
    QCOMPARE(l.splits(), 6);
    QCOMPARE(l.pad_rows(), 6);
    QCOMPARE(l.chosen_rows(), 3 * (0 + 1 + 2 + 2 + 2 + 2));
    QCOMPARE(l.rows(), 6 + 2 * 27 + 34);
    QCOMPARE(l.chosen_row(1, 2) - l.chosen_row(1, 0), 3);
    QCOMPARE(l.own_count(5), 2);
    const avey::ContextRows rows = context_rows(l, 1, 1);
    QCOMPARE(rows.runs[0].count, 3);
    QCOMPARE(rows.runs[1].row, 6 + 27);
    QCOMPARE(rows.runs[2].row, 6 + 54 + 17 + 3);
    double pairs = 0;  // one by one
    for (int b = 0; b < 2; ++b)
      for (int i = 0; i < 6; ++i) {
        const avey::ContextRows c = context_rows(l, b, i);
        for (int64_t t = c.size() - c.runs[2].count; t < c.size(); ++t) pairs += static_cast<double>(t + 1);
      }
    QCOMPARE(l.causal_pairs(true), pairs);
  }

  void rectangles_data() {
    QTest::addColumn<int>("tokens");
    QTest::addColumn<bool>("padding");
    QTest::addColumn<bool>("own_only");
    for (bool padding : {false, true})
      for (bool own_only : {false, true})
        for (int tokens : {1, 12, 17}) QTest::addRow("%d %d %d", tokens, padding, own_only) << tokens << padding << own_only;
  }
  void rectangles() {
    QFETCH(int, tokens);
    QFETCH(bool, padding);
    QFETCH(bool, own_only);
    const ContextLayout layout{2, tokens, 3, 2, padding};
    const Op op = [=](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
      const Tensor y = avey::to_rectangles(t, x[0], layout);
      return {y, avey::from_rectangles(t, y, layout, own_only)};
    };
    const Array rows = random_array({layout.rows(), 4}, 1);
    const QString gradients = check_gradient(op, {rows}), threads = check_threads(op, {rows});
    QVERIFY2(gradients.isEmpty(), qPrintable(gradients));
    QVERIFY2(threads.isEmpty(), qPrintable(threads));
    const OpRun run = run_op(op, {rows}, DType::f64, Device::cpu());
    const size_t from = static_cast<size_t>(own_only ? layout.first_own_row() * 4 : 0);
    QCOMPARE(run.values[1].values, std::vector<double>(rows.values.begin() + static_cast<std::ptrdiff_t>(from), rows.values.end()));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AveyContextsTest)
#include "avey_contexts_test.moc"
