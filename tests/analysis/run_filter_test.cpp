#include "analysis/comparison/run_filter.h"
#include "analysis/comparison/filter_names.h"

#include <QTemporaryDir>
#include <QtTest>

#include "tests/analysis/fixture.h"

namespace saccade::test {

class RunFilterTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    const std::filesystem::path directory = std::filesystem::path(folder_.path().toStdString()) / "here";
    write_fixture(directory, {.mixer = "top1_chunk", .seed = 2});
    write_notes(directory, {true, {"paper", "figure 2"}, "Learning rate was too high"});
    run_ = std::make_unique<Run>(directory);
  }

  void termsHoldOrNot_data() {
    QTest::addColumn<QString>("filter");
    QTest::addColumn<bool>("passes");
    for (const char* yes : {"",          "chunk",     "TOP-1",          "here",           "done",         "mixer:top1", "mixer=top1",
                            "seed:2",    "width:64",  "width>63",       "width>=64",      "width<65",     "width<=64",  "width:10..100",
                            "steps:200", "loss<3",    "parameters>=1M", "corpus:fixture", "chunk seed:2", "ood:c",      "state:finished",
                            "starred",   "tag:paper", "tag:FIGURE",     "note:rate",      "too paper"})
      QTest::newRow(yes) << QString(yes) << true;
    for (const char* no : {"avey", "mixer:avey", "seed:20", "seed:1", "width>64", "width<64", "width:65..100", "width>x", "loss>3",
                           "parameters>2M", "nothing:1", "chunk seed:1", "state:running", "tag:other", "note:paper", "tag:rate"})
      QTest::newRow(no) << QString(no) << false;
  }
  void namesThatNoRunHasAreTold() {
    const std::vector<const Run*> runs{run_.get()};
    using Names = std::vector<std::string>;
    QCOMPARE(unknown_filter_names("lr>0.01 width>3 chunk loss<2 tag:x state:done lr<1 heds=4", runs), (Names{"lr", "heds"}));
    QCOMPARE(unknown_filter_names("ood:python seed:2 tokens_per_second>5", runs), Names());
  }

  void termsHoldOrNot() {
    QFETCH(QString, filter);
    QFETCH(bool, passes);
    QCOMPARE(RunFilter(filter.toStdString()).passes(*run_), passes);
  }

  /// What waits is found by its config and as queued; nothing of it is measured or noted.
  void what_waits_is_found_too() {
    const auto passes = [&](const char* text) { return RunFilter(text).passes_queued(run_->info()); };
    for (const char* yes : {"", "queued", "state:queued", "mixer:top1", "width>63", "seed:2", "chunk queued"}) QVERIFY2(passes(yes), yes);
    for (const char* no : {"done", "state:finished", "loss<3", "starred", "tag:paper", "avey"}) QVERIFY2(!passes(no), no);
  }

 private:
  QTemporaryDir folder_;
  std::unique_ptr<Run> run_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RunFilterTest)
#include "run_filter_test.moc"
