#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "analysis/comparison/training_loss.h"
#include "analysis/figures/held_back.h"
#include "analysis/figures/number_figures.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_writer.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

/// Losses of training domains alone, as runs on mixed domains have them, and numbers of training losses.
class HeldBackTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  std::filesystem::path path(const char* name) const { return std::filesystem::path(folder_.path().toStdString()) / name; }

 private Q_SLOTS:
  /// Without an OOD domain: 200 steps, so one step to each side of an evaluation.
  void heldBackLossAgainstTrainingLoss() {
    RunInfo info = fixture_info({});
    info.config["data"]["ood"] = nlohmann::json::array();
    RunWriter writer = RunWriter::create(path("mixed"), info);
    for (int64_t step = 1; step <= 200; ++step) {
      const Position at = fixture_position(step);
      const double loss = step == 100 ? 8 : step == 200 ? 2 : 5;
      writer.add(StepRecord{step, at.tokens, at.flops, at.seconds, loss, 1e-3, 1, 1000});
      if (step % 100 == 0) writer.add(EvaluationRecord{at, {{"prose", false, loss - 1, 0.1}}});
    }
    const Run run(path("mixed"));
    QVERIFY(trajectory(run).step.empty());
    const Trajectory t = held_back_trajectory(run);
    QCOMPARE(t.step, (std::vector<double>{100, 200}));
    QCOMPARE(t.pretraining, (std::vector<double>{6, 3.5}));  // (5 + 8 + 5) / 3, (5 + 2) / 2
    QCOMPARE(t.ood, (std::vector<double>{7, 1}));
    QCOMPARE(final_training_loss(run), 3.5);  // of steps 199 and 200
    QCOMPARE(run_number(run, "perplexity"), std::exp(3.5));
    QCOMPARE(run_number(run, "validation_perplexity"), std::exp(1.0));
    QCOMPARE(run_number(run, "tokens_times_parameters"), 200 * 1024 * 1e6);
    const Figure figure = held_back_figure(each_run({&run}));
    QCOMPARE(figure.curves.size(), size_t{1});
    QCOMPARE(figure.curves[0].y, (std::vector<double>{7, 1}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::HeldBackTest)
#include "held_back_test.moc"
