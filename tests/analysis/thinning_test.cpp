#include "analysis/runs/thinning.h"

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>

#include "analysis/runs/history.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

/// A long run takes little room, and what stays are values that were there: the extremes, at their places.
class ThinningTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kSteps = 10'000;
  static constexpr size_t kMost = 512;

  static StepRecord step(int64_t n) {
    StepRecord record = fixture_step({}, n);
    if (n == 4321) record.loss = 99;  // a spike
    return record;
  }
  static RunHistory thinned(int64_t steps) {
    RunHistory history(kMost);
    for (int64_t n = 1; n <= steps; ++n) history.add(step(n));
    return history;
  }

 private Q_SLOTS:
  void keepsExtremesAndTheLastValue() {
    const RunHistory history = thinned(kSteps);
    const Series& loss = *history.find("train/loss");
    QVERIFY2(loss.value.size() <= kMost + 64 && loss.value.size() >= kMost / 2, qPrintable(QString::number(loss.value.size())));
    QVERIFY(std::is_sorted(loss.step.begin(), loss.step.end()));
    for (size_t i = 0; i < loss.value.size(); ++i) QCOMPARE(loss.value[i], step(static_cast<int64_t>(loss.step[i])).loss);
    QCOMPARE(*std::max_element(loss.value.begin(), loss.value.end()), 99.0);
    QCOMPARE(loss.step.back(), static_cast<double>(kSteps));
    RunHistory whole;
    for (int64_t n = 1; n <= kSteps; ++n) whole.add(step(n));
    const Column& all = whole.find("gradient_norm")->value;
    QCOMPARE(history.find("gradient_norm")->value.size() < all.size(), true);
    const Column& some = history.find("gradient_norm")->value;
    QCOMPARE(*std::min_element(some.begin(), some.end()), *std::min_element(all.begin(), all.end()));
  }

  /// What is no number is thinned away, but where it was is kept, till it is taken back.
  void stepsWithoutALossAreKept() {
    RunHistory history(kMost);
    for (int64_t n = 1; n <= kSteps; ++n) {
      StepRecord record = step(n);
      if (n == 1 || n == 700 || n == 701) record.loss = std::nan("");
      if (n == 9000) record.loss = HUGE_VAL;
      history.add(record);
    }
    const Column& losses = history.find("train/loss")->value;
    QVERIFY(std::all_of(losses.begin(), losses.end(), [](double v) { return std::isfinite(v); }));
    const std::vector<LossGap>& gaps = history.loss_gaps();
    QCOMPARE(gaps.size(), size_t{3});
    QVERIFY(gaps[0].at.step == 1 && gaps[0].beside == step(2).loss);
    QVERIFY(gaps[1].at.step == 700 && gaps[1].beside == step(699).loss && !gaps[1].infinite);
    QVERIFY(gaps[2].at.step == 9000 && gaps[2].at.tokens == step(9000).tokens && gaps[2].infinite);
    history.apply(resume_record(8000));
    QCOMPARE(history.loss_gaps().size(), size_t{2});
    StepRecord record = step(8001);
    record.loss = HUGE_VAL;
    history.add(record);
    QVERIFY(history.loss_gaps().size() == 3 && std::isfinite(history.loss_gaps()[2].beside));
  }

  void meansAreOfWholeStretches() {
    const RunHistory history = thinned(kSteps);
    const Series& means = *history.find("train/loss/mean");
    const double stretch = 2 * (means.step[1] - means.step[0]) / 2;
    double sum = 0;
    for (int64_t n = 1; n <= static_cast<int64_t>(stretch); ++n) sum += step(n).loss;
    QVERIFY(std::abs(means.value[0] - sum / stretch) < 1e-9);
    QCOMPARE(means.step[0], (stretch + 1) / 2);
  }

  void fewPointsStayAsTheyAre() {
    const RunHistory history = thinned(100);
    QCOMPARE(history.find("train/loss")->value.size(), size_t{100});
    QVERIFY(!history.find("train/loss/mean"));
  }

  void whatIsTakenBackIsGone() {
    RunHistory history = thinned(kSteps);
    history.apply(resume_record(5000));
    const Series& loss = *history.find("train/loss");
    QVERIFY(loss.step.back() <= 5000);
    for (int64_t n = 5001; n <= kSteps; ++n) history.add(step(n));
    QVERIFY(std::is_sorted(loss.step.begin(), loss.step.end()));
    QCOMPARE(loss.step.back(), static_cast<double>(kSteps));
    QCOMPARE(*std::max_element(loss.value.begin(), loss.value.end()), 99.0);
  }

  void aRunGivesAllValuesOfAPart() {
    const QTemporaryDir folder;
    const std::filesystem::path directory = std::filesystem::path(folder.path().toStdString()) / "run";
    {
      RunWriter writer = RunWriter::create(directory, fixture_info({.steps = kSteps}));
      for (int64_t n = 1; n <= kSteps; ++n) writer.add(step(n));
    }
    const Run run(directory, {.most_points = kMost});
    QVERIFY(run.find("train/loss")->value.size() < 2 * kMost);
    const Series part = run.exact("train/loss", 4300, 4400);
    QCOMPARE(part.step.size(), size_t{101});
    QCOMPARE(part.value[21], 99.0);
    const Run outline(directory, {.outline = true});
    QCOMPARE(outline.find("train/loss")->value.back(), run.find("train/loss")->value.back());
    QCOMPARE(outline.info().step, kSteps);
    QVERIFY(outline.find("train/loss")->value.size() < 1000);
  }

  /// A copy may be read on while others look at the run.
  void aCopyGoesItsOwnWay() {
    const QTemporaryDir folder;
    const std::filesystem::path directory = std::filesystem::path(folder.path().toStdString()) / "run";
    RunWriter writer = RunWriter::create(directory, fixture_info({.steps = kSteps}));
    writer.set_state(RunState::running, 0);
    for (int64_t n = 1; n <= 50; ++n) writer.add(step(n));
    const Run run(directory);
    QVERIFY(!run.outdated());
    writer.add(step(51));
    QVERIFY(run.outdated());
    Run next(run);
    QVERIFY(next.poll());
    QCOMPARE(run.find("train/loss")->value.size(), size_t{50});
    QCOMPARE(next.find("train/loss")->value.size(), size_t{51});
    QVERIFY(!next.outdated());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ThinningTest)
#include "thinning_test.moc"
