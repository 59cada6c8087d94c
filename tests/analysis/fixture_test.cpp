#include "tests/analysis/fixture.h"

#include <QTemporaryDir>
#include <QtTest>

#include "analysis/figures/figure.h"
#include "analysis/runs/results_file.h"

namespace saccade::test {

/// What is written for others to test with can be read like a real run. SACCADE_FIXTURE_DIR keeps the runs, to look at.
class FixtureTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void readsBack_data() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"attention", "top1_element", "top1_chunk", "avey"}) QTest::newRow(mixer) << mixer;
  }
  void readsBack() {
    QFETCH(QString, mixer);
    QTemporaryDir temporary;
    const QString kept = qEnvironmentVariable("SACCADE_FIXTURE_DIR");
    const std::filesystem::path directory = (kept.isEmpty() ? temporary.path() : kept).toStdString() + "/" + mixer.toStdString() + "-seed1";
    FixtureOptions options;
    options.mixer = mixer.toStdString();
    write_fixture(directory, options);
    const Run run(directory);
    QCOMPARE(run.info().state, RunState::finished);
    QCOMPARE(run.info().step, int64_t{200});
    QCOMPARE(run.find("train/loss")->value.size(), size_t{200});
    QCOMPARE(run.find("ood/loss/c")->value.size(), size_t{10});
    QCOMPARE(run.find("ood/loss")->value.back(), (run.find("ood/loss/c")->value.back() + run.find("ood/loss/python")->value.back()) / 2);
    QCOMPARE(run.ood_domains(), (std::vector<std::string>{"c", "python"}));
    QCOMPARE(run.capture_steps(), (std::vector<int64_t>{100, 200}));
    QCOMPARE(run.captures(200).size(), size_t{3});
    QVERIFY(run.last_statistics());
    QCOMPARE(read_results_series(directory / "results.h5").size(), run.series().size());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::FixtureTest)
#include "fixture_test.moc"
