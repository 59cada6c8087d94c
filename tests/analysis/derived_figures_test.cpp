#include <QtTest>
#include <cmath>
#include <limits>

#include "analysis/figures/derived.h"
#include "analysis/figures/line.h"

namespace saccade::test {

class DerivedFiguresTest : public QObject {
  Q_OBJECT

  static Line line(std::vector<double> y) {
    Line made;
    for (size_t i = 0; i < y.size(); ++i) made.x.push_back(static_cast<double>(i));
    made.y = std::move(y);
    return made;
  }
  static constexpr auto kExponential = Smoothing::Kind::exponential, kWindow = Smoothing::Kind::window;

 private Q_SLOTS:
  void smoothing_off_changes_nothing() { QCOMPARE(smoothed(line({1, 5}), {}).y, (std::vector<double>{1, 5})); }

  void an_exponential_mean_has_no_bias() {
    const Line constant = smoothed(line({3, 3, 3, 3}), {kExponential, 100});
    for (const double y : constant.y) QVERIFY(std::abs(y - 3) < 1e-12);
    const double keep = std::exp(-0.5);
    const Line two = smoothed(line({0, 1}), {kExponential, 2});
    QCOMPARE(two.y[1], 1 / (1 + keep));
  }

  void a_window_is_whole_or_nothing() {
    const Line mean = smoothed(line({1, 2, 6, 2, 1}), {kWindow, 2});
    QCOMPARE(mean.x, (std::vector<double>{1, 2, 3}));
    QCOMPARE(mean.y, (std::vector<double>{3, 10.0 / 3, 3}));
  }

  void the_past_never_moves() {
    std::vector<double> y;
    for (int i = 0; i < 200; ++i) y.push_back(std::sin(0.3 * i) + 0.01 * i);
    const Line whole = line(y), part = line({y.begin(), y.begin() + 120});
    for (const Smoothing& smoothing : {Smoothing{kExponential, 7}, Smoothing{kWindow, 9}}) {
      const Line now = smoothed(part, smoothing), later = smoothed(whole, smoothing);
      QVERIFY(now.y.size() > 100);
      for (size_t i = 0; i < now.y.size(); ++i) {
        QCOMPARE(now.x[i], later.x[i]);
        QVERIFY(std::abs(now.y[i] - later.y[i]) < 1e-12);
      }
    }
  }

  void smoothing_passes_over_what_is_no_number() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double y : smoothed(line({1, 1, nan, 1, 1}), {kExponential, 3}).y) QCOMPARE(y, 1.0);
  }

  void seeds_have_a_mean_and_a_band() {
    Line longer = line({2, 4, 6, 8}), shorter = line({4, 6, 8});
    const Line mean = mean_of({longer, shorter});
    QCOMPARE(mean.x, longer.x);
    QCOMPARE(mean.y, (std::vector<double>{3, 5, 7, 8}));  // the last of one alone
    QVERIFY(std::abs(mean.high[0] - (3 + std::sqrt(2.0))) < 1e-12 && std::abs(mean.low[0] - (3 - std::sqrt(2.0))) < 1e-12);
    QCOMPARE(mean.low[3], 8.0);
    shorter.x = {0.5, 1.5, 2.5};  // values between points lie on the line through them
    QCOMPARE(mean_of({longer, shorter}).y[1], (4 + 5) / 2.0);
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

  void candidates_stand_as_stems() {
    Reads reads;
    reads.candidate_scores = {1, 3, std::numeric_limits<double>::quiet_NaN()};
    reads.chosen_candidates = {1};
    const Figure figure = candidates_figure(reads);
    QCOMPARE(figure.curves[0].y[0], 1.0);
    QCOMPARE(figure.curves[1].label, std::string("chosen"));
    QCOMPARE(figure.curves[1].x[0], 1.0);
    QCOMPARE(figure.curves[1].y.size(), size_t{4});
    for (const std::vector<double>& scores :
         {std::vector<double>{4.73, 4.15}, std::vector<double>{-1.3, -0.2}, std::vector<double>{-1, 2}}) {
      reads.candidate_scores = scores;
      const Figure from_zero = candidates_figure(reads);  // so that lengths tell
      for (const Curve& curve : from_zero.curves) QCOMPARE(curve.y[1], 0.0);
      QVERIFY(from_zero.y.range->at(0) <= 0 && from_zero.y.range->at(1) >= 0);
    }
    reads = {};
    reads.weights = {0.25, 0.75};
    QCOMPARE(candidates_figure(reads).curves[0].y, reads.weights);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::DerivedFiguresTest)
#include "derived_figures_test.moc"
