#include "analysis/figures/reads.h"

#include <QtTest>
#include <cmath>

#include "kernels/engine/error.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

class ReadsTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void summarizesWeights() {
    const Reads r = reads_of(with_weights({0.5F, 0.25F, 0, 0.25F}), 0, 0, 3);
    QCOMPARE(r.weights, (std::vector<double>{0.5, 0.25, 0, 0.25}));
    const double entropy = 0.5 * std::log(2) + 0.5 * std::log(4);
    QVERIFY(std::abs(r.entropy - entropy) < 1e-12);
    QVERIFY(std::abs(r.entropy_normalized - entropy / std::log(4)) < 1e-12);
    QCOMPARE(r.median_distance, 2.0);  // 0.25 at distance 0, 0.25 at 2
    QCOMPARE(r.distance_90, 3.0);
    QCOMPARE(r.outside_256, 0.0);
    QVERIFY(r.candidate_scores.empty() && r.chosen_positions.empty() && std::isnan(r.margin) && std::isnan(r.captured_mass));
  }

  void signedWeightsCountByMagnitude() {
    const Reads r = reads_of(with_weights({-3, 1}), 0, 0, 1);
    QCOMPARE(r.weights, (std::vector<double>{-3, 1}));
    QVERIFY(std::abs(r.entropy - (0.75 * std::log(4.0 / 3) + 0.25 * std::log(4))) < 1e-12);
    QCOMPARE(r.median_distance, 1.0);
  }

  void uniformAttentionHasEntropyOne() {
    const Reads r = reads_of(with_weights(std::vector<float>(500, 0.002F)), 0, 0, 499);
    QVERIFY(std::abs(r.entropy_normalized - 1) < 1e-6);
    QVERIFY(std::abs(r.outside_256 - 244.0 / 500) < 1e-6);  // 256 positions are near, the query's own among them
    QCOMPARE(r.median_distance, 249.0);
    QCOMPARE(r.distance_90, 449.0);
  }

  void whatIsUndefinedIsNaN() {
    const Reads first = reads_of(with_weights({1}), 0, 0, 0);
    QCOMPARE(first.entropy, 0.0);
    QVERIFY(std::isnan(first.entropy_normalized));
    QCOMPARE(first.median_distance, 0.0);
    const Reads none = reads_of(with_weights({0, 0, 0}), 0, 0, 2);
    QVERIFY(std::isnan(none.entropy) && std::isnan(none.median_distance) && std::isnan(none.outside_256));
  }

  void element() {
    const FixtureOptions o{.mixer = "top1_element"};
    const Capture capture = fixture_capture(o, 200, 0, "prose");
    const Reads r = reads_of(capture, 1, 2, 50);
    QCOMPARE(r.chosen_positions.size(), size_t{1});
    QVERIFY(r.weights[static_cast<size_t>(r.chosen_positions[0])] > 0.99);
    QVERIFY(std::abs(r.entropy) < 1e-6);
    QCOMPARE(r.candidate_size, int64_t{0});
    QVERIFY(r.candidate_scores.empty());
  }

  void chunk() {
    const FixtureOptions o{.mixer = "top1_chunk"};
    const Capture capture = fixture_capture(o, 200, 0, "prose");
    const Reads r = reads_of(capture, 2, 1, 70);  // chunk 4: candidates 0 … 3
    QCOMPARE(r.candidate_size, int64_t{16});
    QCOMPARE(r.candidate_scores.size(), size_t{6});
    for (size_t c = 0; c < 6; ++c) QCOMPARE(std::isnan(r.candidate_scores[c]), c >= 4);
    QCOMPARE(r.chosen_candidates.size(), size_t{1});
    const auto chosen = static_cast<size_t>(r.chosen_candidates[0]);
    std::vector<double> others;
    for (size_t c = 0; c < 4; ++c) {
      QVERIFY(r.candidate_scores[c] <= r.candidate_scores[chosen]);
      if (c != chosen) others.push_back(r.candidate_scores[c]);
    }
    QCOMPARE(r.margin, r.candidate_scores[chosen] - *std::max_element(others.begin(), others.end()));
    QVERIFY(std::abs(r.captured_mass - 0.8) < 1e-6);
    QCOMPARE(r.chosen_positions.size(), size_t{16});
    QCOMPARE(r.chosen_positions.front(), r.chosen_candidates[0] * 16);
  }

  void queriesOfTheFirstChunkChooseNothing() {
    const Reads r = reads_of(fixture_capture({.mixer = "top1_chunk"}, 200, 0, "prose"), 0, 0, 5);
    QVERIFY(r.chosen_candidates.empty() && r.chosen_positions.empty() && std::isnan(r.margin) && std::isnan(r.captured_mass));
  }

  void avey() {
    const Capture capture = fixture_capture({.mixer = "avey"}, 200, 0, "prose");
    const Reads r = reads_of(capture, 1, 0, 85);  // split 5: candidates 0 … 4, chosen 4 and 3
    QCOMPARE(r.candidate_size, int64_t{16});
    QCOMPARE(r.chosen_candidates, (std::vector<int64_t>{4, 3}));
    QCOMPARE(r.chosen_positions.size(), size_t{32});
    QCOMPARE(r.chosen_positions.front(), int64_t{48});
    QCOMPARE(r.chosen_positions.back(), int64_t{79});
    for (size_t p = 0; p < 6; ++p) QCOMPARE(std::isnan(r.candidate_scores[p]), p >= 5);
    const double best_other = std::max({r.candidate_scores[0], r.candidate_scores[1], r.candidate_scores[2]});
    QCOMPARE(r.margin, std::min(r.candidate_scores[3], r.candidate_scores[4]) - best_other);
  }

  void refusesWhatIsOutOfRange_data() {
    QTest::addColumn<int>("layer");
    QTest::addColumn<int>("head");
    QTest::addColumn<int>("query");
    QTest::newRow("layer") << 3 << 0 << 0;
    QTest::newRow("negative layer") << -2 << 0 << 0;
    QTest::newRow("head") << 0 << 4 << 0;
    QTest::newRow("negative head") << 0 << -1 << 0;
    QTest::newRow("query") << 0 << 0 << 96;
    QTest::newRow("negative query") << 0 << 0 << -1;
  }
  void refusesWhatIsOutOfRange() {
    QFETCH(int, layer);
    QFETCH(int, head);
    QFETCH(int, query);
    QVERIFY_THROWS_EXCEPTION(UsageError, reads_of(fixture_capture({}, 200, 0, "prose"), layer, head, query));
  }

 private:
  /// A capture whose last query of layer 0, head 0 has these weights.
  static Capture with_weights(const std::vector<float>& row) {
    const auto length = static_cast<int64_t>(row.size());
    Capture capture;
    capture.tokens.resize(row.size());
    CapturedMap map{MapKind::weights, 0, {1, length, length}, std::vector<float>(row.size() * row.size())};
    std::copy(row.begin(), row.end(), map.values.end() - length);
    capture.maps.push_back(std::move(map));
    return capture;
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ReadsTest)
#include "reads_test.moc"
