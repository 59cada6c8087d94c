// Statistics of repeated runs against printed tables and values that can be reckoned by hand.
#include "analysis/comparison/statistics.h"

#include <QtTest>
#include <cmath>

using namespace saccade;

class StatisticsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Two-sided 95 % and 99 % points of printed tables; of one and two degrees of freedom the distribution is elementary.
  void quantilesOfStudentsT_data() {
    QTest::addColumn<double>("probability");
    QTest::addColumn<double>("degrees");
    QTest::addColumn<double>("t");
    QTest::newRow("1") << 0.975 << 1.0 << std::tan(M_PI * 0.475);
    QTest::newRow("2") << 0.975 << 2.0 << 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95));
    QTest::newRow("4") << 0.975 << 4.0 << 2.7764451;
    QTest::newRow("9") << 0.995 << 9.0 << 3.2498355;
    QTest::newRow("30") << 0.975 << 30.0 << 2.0422725;
    QTest::newRow("lower") << 0.025 << 4.0 << -2.7764451;
  }
  void quantilesOfStudentsT() {
    QFETCH(double, probability);
    QFETCH(double, degrees);
    QFETCH(double, t);
    QVERIFY(std::abs(student_t_quantile(probability, degrees) - t) < 1e-6);
    for (const int64_t many : {1, 2, 63, 64, 65, 1000}) QCOMPARE(student_t_975(many), student_t_quantile(0.975, static_cast<double>(many)));
    QVERIFY(std::abs(student_t_cdf(t, degrees) - probability) < 1e-7);
  }

  void meanDeviationAndInterval() {
    const Repeated r = repeated(std::vector<double>{1, 2, 3, NAN});
    QCOMPARE(r.count, 3);
    QCOMPARE(r.mean, 2.0);
    QCOMPARE(r.deviation.value(), 1.0);
    QVERIFY(std::abs(r.half_95.value() - 4.3026527 / std::sqrt(3.0)) < 1e-6);
    QVERIFY(!repeated(std::vector<double>{1}).half_95);
    QVERIFY(std::isnan(repeated(std::vector<double>{}).mean));
  }

  /// t = 2 / (1 / sqrt 3) with two degrees of freedom: p = 1 − t / sqrt(2 + t²).
  void pairedTest() {
    const PairedTest test = paired_test(std::vector<double>{4, 6, 8}, std::vector<double>{3, 4, 5});
    const double t = 2 * std::sqrt(3.0);
    QCOMPARE(test.difference.mean, 2.0);
    QVERIFY(std::abs(test.p.value() - (1 - t / std::sqrt(2 + t * t))) < 1e-9);
    // the interval is 2 ± 4.30 / sqrt 3; with four pairs it is 2 ± 3.18 / 2
    QCOMPARE(test.more.value(), 1);
    QCOMPARE(describe_more(test), std::string("about 1 more seed would settle it"));
    QCOMPARE(describe_more(paired_test(std::vector<double>{4.0, 6.1, 8.0}, std::vector<double>{3, 5, 7})), std::string("settled"));
    QCOMPARE(describe_more(paired_test(std::vector<double>{4}, std::vector<double>{3})), std::string("needs a second seed"));
    QCOMPARE(describe_more(paired_test(std::vector<double>{1, 2}, std::vector<double>{2, 1})), std::string("more than 1 000 more seeds"));
    QCOMPARE(paired_test(std::vector<double>{1, 2}, std::vector<double>{1, 2}).p.value(), 1.0);
  }

  /// Binomial sums by hand: 2 · (1 + 10) / 2^10 of 1 and 9.
  void itemsThatOnlyOneGetsRight() {
    QCOMPARE(mcnemar_p(0, 0), 1.0);
    QVERIFY(std::abs(mcnemar_p(0, 5) - 2.0 / 32) < 1e-12 && std::abs(mcnemar_p(9, 1) - 22.0 / 1024) < 1e-12);
    QCOMPARE(mcnemar_p(3, 3), 1.0);
    QVERIFY(mcnemar_p(6000, 6600) < 1e-6 && mcnemar_p(6000, 6600) > 0);
  }

  void holm() {
    std::vector<PairedTest> tests(4);
    tests[0].p = 0.01, tests[1].p = 0.04, tests[2].p = 0.03;  // the fourth has none
    correct_by_holm(tests);
    QCOMPARE(tests[0].p_holm.value(), 0.03);
    QCOMPARE(tests[2].p_holm.value(), 0.06);
    QCOMPARE(tests[1].p_holm.value(), 0.06);  // never below that of a smaller p
    QVERIFY(!tests[3].p_holm);
  }

  /// What one test alone would settle, five are not told apart by: nothing is called settled whose corrected p is not below 0.05.
  void settledMeansAfterTheCorrection() {
    std::vector<PairedTest> tests;
    for (int i = 0; i < 5; ++i) tests.push_back(paired_test(std::vector<double>{4.0, 6.1, 8.0}, std::vector<double>{3, 4.6, 7.3}));
    for (const PairedTest& test : tests) QVERIFY(*test.p > 0.05 / 4 && *test.p < 0.05 && test.more == 0);
    tests.front() = paired_test(std::vector<double>{4.0, 6.1, 8.0}, std::vector<double>{3, 5.099, 7});
    correct_by_holm(tests);
    for (const PairedTest& test : tests) QCOMPARE(test.more == 0, *test.p_holm < 0.05);
    QVERIFY(tests.front().more == 0);
    // as many more pairs as it says, of the same mean and deviation, have a p of a fifth, fourth ... of 0.05, and one fewer has not
    const Repeated d = tests.back().difference;
    const auto p = [&](int64_t pairs) {
      return 2 * student_t_cdf(-std::abs(d.mean) * std::sqrt(static_cast<double>(pairs)) / *d.deviation, static_cast<double>(pairs - 1));
    };
    QVERIFY(*tests[1].more > 0 && p(d.count + *tests[1].more) < 0.05 / 4 && p(d.count + *tests[1].more - 1) >= 0.05 / 4);
    QCOMPARE(tests.back().more, tests[1].more);  // not before those with a smaller p
  }
};

QTEST_GUILESS_MAIN(StatisticsTest)
#include "statistics_test.moc"
