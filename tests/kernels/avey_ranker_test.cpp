#include <cmath>

#include "kernels/ops/avey/ranker.h"
#include "tests/support/op_checks.h"

namespace saccade::test {

using avey::RankerOptions;
using avey::RankerQuery;
using avey::WeightReference;

namespace {

/// MaxSim of sequence 0 by its definition.
std::vector<double> plain_maxsim(const Array& x, int64_t S, bool causal) {
  const int64_t T = x.shape[1], D = x.shape[2], N = (T + S - 1) / S;
  std::vector<double> scores(static_cast<size_t>(N * N), -INFINITY);
  const auto cosine = [&](int64_t a, int64_t b) {
    double dot = 0, aa = 0, bb = 0;
    for (int64_t d = 0; d < D; ++d) {
      const double u = x.values[static_cast<size_t>(a * D + d)], v = x.values[static_cast<size_t>(b * D + d)];
      dot += u * v, aa += u * u, bb += v * v;
    }
    return dot / ((std::sqrt(aa) + 1e-8) * (std::sqrt(bb) + 1e-8));
  };
  for (int64_t i = 0; i < N; ++i)
    for (int64_t p = 0; p < i; ++p) {
      const int64_t q = causal ? i - 1 : i;
      double sum = 0;
      for (int64_t a = q * S; a < std::min(T, (q + 1) * S); ++a) {
        double best = -INFINITY;
        for (int64_t b = p * S; b < (p + 1) * S; ++b) best = std::max(best, cosine(a, b));
        sum += best;
      }
      scores[static_cast<size_t>(i * N + p)] = sum;
    }
  return scores;
}

Op rank_op(const RankerOptions& options) {
  return [options](Tape& t, const std::vector<Tensor>& x) -> std::vector<Tensor> {
    const avey::Ranked r = avey::rank(t, x[0], options);
    return {r.weights, r.chosen, r.maxsim};
  };
}

}  // namespace

class AveyRankerTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void rank_data() {
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("split");
    QTest::addColumn<int>("top_k");
    QTest::addColumn<bool>("causal");
    QTest::addColumn<bool>("first");
    QTest::newRow("one token") << 1 << 4 << 2 << false << false;
    QTest::newRow("shorter than a split") << 3 << 4 << 2 << true << false;
    QTest::newRow("whole splits") << 20 << 4 << 2 << false << false;
    QTest::newRow("ragged") << 23 << 4 << 2 << false << true;
    QTest::newRow("ragged causal") << 23 << 4 << 3 << true << false;
    QTest::newRow("one a split") << 7 << 1 << 2 << false << false;
    QTest::newRow("all chosen") << 13 << 5 << 7 << false << true;
  }
  void rank() {
    QFETCH(int, tokens);
    QFETCH(int, split);
    QFETCH(int, top_k);
    QFETCH(bool, causal);
    QFETCH(bool, first);
    const RankerOptions options{split, top_k, true, first ? WeightReference::first : WeightReference::max,
                                causal ? RankerQuery::causal : RankerQuery::split};
    const Array x = random_array({2, tokens, 5}, 3);
    CHECK_OP(rank_op(options), {x});
    const OpRun run = run_op(rank_op(options), {x}, DType::f64, Device::cpu());
    const int64_t N = (tokens + split - 1) / split;
    Array first_sequence{{N, N}, {run.values[2].values.begin(), run.values[2].values.begin() + N * N}};
    COMPARE_CLOSE(first_sequence, (Array{{N, N}, plain_maxsim(x, split, causal)}), 1e-12, "maxsim");
  }

  void chosen_in_order_and_ties_to_the_smaller() {
    // Splits of one token; tokens 0, 2 and 3 point the same way, so their scores for split 4 are equal.
    const Array x{{1, 5, 2}, {1, 0, 0, 1, 1, 0, 1, 0, 1, 0}};
    const OpRun run = run_op(rank_op({1, 2, true, WeightReference::max, RankerQuery::split}), {x}, DType::f64, Device::cpu());
    const std::vector<double> chosen{-1, -1, 0, -1, 0, 1, 0, 2, 0, 2};
    QCOMPARE(run.values[1].values, chosen);
    QCOMPARE(run.values[0].values[8], 1.0 / (1.0 / std::pow(1 + 1e-8, 2) + 1e-8) / std::pow(1 + 1e-8, 2));
    QCOMPARE(run.values[0].values[0], 0.0);
  }

  void without_weighting() {
    RankerOptions options{3, 2, false, WeightReference::max, RankerQuery::split};
    Arena arena(Device::cpu());
    Tape tape(arena, true);
    Tensor x = to_tensor(random_array({1, 10, 4}, 1), DType::f64, arena);
    x.set_differentiable(true);
    const avey::Ranked r = avey::rank(tape, x, options);
    QVERIFY(!r.weights.differentiable());
    QCOMPARE(to_array(r.weights).values, (std::vector<double>{0, 0, 1, 0, 1, 1, 1, 1}));
  }

  void not_a_number() {
    Array x = random_array({1, 12, 4}, 1);
    x.values[5] = std::nan("");
    const OpRun run = run_op(rank_op({2, 2, true, WeightReference::max, RankerQuery::split}), {x}, DType::f32, Device::cpu());
    for (size_t i = 4; i < 12; ++i) QVERIFY(run.values[1].values[i] >= 0);
  }

  void larger_than_tiles() {
    const Array x = random_array({2, 601, 24}, 9);
    const RankerOptions options{32, 3, true, WeightReference::max, RankerQuery::split};
    for (const QString& problem :
         {check_float(rank_op(options), {x}), check_threads(rank_op(options), {x}), check_plan(rank_op(options), {x})})
      QVERIFY2(problem.isEmpty(), qPrintable(problem));
  }

  void words() {
    QVERIFY(avey::parse_ranker_query("causal") == RankerQuery::causal);
    QVERIFY_THROWS_EXCEPTION(UsageError, avey::parse_ranker_query("past"));
    QVERIFY_THROWS_EXCEPTION(UsageError, avey::parse_weight_reference("last"));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AveyRankerTest)
#include "avey_ranker_test.moc"
