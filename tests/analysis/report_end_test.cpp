#include <QtTest>

#include "analysis/studies/report/end_table.h"

namespace saccade::test {

/// Of numbers made up for a study of one setting.
class ReportEndTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  /// Lengths grow from column to column, whatever their digits are; a seed without a domain takes no part in its mean.
  void domains_stand_in_their_natural_order() {
    ReportNumbers numbers;
    CellNumbers cell;
    cell.name = "deltanet";
    for (const double length : {2048, 8192, 32768}) {
      SeedNumbers seed;
      seed.seed = static_cast<int64_t>(cell.seeds.size()) + 1;
      seed.end.domains["length-" + std::to_string(static_cast<int64_t>(length))] = length;
      cell.seeds.push_back(seed);
    }
    numbers.cells = {cell};
    const ReportTable table = end_table({}, numbers);
    std::vector<std::string> names;
    std::vector<double> losses;
    for (size_t i = 0; i < table.header.size(); ++i)
      if (table.header[i].starts_with("OOD length")) names.push_back(table.header[i]), losses.push_back(table.rows.at(0).at(i).value);
    QCOMPARE(names, (std::vector<std::string>{"OOD length-2048", "OOD length-8192", "OOD length-32768"}));
    QCOMPARE(losses, (std::vector<double>{2048, 8192, 32768}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ReportEndTest)
#include "report_end_test.moc"
