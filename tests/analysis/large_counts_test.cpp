#include <QTemporaryDir>
#include <QtTest>

#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Runs whose steps, tokens and positions in their data are beyond 2^32: journal, results.h5, captures, checkpoints and what reads them.
class LargeCountsTest : public QObject {
  Q_OBJECT

  static constexpr int64_t k32 = int64_t{1} << 32, kFirst = k32 - 50, kLast = k32 + 50;

  static StepRecord at(int64_t step) {
    StepRecord record = fixture_step({}, step);
    record.tokens = step * (int64_t{1} << 19);  // 2^51 and more, each a double that no other is
    return record;
  }

 private Q_SLOTS:
  void initTestCase() {
    directory_ = folder_.filePath("run").toStdString();
    RunInfo info = fixture_info({});
    info.steps = 2 * k32;
    RunWriter writer = RunWriter::create(directory_, info);
    writer.set_state(RunState::running, 0);
    for (int64_t step = kFirst; step <= kLast; ++step) writer.add(at(step));
    writer.add(EvaluationRecord{{kLast, at(kLast).tokens, 1e20, 1e9}, {{"prose", false, 2.5, 0.01}}});
    writer.add(StatisticsRecord{{kLast, at(kLast).tokens, 1e20, 1e9}, {{"entropy", "nats", 0, {1.0, 2.0}}}});
    writer.add(kLast, {fixture_capture({}, kLast, 0, "prose")});
    writer.set_state(RunState::stopped, kLast);
    writer.write_results();
  }

  void the_run_is_read() {
    const Run run(directory_);
    QVERIFY2(run.damage().empty() && run.lost().empty(), (run.damage() + run.lost()).c_str());
    QCOMPARE(run.info().step, kLast);
    QCOMPARE(run.info().steps, 2 * k32);
    const Series* loss = run.find("train/loss");
    QVERIFY(loss);
    QCOMPARE(static_cast<int64_t>(loss->step.size()), kLast - kFirst + 1);
    for (size_t i = 0; i < loss->step.size(); ++i) {
      const int64_t step = kFirst + static_cast<int64_t>(i);
      QCOMPARE(static_cast<int64_t>(loss->step[i]), step);
      QCOMPARE(static_cast<int64_t>(loss->tokens[i]), at(step).tokens);
      QCOMPARE(loss->value[i], at(step).loss);
    }
    QCOMPARE(run.last_evaluation()->at.step, kLast);
    QCOMPARE(run.last_statistics()->at.tokens, at(kLast).tokens);
  }

  void results_file_holds_the_same() {
    const Run run(directory_);
    for (const Series& series : read_results_series(directory_ / "results.h5")) {
      const Series* of_run = run.find(series.name);
      QVERIFY2(of_run && of_run->step == series.step && of_run->tokens == series.tokens, series.name.c_str());
    }
  }

  /// A few points of many, and all those of a stretch beyond 2^32 read from the journal.
  void curves_are_thinned_and_read_exactly() {
    const Run run(directory_, {.most_points = 16});
    const Series* thin = run.find("train/loss");
    QVERIFY(thin && thin->step.size() < 60);
    QCOMPARE(static_cast<int64_t>(thin->step.back()), kLast);
    const Series exact = run.exact("train/loss", static_cast<double>(k32 + 1), static_cast<double>(k32 + 5));
    QCOMPARE(exact.step.values(), (std::vector<double>{k32 + 1.0, k32 + 2.0, k32 + 3.0, k32 + 4.0, k32 + 5.0}));
  }

  void captures_are_found_by_step() {
    const Run run(directory_);
    QCOMPARE(run.capture_steps(), std::vector<int64_t>{kLast});
    QCOMPARE(run.captures(kLast).at(0).at.step, kLast);
  }

  void a_run_goes_on_behind_it() {
    fs::copy(directory_, folder_.filePath("goes-on").toStdString(), fs::copy_options::recursive);
    const fs::path copy = folder_.filePath("goes-on").toStdString();
    {
      RunWriter writer = RunWriter::take_up(copy, [](const std::string&) {});
      writer.set_state(RunState::running, kLast);
      writer.add(at(kLast + 1));
      writer.set_state(RunState::stopped, kLast + 1);
      writer.write_results();
    }
    const Run run(copy);
    QCOMPARE(run.info().step, kLast + 1);
    QCOMPARE(static_cast<int64_t>(run.find("train/loss")->step.back()), kLast + 1);
  }

  void a_checkpoint_keeps_its_place() {
    Checkpoint checkpoint;
    checkpoint.config = fixture_info({}).config;
    checkpoint.corpus_hash = "c", checkpoint.tokenizer_name = "bytes", checkpoint.tokenizer_hash = "t";
    checkpoint.state.record = at(kLast);
    checkpoint.state.data_position = (uint64_t{1} << 62) + 3;
    const fs::path file = step_file(directory_, kCheckpoints, kLast);
    fs::create_directories(file.parent_path());
    write_checkpoint(file, checkpoint);
    QCOMPARE(step_files(directory_, kCheckpoints), std::vector<int64_t>{kLast});
    const Checkpoint read = read_checkpoint(file);
    QCOMPARE(read.state.record.step, kLast);
    QCOMPARE(read.state.record.tokens, at(kLast).tokens);
    QCOMPARE(read.state.data_position, checkpoint.state.data_position);
  }

 private:
  QTemporaryDir folder_;
  fs::path directory_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LargeCountsTest)
#include "large_counts_test.moc"
