#include <QDir>
#include <QtTest>

#include "tests/support/golden_file.h"

namespace saccade::test {

/// Runs every .h5 of SACCADE_GOLDEN_DIR (default: the copy in the repository), a row per case and precision. Which op it is
/// and its settings stand in each group's attributes, so other vectors of the same form need no change here.
/// Double ≤ 1e-9 and float ≤ 2e-5 of the largest element; integers (selections) equal.
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
    const auto runner = golden_runners().find(c.op);
    QVERIFY2(runner != golden_runners().end(), qPrintable("no runner for op " + QString::fromStdString(c.op)));
    const double tolerance = single ? 2e-5 : 1e-9;
    Arena::set_poison(true);
    Arena arena(Device::cpu());
    const GoldenResult result = runner->second(c, single ? DType::f32 : DType::f64, arena);
    for (const auto& [name, expected] : c.outputs) {
      QVERIFY2(result.outputs.contains(name), qPrintable("no output " + QString::fromStdString(name)));
      COMPARE_CLOSE(result.outputs.at(name), expected, expected.integer ? 0.0 : tolerance, QString::fromStdString(name));
    }
    for (const auto& [name, expected] : c.grads) {
      QVERIFY2(result.grads.contains(name), qPrintable("no gradient of " + QString::fromStdString(name)));
      COMPARE_CLOSE(result.grads.at(name), expected, tolerance, "gradient of " + QString::fromStdString(name));
    }
  }

 private:
  std::vector<GoldenCase> cases_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::GoldenTest)
#include "golden_test.moc"
