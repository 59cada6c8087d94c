#include <QtTest>

#include "analysis/runs/checkpoint_keeper.h"
#include "analysis/training/divergence.h"
#include "analysis/training/loss_course.h"
#include "analysis/training/training_loop.h"
#include "tests/analysis/trained_run.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// What is kept, told and offered when a loss is not finite.
class DivergenceTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    corpus_ = std::make_unique<TinyCorpus>();
    QCOMPARE(work_on(path("stopped"), tiny_config(), 8).state, RunState::stopped);
  }

  void theCourse() {
    LossCourse course;
    QVERIFY(!course.on_course());  // nothing seen
    for (const double loss : {5.5, 5.0, 4.0, 3.0}) {
      course.add(loss);
      QVERIFY(course.on_course());
    }
    for (int i = 0; i < 30; ++i) course.add(3.0);
    course.add(5.0);  // one bad batch among twenty
    QVERIFY(course.on_course());
    for (int i = 0; i < 10; ++i) course.add(5.0);
    QVERIFY(!course.on_course());
    for (int i = 0; i < 40; ++i) course.add(3.2);
    QVERIFY(course.on_course());
    course.add(std::nan(""));
    QVERIFY(!course.on_course());
    LossCourse small;
    for (int i = 0; i < 30; ++i) small.add(0.001);
    for (int i = 0; i < 30; ++i) small.add(0.05);
    QVERIFY(small.on_course());  // fifty times as much, and next to nothing
  }

  void theLastCheckpointOnCourseStays() {
    const fs::path run = path("kept");
    fs::create_directories(run / "checkpoints");
    Checkpoint checkpoint = read_checkpoint(step_file(path("stopped"), kCheckpoints, 8));
    CheckpointKeeper keeper(run);
    for (int64_t step = 1; step <= 6; ++step) {
      if (step <= 2) keeper.keep(step);
      checkpoint.state.record.step = step;
      QCOMPARE(keeper.write(checkpoint), std::string());
    }
    QCOMPARE(step_files(run, kCheckpoints), (std::vector<int64_t>{2, 5, 6}));
    // what a process left that ended before it could delete: damaged ones are nothing to rely on
    for (const int64_t step : {3, 4}) {
      checkpoint.state.record.step = step;
      write_checkpoint(step_file(run, kCheckpoints, step), checkpoint);
    }
    std::ofstream(step_file(run, kCheckpoints, 5)) << "no checkpoint";
    CheckpointKeeper after(run, 6);
    after.keep(2);
    QCOMPARE(after.tidy(), std::string());
    QCOMPARE(step_files(run, kCheckpoints), (std::vector<int64_t>{2, 4, 5, 6}));
  }

  void tellsTheTensorAndKeepsTheBatch() {
    const fs::path run = diverged("tensor");
    const Run recorded(run);
    const QString message = QString::fromStdString(recorded.info().message);
    const std::string spoilt = read_checkpoint(step_file(run, kCheckpoints, 8)).state.weights[2].name;
    QVERIFY2(message.contains("NaN at step 9") && message.contains("first in the weight " + QString::fromStdString(spoilt)) &&
                 message.contains("diverged-step-9.json"),
             qPrintable(message));
    const auto kept = nlohmann::json::parse(read_text(run / "diverged-step-9.json"));
    QCOMPARE(kept["step"].get<int64_t>(), int64_t{9});
    QCOMPARE(kept["data_position"].get<uint64_t>(), uint64_t{16});
    QCOMPARE(kept["tokens"].size(), size_t{2});
    QCOMPARE(kept["tokens"][0].size(), size_t{64});
    TrainingInput input = prepare_training(tiny_config(), {});
    for (int i = 0; i < 9; ++i) input.trainer->step();
    const TrainedBatch batch = input.trainer->last_batch();
    QCOMPARE(batch.data_position, uint64_t{16});
    QCOMPARE(kept["tokens"][1].get<std::vector<int32_t>>(),
             std::vector<int32_t>(batch.batch.tokens.begin() + 64, batch.batch.tokens.end()));
    QCOMPARE(kept["targets"][0].get<std::vector<int32_t>>(),
             std::vector<int32_t>(batch.batch.targets.begin(), batch.batch.targets.begin() + 64));
  }

  /// The last batch is read once more without a trace: training goes on as if it had not been.
  void lookingBackChangesNothing() {
    TrainingInput a = prepare_training(tiny_config(), {}), b = prepare_training(tiny_config(), {});
    for (int i = 0; i < 5; ++i) {
      const StepRecord x = a.trainer->step(), y = b.trainer->step();
      QCOMPARE(x.loss, y.loss);
      a.trainer->last_batch();
      QCOMPARE(a.trainer->gradients().size(), a.trainer->model().parameters().size());
    }
  }

  void aSkippedBatchIsPassedOver() {
    TrainingInput a = prepare_training(tiny_config(), {}), b = prepare_training(tiny_config(), {});
    b.trainer->skip({2});  // where step 2 begins
    std::vector<std::vector<int32_t>> of_a, of_b;
    for (int i = 0; i < 4; ++i) {
      a.trainer->step(), b.trainer->step();
      of_a.push_back(a.trainer->last_batch().batch.tokens), of_b.push_back(b.trainer->last_batch().batch.tokens);
    }
    QVERIFY(of_b[0] == of_a[0] && of_b[1] == of_a[2] && of_b[2] == of_a[3]);
  }

  void aBatchThatGrowsIsPassedOverWhole() {
    nlohmann::json object = to_json(tiny_config());
    object["training"].update({{"gradient_accumulation", 2}, {"batch_warmup_tokens", 64}, {"batch_warmup_steps", 2}});
    const RunConfig config = resolve_config(object, "test");
    TrainingInput a = prepare_training(config, {}), b = prepare_training(config, {});
    b.trainer->skip({1});  // where step 2 begins, which has one sequence
    std::vector<uint64_t> of_a, of_b;
    for (int i = 0; i < 4; ++i) {
      a.trainer->step(), b.trainer->step();
      of_a.push_back(a.trainer->last_batch().data_position), of_b.push_back(b.trainer->last_batch().data_position);
    }
    QCOMPARE(of_a, (std::vector<uint64_t>{0, 1, 2, 4}));
    QCOMPARE(of_b, (std::vector<uint64_t>{0, 2, 3, 5}));
    QCOMPARE(b.trainer->last_batch().batch.tokens.size(), size_t{128});
  }

  void itIsNotRepeated() {
    const fs::path run = diverged("again");
    const std::string before = read_text(run / "journal.jsonl");
    const QString message = message_of<UsageError>([&] { work_on(run, tiny_config()); });
    QVERIFY2(message.contains("--from 8") && message.contains("--skip-batch") && message.contains("training.learning_rate"),
             qPrintable(message));
    QCOMPARE(read_text(run / "journal.jsonl"), before);
  }

  void goesBack() {
    const fs::path run = diverged("back");
    QVERIFY(message_of<UsageError>([&] { resume(run, {3, {}, false}); }).contains("it can go on from 0 (the beginning), 4, 8"));
    QVERIFY(message_of<UsageError>([&] { resume(run, {4, {"training.seed=9"}, false}); }).contains("what can be changed is"));
    QCOMPARE(resume(run, {4, {"training.learning_rate=0.0005"}, true}), RunState::finished);
    const RunInfo info = read_run_info(run);
    QCOMPARE(info.config["training"]["learning_rate"].get<double>(), 0.0005);
    QCOMPARE(info.provenance["config_hash"].get<std::string>(), config_hash(info.config));
    QCOMPARE(info.provenance["changes"].dump(), std::string(R"([{"set":["training.learning_rate=0.0005"],"step":4}])"));
    QCOMPARE(info.provenance["skipped_positions"].dump(), std::string("[16]"));
    QCOMPARE(Run(run).find("train/loss")->value.size(), size_t{12});
    QVERIFY(Run(run).damage().empty());
    QCOMPARE(read_checkpoint(step_file(run, kCheckpoints, 12)).state.data_position, uint64_t{26});  // 24 and the two passed over
  }

  /// Checkpoints from before a change have another config than run.json, and are the run's own all the same; an edit is none.
  void theConfigAfterChanges() {
    const fs::path run = path("changed");
    fs::copy(path("stopped"), run, fs::copy_options::recursive);
    QCOMPARE(resume(run, {{}, {"training.learning_rate=0.0005"}, false}, true), RunState::stopped);
    QCOMPARE(load_model(run, 8, "cpu").config.training.learning_rate, 0.0005);
    QCOMPARE(resume(run, {{}, {}, false}, true), RunState::stopped);
    QCOMPARE(resume(run, {4, {"training.learning_rate=0.0002"}, false}), RunState::finished);
    for (const int64_t step : {8, 12}) QCOMPARE(load_model(run, step, "cpu").config.training.learning_rate, 0.0002);
    RunInfo info = read_run_info(run);
    info.config["training"]["learning_rate"] = 0.0003;
    write_run_info(info);
    const QString message = message_of<DataError>([&] { load_model(run, 12, "cpu"); });
    QVERIFY2(message.contains("/training/learning_rate is 0.0003, was 0.0002"), qPrintable(message));
  }

  /// The beginning of a fork is its parent's checkpoint, never the initial weights.
  void aForkGoesBackToWhereItBegan() {
    const fs::path run = path("fork");
    const Fork fork{path("stopped"), 8};
    const std::atomic<bool> stop = true;
    QCOMPARE(fork_run(fork, fork_config(fork), run, {}, stop), RunState::stopped);
    QCOMPARE(comparable_journal(run).size(), size_t{0});  // the parent measured its step 8
    spoil(run);
    QCOMPARE(work_on(run, tiny_config()).state, RunState::diverged);
    QVERIFY(message_of<UsageError>([&] { work_on(run, tiny_config()); }).contains("--from 8"));
    QVERIFY(message_of<UsageError>([&] { resume(run, {0, {}, false}); }).contains("it can go on from 8"));
    QCOMPARE(resume(run, {{}, {"training.learning_rate=0.0005"}, false}), RunState::diverged);  // from the spoilt weights again
    QCOMPARE(Run(run).find("train/loss")->step, std::vector<double>{9});
  }

  /// Without a checkpoint that is named it is the last before the loss left its course, or the beginning.
  void goesBackToTheBeginning() {
    const fs::path run = diverged("start");
    QCOMPARE(resume(run, {0, {}, false}), RunState::finished);
    QCOMPARE(comparable_journal(run), comparable_journal(whole()));
    QCOMPARE(checkpoint_difference(step_file(run, kCheckpoints, 12), step_file(whole(), kCheckpoints, 12)), QString());
  }

 private:
  fs::path path(const char* name) const { return folder_.filePath(name).toStdString(); }

  fs::path whole() {
    const fs::path run = path("whole");
    if (!holds_run(run)) work_on(run, tiny_config());
    return run;
  }

  static RunState resume(const fs::path& run, const ResumeOptions& options, bool stop_at_once = false) {
    const std::atomic<bool> stop = stop_at_once;
    return resume_run(run, {}, stop, options);
  }

  /// Puts a NaN among the weights of the checkpoint of step 8.
  static void spoil(const fs::path& run) {
    Checkpoint checkpoint = read_checkpoint(step_file(run, kCheckpoints, 8));
    checkpoint.state.weights[2].tensor.data<float>()[1] = std::nanf("");
    write_checkpoint(step_file(run, kCheckpoints, 8), checkpoint);
  }

  /// A run whose checkpoint of step 8 has a NaN among its weights, and that was resumed from there.
  fs::path diverged(const char* name) {
    const fs::path run = path(name);
    fs::copy(path("stopped"), run, fs::copy_options::recursive);
    spoil(run);
    if (work_on(run, tiny_config()).state != RunState::diverged) qFatal("it did not diverge");
    // The journal's losses up to step 8 are good, so the spoilt checkpoint seems on course: it is not the one to go back to here.
    return run;
  }

  QTemporaryDir folder_;
  std::unique_ptr<TinyCorpus> corpus_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::DivergenceTest)
#include "divergence_test.moc"
