#include "analysis/studies/report/scaling_table.h"

#include <QtTest>
#include <cmath>

namespace saccade::test {

/// Of numbers made up for a study of two architectures, four widths and four lengths of training.
class ReportScalingTest : public QObject {
  Q_OBJECT

  struct Numbers {
    StudyView view;
    std::vector<CellNumbers> cells;
    std::optional<ReportTable> table() const { return scaling_table(view, cells); }
  };
  static double law(double n, double d, double floor) { return floor + 400 / std::pow(n, 0.34) + 410 / std::pow(d, 0.28); }

  static SeedNumbers seed_of(double n, double d, double floor) {
    SeedNumbers seed;
    seed.run = "run";
    seed.summary.parameters = static_cast<int64_t>(n);
    seed.end.tokens = static_cast<int64_t>(d);
    seed.end.validation = law(n, d, floor), seed.end.ood = law(n, d, floor + 1);
    return seed;
  }
  /// `sizes` and `budgets`: how many of the four are there.
  static Numbers made(size_t sizes, size_t budgets) {
    const std::array parameters{5e5, 2e6, 8e6, 3e7}, tokens{6.5e6, 2.6e7, 1.04e8, 3.9e8};
    Numbers numbers;
    numbers.view.study.axes.resize(3);
    for (const std::string architecture : {"mamba2", "top1"})
      for (size_t i = 0; i < sizes; ++i)
        for (size_t j = 0; j < budgets; ++j) {
          StudyCell cell;
          cell.labels = {architecture, "width-" + std::to_string(i), "steps-" + std::to_string(j)};
          cell.numbers = {std::nullopt, static_cast<double>(i), static_cast<double>(j)};
          CellNumbers of;
          of.cell = numbers.view.cells.size();
          of.seeds = {seed_of(parameters[i], tokens[j], architecture == "top1" ? 1.7 : 2.2)};
          numbers.view.cells.push_back(cell), numbers.cells.push_back(of);
        }
    return numbers;
  }
  static double at(const ReportTable& table, size_t row, size_t column) { return table.rows.at(row).at(column).value; }

 private Q_SLOTS:
  void each_architecture_has_a_law_of_each_loss() {
    const auto table = made(4, 4).table();
    QVERIFY(table.has_value());
    QCOMPARE(table->rows.size(), size_t{4});
    const std::array floors{2.2, 3.2, 1.7, 2.7};
    for (size_t row = 0; row < 4; ++row) {
      QCOMPARE(table->rows[row][0].text, std::string(row < 2 ? "mamba2" : "top1"));
      QCOMPARE(table->rows[row][1].text, std::string(row % 2 == 0 ? "in-domain" : "OOD"));
      QCOMPARE(at(*table, row, 2), 16.0);
      QVERIFY2(std::abs(at(*table, row, 3) - floors[row]) < 1e-3, qPrintable(QString::number(at(*table, row, 3))));
      QVERIFY(std::abs(at(*table, row, 5) - 0.34) < 1e-4 && std::abs(at(*table, row, 7) - 0.28) < 1e-4);
      QVERIFY(std::abs(at(*table, row, 8) - 0.28 / 0.62) < 1e-4 && at(*table, row, 9) < 1e-5);
      QCOMPARE(table->rows[row][3].sources.size(), size_t{16});
    }
  }

  /// A run with cooldown branches gives a point for each of their ends, and its own.
  void ends_of_branches_count() {
    Numbers numbers = made(4, 1);
    for (CellNumbers& cell : numbers.cells)
      for (SeedNumbers& seed : cell.seeds) {
        const auto n = static_cast<double>(seed.summary.parameters), floor = cell.cell < 4 ? 2.2 : 1.7;
        seed.branch_ends = true;
        Course& course = seed.courses[static_cast<size_t>(Spent::tokens)];
        for (const double d : {6.5e6, 2.6e7, 1.04e8}) {
          course.spent.push_back(d), course.pretraining.push_back(law(n, d, floor)), course.ood.push_back(law(n, d, floor + 1));
        }
      }
    const auto table = numbers.table();
    QVERIFY(table && table->rows.size() == 4);
    QCOMPARE(at(*table, 0, 2), 12.0);
    QVERIFY(std::abs(at(*table, 2, 3) - 1.7) < 1e-3 && std::abs(at(*table, 3, 3) - 2.7) < 1e-3);
  }

  void what_carries_no_law_is_said() {
    const auto table = made(3, 3).table();
    QVERIFY(table && table->rows.empty());
    QCOMPARE(table->notes.size(), size_t{5});
    QVERIFY2(table->notes[1].starts_with("mamba2, in-domain: a law of parameters and tokens needs 10 runs; there are 9"),
             table->notes[1].c_str());
    for (const auto& [sizes, budgets] : {std::pair<size_t, size_t>{4, 1}, {4, 2}, {1, 4}, {2, 4}})
      QVERIFY2(!made(sizes, budgets).table(), qPrintable(QString("%1 sizes, %2 lengths").arg(sizes).arg(budgets)));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ReportScalingTest)
#include "report_scaling_test.moc"
