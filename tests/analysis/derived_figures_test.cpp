#include <QtTest>
#include <cmath>
#include <limits>

#include "analysis/figures/derived.h"

namespace saccade::test {

class DerivedFiguresTest : public QObject {
  Q_OBJECT

  static Figure thin(std::vector<double> y) {
    Figure figure;
    Curve curve;
    curve.label = "a";
    curve.width = 0.6;
    for (size_t i = 0; i < y.size(); ++i) curve.x.push_back(static_cast<double>(i));
    curve.y = std::move(y);
    figure.curves.push_back(curve);
    return figure;
  }

 private Q_SLOTS:
  void smoothing_keeps_the_raw_curve_beneath() {
    const Figure raw = thin({1, 2, 6, 2, 1});
    const Figure figure = smoothed(raw, 3);
    QCOMPARE(figure.curves.size(), size_t{2});
    QCOMPARE(figure.curves[0].y, raw.curves[0].y);
    QVERIFY(!figure.curves[0].in_legend);
    QCOMPARE(figure.curves[1].y, (std::vector<double>{1, 3, 10.0 / 3, 3, 1}));
    QCOMPARE(figure.curves[1].label, std::string("a, mean of 3 steps"));
  }

  void smoothing_off_changes_nothing() { QCOMPARE(smoothed(thin({1, 5}), 0).curves.size(), size_t{1}); }

  void smoothing_does_not_cross_a_gap() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto y = smoothed(thin({1, 1, nan, 9, 9}), 5).curves[1].y;
    QCOMPARE(y[1], 1.0);
    QVERIFY(std::isnan(y[2]));
    QCOMPARE(y[3], 9.0);
  }

  void difference_takes_common_places_of_equal_labels() {
    Figure a = thin({5, 6, 7}), b = thin({1, 1, 1});
    b.curves[0].x = {0, 2, 3};
    a.curves.push_back(a.curves[0]);
    a.curves[1].label = "only in a";
    const Figure gap = difference(a, b, "gap", "Gap", "gap (nats)");
    QCOMPARE(gap.curves.size(), size_t{1});
    QCOMPARE(gap.curves[0].x, (std::vector<double>{0, 2}));
    QCOMPARE(gap.curves[0].y, (std::vector<double>{4, 6}));
  }

  void log_colours_show_small_weights() {
    Figure figure;
    figure.map = HeatMap{.rows = 1, .columns = 1000, .values = std::vector<float>(1000, 0.5F), .range = {0, 1}};
    const Figure plain = log_colours(figure);
    QVERIFY(plain.map->logarithmic);
    QCOMPARE(plain.map->range, (std::array<double, 2>{1e-4, 1}));
    for (size_t i = 0; i < 1000; ++i) figure.map->values[i] = (i % 2 ? 1.0F : -1.0F) * static_cast<float>(i + 1);
    figure.map->diverging = true;
    QCOMPARE(log_colours(figure).map->range, (std::array<double, 2>{-990, 990}));
    QVERIFY(!log_colours(Figure{}).map);
  }

  void heads_of_even_and_pointed_weights() {
    constexpr int64_t T = 5;
    CapturedMap weights{MapKind::weights, 0, {2, T, T}, std::vector<float>(2 * T * T)};
    for (int64_t t = 0; t < T; ++t)
      for (int64_t j = 0; j <= t; ++j) {
        weights.values[static_cast<size_t>(t * T + j)] = 1.0F / static_cast<float>(t + 1);
        weights.values[static_cast<size_t>(T * T + t * T + j)] = j == 0 ? 1.0F : 0.0F;
      }
    Capture capture;
    capture.maps.push_back(weights);
    const Figure figure = capture_heads_figure(capture);
    QVERIFY(figure.map);
    QVERIFY(std::abs(figure.map->values[0] - 1) < 1e-5F);
    QCOMPARE(figure.map->values[1], 0.0F);
  }

  void candidates_stand_as_stems() {
    Reads reads;
    reads.candidate_scores = {1, 3, std::numeric_limits<double>::quiet_NaN()};
    reads.chosen_candidates = {1};
    const Figure figure = candidates_figure(reads);
    QCOMPARE(figure.curves[0].y[0], 1.0);
    QCOMPARE(figure.curves[1].label, std::string("chosen"));
    QCOMPARE(figure.curves[1].x[0], 1.0);
    QCOMPARE(figure.curves[1].y.size(), size_t{4});
    reads = {};
    reads.weights = {0.25, 0.75};
    QCOMPARE(candidates_figure(reads).curves[0].y, reads.weights);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::DerivedFiguresTest)
#include "derived_figures_test.moc"
