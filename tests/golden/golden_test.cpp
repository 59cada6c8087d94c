#include <QDir>
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "tests/support/golden_file.h"

namespace saccade::test {

/// Runs every .h5 of SACCADE_GOLDEN_DIR (default: the copy in the repository), a row per case and precision. Which op it is
/// and its settings stand in each group's attributes or follow from its name (find_golden_runner), so other vectors of the same
/// form need no change here. Double ≤ 1e-9, float ≤ 2e-5 of the largest element (gradients of recurrences 5e-5: section 12 of
/// their specification); integers (selections) equal. What is zero by mathematics is compared absolutely.
class GoldenTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void golden_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<bool>("single");
    QString folder = qEnvironmentVariable("SACCADE_GOLDEN_DIR");
    if (folder.isEmpty()) folder = qEnvironmentVariable("SACCADE_GOLDEN_DEFAULT");
    const QStringList files = QDir(folder).entryList({"*.h5"}, QDir::Files, QDir::Name);
    QVERIFY2(!files.isEmpty(), qPrintable("no .h5 file in " + folder));
    for (const QString& file : files)
      for (GoldenCase& c : read_golden_file(QDir(folder).filePath(file).toStdString())) {
        const QString row = QString("%1/%2").arg(QFileInfo(file).completeBaseName(), QString::fromStdString(c.name));
        cases_.push_back(std::move(c));
        for (bool single : {false, true})
          QTest::newRow(qPrintable(row + (single ? " float" : " double"))) << static_cast<int>(cases_.size() - 1) << single;
      }
  }

  void golden() {
    QFETCH(int, index);
    QFETCH(bool, single);
    const GoldenCase& c = cases_[static_cast<size_t>(index)];
    const double tolerance = single ? 2e-5 : 1e-9, gradient_tolerance = single && c.op.empty() ? 5e-5 : tolerance;
    Arena::set_poison(true);
    Arena arena(Device::cpu());
    const GoldenRunner* runner = find_golden_runner(c);
    QVERIFY2(runner, "no runner is registered for it");
    const GoldenResult result = (*runner)(c, single ? DType::f32 : DType::f64, arena);
    for (const auto& [name, expected] : c.outputs) {
      QVERIFY2(result.outputs.contains(name), qPrintable("no output " + QString::fromStdString(name)));
      COMPARE_CLOSE(result.outputs.at(name), expected, expected.integer ? 0.0 : tolerance, QString::fromStdString(name));
    }
    for (const auto& [name, expected] : c.grads) {
      QVERIFY2(result.grads.contains(name), qPrintable("no gradient of " + QString::fromStdString(name)));
      const QString what = "gradient of " + QString::fromStdString(name);
      if (zero_by_mathematics(expected))
        COMPARE_CLOSE(result.grads.at(name), zeros(expected.shape), 1e-6, what);
      else
        COMPARE_CLOSE(result.grads.at(name), expected, gradient_tolerance, what);
    }
  }

 private:
  static bool zero_by_mathematics(const Array& x) {
    return std::all_of(x.values.begin(), x.values.end(), [](double v) { return std::abs(v) < 1e-10; });
  }
  static Array zeros(const Shape& shape) { return {shape, std::vector<double>(static_cast<size_t>(shape.size())), false}; }

  std::vector<GoldenCase> cases_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GoldenTest)
#include "golden_test.moc"
