#include <QtTest>

#include "analysis/runs/results_file.h"
#include "analysis/tasks/task_run.h"
#include "analysis/training/loss_course.h"
#include "kernels/engine/error.h"
#include "models/tasks/symbol_task.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;
using nlohmann::json;

/// Runs that train on generated tasks.
class SymbolTrainingTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  TinyCorpus corpus_;

  fs::path path(const char* name) const { return folder_.filePath(name).toStdString(); }
  static json facts(int steps) {
    return {{"architecture", {{"block", "llama"}, {"mixer", "attention"}, {"width", 32}, {"layers", 1}, {"heads", 2}}},
            {"data", {{"task", "mad-memorization"}, {"train", {"length-8-vocabulary-33"}}}},
            {"training",
             {{"steps", steps},
              {"batch_tokens", 128},
              {"learning_rate", 0.02},
              {"warmup_steps", 2},
              {"evaluate_every", 5},
              {"evaluation_tokens", 512},
              {"checkpoint_every", 20},
              {"probe_every", 20},
              {"stop_at_accuracy", 0.99}}},
            {"device", "cpu"}};
  }
  static std::vector<double> losses(const fs::path& run) { return recorded_history(run).find("train/loss")->value.values(); }

 private Q_SLOTS:
  void a_config_is_completed() {
    const RunConfig config = resolve_config({{"data", {{"task", "mqar"}}}, {"training", {{"batch_tokens", 640}}}}, "test");
    QCOMPARE(config.data.train, std::vector<std::string>{"length-64-pairs-4-examples-100000"});
    QCOMPARE(config.data.ood, symbol_task("mqar").test);
    QCOMPARE(config.data.sequence_length, int64_t{64});
    QCOMPARE(config.data.tokenizer, std::string("symbols:8192"));
    QCOMPARE(config.data.corpus, std::string());
    QCOMPARE(to_json(resolve_config(to_json(config), "again")), to_json(config));
    const auto refused = [](json data, const char* why) {
      data.emplace("task", "mqar");
      try {
        resolve_config({{"data", data}, {"training", {{"batch_tokens", 640}}}}, "test");
      } catch (const UsageError& error) {
        return QString(error.what()).contains(why);
      }
      return false;
    };
    QVERIFY(refused({{"task", "mqra"}}, "did you mean \"mqar\""));
    QVERIFY(refused({{"train", {"prose"}}}, "length-64-pairs-4"));
    QVERIFY(refused({{"train", {"lenght-64"}}}, "did you mean \"length\""));
    QVERIFY(refused({{"sequence_length", 32}}, "at least 64"));
    QVERIFY(refused({{"tokenizer", "bytes"}}, "symbols:8192"));
    QVERIFY(refused({{"corpus", "local-text"}}, "takes the place of a corpus"));
    QVERIFY(refused({{"packing", "document"}}, "takes the place of a corpus"));
    QVERIFY_THROWS_EXCEPTION(UsageError, resolve_config({{"training", {{"stop_at_accuracy", 0.9}}}}, "text"));

    const json batch = {{"batch_tokens", 10240}};
    const RunConfig text = resolve_config({{"data", {{"task", "s-niah-1-bytes"}}}, {"training", batch}}, "test");
    QCOMPARE(text.data.tokenizer, std::string("bytes"));
    QCOMPARE(text.data.sequence_length, int64_t{1024});
    const json symbols = {{"task", "s-niah-1-bytes"}, {"tokenizer", "symbols:256"}};
    QVERIFY_THROWS_EXCEPTION(UsageError, resolve_config({{"data", symbols}, {"training", batch}}, "test"));
  }

  /// Facts are learned, the run ends there, and what it says of itself is what an evaluation finds.
  void it_learns_and_ends() {
    const fs::path run = path("facts");
    std::atomic<bool> stop = false;
    const RunConfig config = resolve_config(facts(2000), "facts");
    QCOMPARE(train_run(config, run, {}, stop), RunState::finished);
    const RunHistory history = recorded_history(run);
    QVERIFY2(history.step() < 2000, qPrintable(QString::number(history.step())));
    const Series* accuracy = history.find("validation/accuracy/length-8-vocabulary-33");
    QVERIFY(accuracy && accuracy->value.values().back() >= 0.99 && accuracy->value.values().front() < 0.9);
    QCOMPARE(step_files(run, kCheckpoints).back(), history.step());
    QVERIFY(results_file_is_current(read_run_info(run)));
    QCOMPARE(resume_run(run, {}, stop), RunState::finished);

    // ended by kill -9 between its last evaluation and its end: it ends at the same step, and measures nothing twice
    const fs::path killed = path("killed");
    fs::copy(run, killed, fs::copy_options::recursive);
    const std::string journal = read_text(run / "journal.jsonl");
    fs::resize_file(killed / "journal.jsonl", journal.rfind("{\"n\":"));
    RunInfo info = read_run_info(killed);
    info.state = RunState::running;
    write_run_info(info);
    QCOMPARE(resume_run(killed, {}, stop), RunState::finished);
    QCOMPARE(recorded_history(killed).step(), history.step());
    QCOMPARE(recorded_history(killed).find("validation/accuracy/length-8-vocabulary-33")->value.values(), accuracy->value.values());
    QCOMPARE(step_files(killed, kCheckpoints), step_files(run, kCheckpoints));

    TaskRunOptions options;
    options.samples = 50;
    const Task task = at_difficulties(find_task("mad-memorization"), {}, {"length-8-vocabulary-33"}).front();
    const TaskResult result = evaluate_task(run, task, options, {}, stop);
    QVERIFY(result.score().metric == "acc" && result.score().value >= 0.99 && result.score().items == 200);
    QCOMPARE(result.answers.size(), size_t{50});
    QVERIFY(evaluate_task(run, task, options, {}, stop).cached);
    QCOMPARE(recorded_history(run).task_scores().back().task, std::string("mad-memorization-length-8-vocabulary-33"));
    QVERIFY_THROWS_EXCEPTION(UsageError,
                             evaluate_task(run, at_difficulties(find_task("mqar"), {}, {"length-64-pairs-4"}).front(), options, {}, stop));
    QVERIFY_THROWS_EXCEPTION(UsageError, at_difficulties(find_task("mqar"), {64}, {}));
  }

  /// Stopped and taken up: the same losses. Tests beyond the trained length, by position and by distance.
  void it_resumes_and_is_tested_beyond() {
    json object = facts(30);
    object["architecture"]["mixer"] = "deltanet";
    object["data"] = {{"task", "copying"}, {"train", {"length-16-least-4-vocabulary-8"}}, {"ood", {"length-32-vocabulary-8"}}};
    object["training"].erase("stop_at_accuracy");
    const RunConfig config = resolve_config(object, "copying");
    const fs::path whole = path("whole"), parts = path("parts");
    std::atomic<bool> stop = false;
    QCOMPARE(train_run(config, whole, {}, stop), RunState::finished);
    RunProgress progress;
    progress.step = [&](const StepRecord& step, const EvaluationRecord*) { stop = step.step == 13; };
    QCOMPARE(train_run(config, parts, progress, stop), RunState::stopped);
    stop = false;
    QCOMPARE(resume_run(parts, {}, stop), RunState::finished);
    QCOMPARE(losses(parts), losses(whole));
    QVERIFY(recorded_history(whole).find("ood/accuracy/length-32-vocabulary-8"));

    TaskRunOptions options;
    options.samples = 20;
    const TaskResult result =
        evaluate_task(whole, at_difficulties(find_task("copying"), {}, {"length-32-vocabulary-8"}).front(), options, {}, stop);
    std::map<std::string, int64_t> items;
    for (const TaskScore& s : result.scores) items[s.metric] = s.items;
    QCOMPARE(items,
             (std::map<std::string, int64_t>{{"acc", 320}, {"exact", 20}, {"acc distance 16-31", 320}, {"acc position 16-31", 320}}));
  }

  /// What trains on a task's bytes is also asked in text, by generation.
  void what_trains_on_bytes_is_asked_in_text() {
    json object = facts(4);
    object["data"] = {{"task", "passkey-bytes"}, {"train", {"length-128"}}, {"ood", {"length-256"}}};
    object["training"].erase("stop_at_accuracy");
    const fs::path run = path("passkeys");
    std::atomic<bool> stop = false;
    QCOMPARE(train_run(resolve_config(object, "passkeys"), run, {}, stop), RunState::finished);
    QVERIFY(recorded_history(run).find("ood/accuracy/length-256"));
    TaskRunOptions options;
    options.items.limit = 9;
    const TaskResult asked = evaluate_task(run, at_difficulties(find_task("passkey"), {267}, {}).front(), options, {}, stop);
    QVERIFY(asked.score().items == 9 && asked.score().value >= 0 && asked.score().value <= 1);
    options.items.limit = 0, options.samples = 20;
    const TaskResult told = evaluate_task(run, at_difficulties(find_task("passkey-bytes"), {}, {"length-128"}).front(), options, {}, stop);
    QVERIFY(told.score().metric == "acc" && told.score().items > 20 * 5 && told.score().items <= 20 * 7);
    QVERIFY_THROWS_EXCEPTION(UsageError,
                             evaluate_task(run, at_difficulties(find_task("mqar"), {}, {"length-64-pairs-4"}).front(), options, {}, stop));
  }

  /// A trained table of positions ends where training does.
  void a_test_beyond_positions_is_refused() {
    json object = facts(5);
    object["architecture"]["block"] = "gpt";
    object["data"] = {{"task", "parity"}, {"train", {"length-16"}}, {"ood", {"length-32"}}};
    object["training"].erase("stop_at_accuracy");
    std::atomic<bool> stop = false;
    try {
      train_run(resolve_config(object, "parity"), path("gpt"), {}, stop);
      QFAIL("it trained");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).contains("/data/ood names \"length-32\""), error.what());
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SymbolTrainingTest)
#include "symbol_training_test.moc"
