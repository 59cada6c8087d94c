#include "analysis/comparison/scaling_law.h"

#include <QtTest>
#include <cmath>

#include "kernels/engine/error.h"

namespace saccade::test {

class ScalingLawTest : public QObject {
  Q_OBJECT

  struct Grid {
    std::vector<double> parameters, tokens, losses;
    ScalingLaw fit() const { return fit_scaling_law(parameters, tokens, losses); }
  };
  /// Four sizes on four budgets, the sizes outside; losses of L = 1.7 + 400 / N^0.34 + 410 / D^0.28.
  static Grid exact() {
    Grid grid;
    for (const double n : {5e5, 2e6, 8e6, 3e7})
      for (const double d : {6.5e6, 2.6e7, 1.04e8, 3.9e8}) {
        grid.parameters.push_back(n), grid.tokens.push_back(d);
        grid.losses.push_back(1.7 + 400 / std::pow(n, 0.34) + 410 / std::pow(d, 0.28));
      }
    return grid;
  }
  /// The same with noise of 0.004 (numpy's default_rng(7)), rounded to four places.
  static Grid noisy() {
    Grid grid = exact();
    grid.losses = {11.3895, 9.7695, 8.6416, 7.901,  9.6364, 7.9906, 6.9173, 6.2271,
                   8.5539,  6.922,  5.8439, 5.1179, 7.9229, 6.2646, 5.1807, 4.4719};
    return grid;
  }
  static QString why_not(const Grid& grid) try {
    grid.fit();
    return "fitted";
  } catch (const UsageError& error) {
    return error.what();
  }

 private Q_SLOTS:
  void an_exact_law_is_found() {
    const Grid grid = exact();
    const ScalingLaw law = grid.fit();
    QVERIFY2(std::abs(law.numbers.floor - 1.7) < 1e-4, qPrintable(QString::number(law.numbers.floor)));
    QVERIFY(std::abs(law.numbers.alpha - 0.34) < 1e-5 && std::abs(law.numbers.beta - 0.28) < 1e-5);
    QVERIFY(std::abs(std::exp(law.numbers.log_a) - 400) < 0.1 && std::abs(std::exp(law.numbers.log_b) - 410) < 0.1);
    QVERIFY(std::abs(law.numbers.optimal_exponent() - 0.28 / 0.62) < 1e-5);
    for (const double r : law.residuals) QVERIFY(std::abs(r) < 1e-6);
    QVERIFY(std::abs(law.at(1e8, 1e9) - (1.7 + 400 / std::pow(1e8, 0.34) + 410 / std::pow(1e9, 0.28))) < 1e-4);
  }

  /// The optimum that scipy's L-BFGS-B and Nelder–Mead find from 324 starts, by the same Huber loss: 1.77575e-5.
  void noisy_points_have_the_optimum_that_scipy_finds() {
    const ScalingLaw::Numbers found = noisy().fit().numbers;
    QVERIFY2(std::abs(found.floor - 1.8089988) < 2e-5, qPrintable(QString::number(found.floor, 'g', 9)));
    QVERIFY2(std::abs(found.log_a - 5.9984772) < 1e-4 && std::abs(found.log_b - 6.1318538) < 1e-4,
             qPrintable(QString::number(found.log_b, 'g', 9)));
    QVERIFY(std::abs(found.alpha - 0.3406050) < 1e-5 && std::abs(found.beta - 0.2888395) < 1e-5);
  }

  void intervals_hold_the_law_and_are_those_of_these_points() {
    const ScalingLaw law = noisy().fit();
    const auto holds = [](const std::array<double, 2>& range, double truth) { return range[0] <= truth && truth <= range[1]; };
    QVERIFY(holds(law.interval_95.floor, 1.7) && holds(law.interval_95.alpha, 0.34) && holds(law.interval_95.beta, 0.28));
    QVERIFY(holds(law.interval_95.optimal_exponent, 0.28 / 0.62));
    const auto width = [](const std::array<double, 2>& range) { return range[1] - range[0]; };
    QVERIFY(width(law.interval_95.alpha) > 1e-3 && width(law.interval_95.floor) < 1);
    QVERIFY(width(exact().fit().interval_95.alpha) < 1e-3 * width(law.interval_95.alpha));
    QCOMPARE(noisy().fit().interval_95.floor, law.interval_95.floor);
  }

  void an_outlier_counts_little() {
    Grid grid = exact();
    grid.losses[5] *= 1.05;
    const ScalingLaw law = grid.fit();
    QVERIFY2(std::abs(law.numbers.floor - 1.7) < 0.02, qPrintable(QString::number(law.numbers.floor)));
    QVERIFY(std::abs(law.residuals[5] - std::log(1.05)) < 0.005);
  }

  void what_is_no_loss_does_not_count() {
    Grid grid = exact();
    grid.losses[3] = std::nan(""), grid.losses[7] = -1, grid.tokens[9] = 0;
    const ScalingLaw law = grid.fit();
    QCOMPARE(law.points, size_t{13});
    QVERIFY(std::isnan(law.residuals[3]) && std::isnan(law.residuals[7]) && std::isnan(law.residuals[9]) &&
            std::abs(law.residuals[4]) < 1e-6);
    QVERIFY(std::abs(law.numbers.floor - 1.7) < 1e-3);
  }

  void points_that_cannot_tell_are_refused() {
    Grid few = exact();
    few.losses.resize(9);
    QVERIFY2(why_not(few).contains("needs 10 runs; there are 9"), qPrintable(why_not(few)));
    Grid flat = exact();
    for (double& tokens : flat.tokens) tokens = tokens < 1e8 ? 1e7 : 1e9;
    QVERIFY2(why_not(flat).contains("three different numbers of tokens; there are 2"), qPrintable(why_not(flat)));
    Grid tied = exact();
    for (size_t i = 0; i < tied.tokens.size(); ++i) tied.tokens[i] = 20 * tied.parameters[i];  // as many tokens a parameter everywhere
    QVERIFY2(why_not(tied).contains("do not follow from the parameters"), qPrintable(why_not(tied)));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ScalingLawTest)
#include "scaling_law_test.moc"
