#include "analysis/comparison/power_law.h"

#include <QtTest>
#include <cmath>

#include "kernels/engine/random.h"

namespace saccade::test {

class PowerLawTest : public QObject {
  Q_OBJECT

  static std::vector<double> law(const std::vector<double>& x, double floor, double factor, double exponent, double noise = 0) {
    std::vector<double> y;
    const Random random(3, "noise");
    for (size_t i = 0; i < x.size(); ++i) y.push_back((floor + factor * std::pow(x[i], -exponent)) * std::exp(noise * random.normal(i)));
    return y;
  }
  const std::vector<double> sizes_{1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9};

 private Q_SLOTS:
  void an_exact_law_is_found() {
    const auto found = fit_power_law(sizes_, law(sizes_, 0, 20, 0.08));
    QVERIFY(found && std::abs(found->exponent - 0.08) < 1e-12 && std::abs(std::exp(found->log_factor) - 20) < 1e-9);
    for (const double r : found->residuals) QVERIFY(std::abs(r) < 1e-12);
    QVERIFY(std::abs(found->at(2e7) - 20 * std::pow(2e7, -0.08)) < 1e-12);
    const auto with_floor = fit_power_law_with_floor(sizes_, law(sizes_, 1.7, 400, 0.34));
    QVERIFY2(with_floor && std::abs(with_floor->floor - 1.7) < 1e-4, qPrintable(QString::number(with_floor->floor)));
    QVERIFY2(std::abs(with_floor->exponent - 0.34) < 1e-4, qPrintable(QString::number(with_floor->exponent)));
  }

  /// By hand: through (1, e²) and (e, e): ln y = 2 − ln x.
  void two_points_give_a_line() {
    const auto found = fit_power_law(std::vector{1.0, std::exp(1.0)}, std::vector{std::exp(2.0), std::exp(1.0)});
    QVERIFY(found && std::abs(found->exponent - 1) < 1e-12 && std::abs(found->log_factor - 2) < 1e-12);
    QVERIFY(!found->exponent_95);
    QVERIFY(!fit_power_law(std::vector{2.0, 2.0}, std::vector{3.0, 4.0}));
    QVERIFY(!fit_power_law_with_floor(std::vector{1.0, 2.0, 3.0}, std::vector{3.0, 2.5, 2.4}));
    const auto holes = fit_power_law(std::vector{1.0, -1.0, std::exp(1.0)}, std::vector{std::exp(2.0), 1.0, std::exp(1.0)});
    QVERIFY(holes && std::isnan(holes->residuals[1]) && std::abs(holes->residuals[2]) < 1e-12);
  }

  /// The interval has the exponent in it, and grows with the noise.
  void the_interval_tells_what_points_carry() {
    const auto width = [&](double noise) {
      const auto found = fit_power_law(sizes_, law(sizes_, 0, 20, 0.08, noise));
      if (!found || !found->exponent_95) return -1.0;
      const auto [low, high] = *found->exponent_95;
      return low <= found->exponent && found->exponent <= high ? high - low : -1.0;
    };
    QVERIFY(width(0.001) > 0 && width(0.02) > 5 * width(0.001));
  }

  /// One point far off moves the law with a floor less than squares would.
  void an_outlier_counts_little() {
    std::vector<double> y = law(sizes_, 1.7, 400, 0.34);
    y[3] *= 1.05;
    const auto found = fit_power_law_with_floor(sizes_, y);
    QVERIFY2(found && std::abs(found->floor - 1.7) < 0.02, qPrintable(QString::number(found->floor)));
    QVERIFY(std::abs(found->residuals[3] - std::log(1.05)) < 0.01);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::PowerLawTest)
#include "power_law_test.moc"
