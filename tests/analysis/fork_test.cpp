#include <QtTest>

#include "analysis/training/branches.h"
#include "models/corpus/sha256.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Runs that begin from another run's checkpoint, by hand or as cooldown branches of a run at work.
class ForkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    corpus_ = std::make_unique<TinyCorpus>();
    parent_ = path("parent");
    QCOMPARE(work_on(parent_, with({{"schedule", "constant"}, {"keep_checkpoints", {0.25, 6}}})).state, RunState::finished);
  }

  void kept_checkpoints_stay() { QCOMPARE(step_files(parent_, kCheckpoints), (std::vector<int64_t>{3, 6, 8, 12})); }

  /// With the parent's own settings a fork is the rest of the parent.
  void an_unchanged_fork_is_the_parents_rest() {
    const auto before = contents(parent_);
    const fs::path directory = path("rest");
    QCOMPARE(fork({parent_, 6}, directory), RunState::finished);
    QVERIFY(contents(parent_) == before);
    QVERIFY(records_behind(directory, 0) == records_behind(parent_, 6));
    Checkpoint ours = read_checkpoint(step_file(directory, kCheckpoints, 12)),
               theirs = read_checkpoint(step_file(parent_, kCheckpoints, 12));
    QCOMPARE(ours.state.data_position, theirs.state.data_position);
    for (size_t i = 0; i < ours.state.weights.size(); ++i)
      QVERIFY(std::memcmp(ours.state.weights[i].tensor.raw(), theirs.state.weights[i].tensor.raw(),
                          static_cast<size_t>(ours.state.weights[i].tensor.bytes())) == 0);
    const nlohmann::json parent = read_run_info(directory).provenance.at("parent");
    QCOMPARE(parent.at("step").get<int64_t>(), int64_t{6});
    QCOMPARE(parent.at("path").get<std::string>(), fs::absolute(parent_).string());
    QCOMPARE(parent.at("checkpoint_sha256").get<std::string>(), checkpoint_hash(step_file(parent_, kCheckpoints, 6)));
    QCOMPARE(read_run_info(directory).name, std::string("tiny, fork of step 6"));
  }

  void a_fork_is_resumed_from_where_it_began() {
    const fs::path whole = path("whole"), parts = path("parts");
    const Fork cooled{parent_, 6, {"training.schedule=wsd", "training.cooldown_steps=5", "training.steps=11"}};
    QCOMPARE(fork(cooled, whole), RunState::finished);
    QCOMPARE(fork(cooled, parts, 7), RunState::stopped);
    fs::remove(step_file(parts, kCheckpoints, 7));  // as if killed before its first own checkpoint
    QCOMPARE(work_on(parts, tiny_config()).state, RunState::finished);
    QCOMPARE(checkpoint_difference(step_file(whole, kCheckpoints, 11), step_file(parts, kCheckpoints, 11)), QString());
    const RunConfig config = fork_config(cooled);
    QCOMPARE(config.training.min_lr_ratio, 0.0);  // wsd's default, not the one that the parent never used
    const Run run(whole);
    const Series* rate = run.find("learning_rate");
    QVERIFY(rate && std::abs(rate->value.back()) < 1e-12 && rate->value.front() < config.training.learning_rate);
  }

  /// Between the checkpoint that it begins with and its first record; its steps before that are the parent's, not lost.
  void a_fork_killed_at_its_first_record_has_lost_nothing() {
    const fs::path directory = path("no-record");
    QCOMPARE(fork({parent_, 6}, directory, 7), RunState::stopped);
    fs::remove(step_file(directory, kCheckpoints, 7));
    fs::resize_file(directory / "journal.jsonl", 0);
    RunInfo info = read_run_info(directory);
    info.state = RunState::created;
    info.records = 0;
    info.step = 0;
    write_run_info(info);
    QCOMPARE(work_on(directory, tiny_config()).state, RunState::finished);
    QCOMPARE(QString::fromStdString(Run(directory).lost()), QString());
    QVERIFY(records_behind(directory, 0) == records_behind(parent_, 6));
  }

  void refuses_another_model_in_words_data() {
    QTest::addColumn<QStringList>("overrides");
    QTest::addColumn<QStringList>("words");
    QTest::newRow("width") << QStringList{"architecture.width=32"}
                           << QStringList{"architecture.width is 32, was 16", "embedding would be [257, 32], the checkpoint has [257, 16]"};
    QTest::newRow("layers") << QStringList{"architecture.layers=1"}
                            << QStringList{"architecture.layers is 1, was 2", "there would be no layer1."};
    QTest::newRow("optimizer") << QStringList{"training.optimizer=muon"}
                               << QStringList{"training.optimizer is muon, was adamw", "momentum"};
    QTest::newRow("precision") << QStringList{"precision=f64"} << QStringList{"would be f64, the checkpoint has f32"};
    QTest::newRow("tokenizer") << QStringList{"data.tokenizer=bpe:300"} << QStringList{"data.tokenizer is bpe:300, was bytes"};
    QTest::newRow("steps") << QStringList{"training.steps=6", "training.keep_checkpoints=[]"}
                           << QStringList{"expected more than the 6 steps"};
  }
  void refuses_another_model_in_words() {
    QFETCH(QStringList, overrides);
    QFETCH(QStringList, words);
    Fork changed{parent_, 6};
    for (const QString& o : overrides) changed.overrides.push_back(o.toStdString());
    try {
      fork(changed, path("refused"));
      QFAIL("it was taken");
    } catch (const UsageError& error) {
      for (const QString& part : words) QVERIFY2(QString(error.what()).contains(part), error.what());
    }
    QVERIFY(!fs::exists(path("refused")));
  }

  void refuses_a_step_without_checkpoint() {
    try {
      fork_config({parent_, 7});
      QFAIL("there is none");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).contains("3, 6, 8 or 12"), error.what());
    }
  }

  void other_text_begins_at_its_beginning() {
    const fs::path directory = path("other");
    fork({parent_, 8, {"training.seed=2", "training.steps=10"}}, directory);
    QCOMPARE(read_checkpoint(step_file(directory, kCheckpoints, 10)).state.data_position, uint64_t{4});
    QCOMPARE(read_checkpoint(step_file(directory, kCheckpoints, 8)).state.data_position, uint64_t{0});
  }

  /// A branch from where an evaluation first finds a loss is one from that step; stopped between, it is the same.
  void cooldown_branches_at_losses() {
    const nlohmann::json wsd{{"schedule", "wsd"}, {"cooldown_share", 0.25}, {"evaluate_every", 2}, {"checkpoint_every", 5}};
    const fs::path plain = path("losses-plain");
    QCOMPARE(work_on(plain, with(wsd)).state, RunState::finished);
    const Run run(plain);
    const Series& losses = *run.find("validation/loss");
    const auto at = [&](double step) {
      return losses.value[static_cast<size_t>(std::find(losses.step.begin(), losses.step.end(), step) - losses.step.begin())];
    };
    QVERIFY(at(6) < at(4) && at(6) < at(2));  // it falls
    nlohmann::json by_step = wsd, by_loss = wsd;
    by_step["cooldown_at"] = {6};
    by_loss["cooldown_at_loss"] = {0.01, (at(4) + at(6)) / 2};  // the first is never reached
    const fs::path stepped = path("stepped"), whole = path("at-loss"), parts = path("at-loss-parts");
    QCOMPARE(work_on(stepped, with(by_step)).state, RunState::finished);
    QCOMPARE(work_on(whole, with(by_loss)).state, RunState::finished);
    for (const int64_t stop : {5, 6, 7}) QCOMPARE(work_on(parts, with(by_loss), stop).state, RunState::stopped);
    QCOMPARE(work_on(parts, with(by_loss)).state, RunState::finished);
    for (const fs::path& trunk : {whole, parts}) {
      QVERIFY(comparable_journal(plain) == comparable_journal(trunk));
      QCOMPARE(std::distance(fs::directory_iterator(trunk / "branches"), fs::directory_iterator()), std::ptrdiff_t{1});
      QVERIFY(comparable_journal(branch_directory(trunk, 6)) == comparable_journal(branch_directory(stepped, 6)));
      QVERIFY(fs::exists(step_file(trunk, kCheckpoints, 6)));
    }
  }

  /// The trunk is the same run with and without branches, and a branch is what a fork with its settings is.
  void cooldown_branches() {
    const nlohmann::json wsd{{"schedule", "wsd"}, {"cooldown_share", 0.25}};
    nlohmann::json branching = wsd;
    branching["cooldown_at"] = {0.25, 6};
    const fs::path plain = path("plain"), trunk = path("trunk");
    QCOMPARE(work_on(plain, with(wsd)).state, RunState::finished);
    QCOMPARE(work_on(trunk, with(branching)).state, RunState::finished);
    QVERIFY(comparable_journal(plain) == comparable_journal(trunk));
    for (const int64_t step : {3, 6}) {
      const RunInfo info = read_run_info(branch_directory(trunk, step));
      QCOMPARE(info.state, RunState::finished);
      QCOMPARE(info.step, step == 3 ? int64_t{4} : int64_t{8});  // a quarter of the branch's own steps
      QCOMPARE(info.provenance.at("parent").at("step").get<int64_t>(), step);
    }
    const fs::path by_hand = path("by_hand");
    fork({trunk, 6, {"training.cooldown_steps=2", "training.steps=8", "training.cooldown_at=[]"}}, by_hand);
    QVERIFY(comparable_journal(by_hand) == comparable_journal(branch_directory(trunk, 6)));
    QCOMPARE(find_runs(trunk).size(), size_t{1});
    const auto all = find_runs(folder_.path().toStdString());
    QVERIFY(std::find(all.begin(), all.end(), branch_directory(trunk, 6)) != all.end());
  }

  void a_stopped_branch_is_taken_up_again() {
    const nlohmann::json branching{{"schedule", "wsd"}, {"cooldown_share", 0.5}, {"cooldown_at", {4, 5}}};
    const fs::path whole = path("whole_trunk"), parts = path("stopped_trunk");
    QCOMPARE(work_on(whole, with(branching)).state, RunState::finished);
    std::atomic<bool> stop = false;
    RunProgress progress;
    progress.message = [&](const std::string& line) { stop = stop || line.find("cooldown branch from step 5") == 0; };
    QCOMPARE(train_run(with(branching), parts, progress, stop), RunState::stopped);
    QCOMPARE(read_run_info(branch_directory(parts, 5)).state, RunState::stopped);
    QCOMPARE(work_on(parts, tiny_config()).state, RunState::finished);
    QVERIFY(comparable_journal(whole) == comparable_journal(parts));
    for (const int64_t step : {4, 5}) {
      QCOMPARE(read_run_info(branch_directory(parts, step)).state, RunState::finished);
      QCOMPARE(checkpoint_difference(step_file(branch_directory(whole, step), kCheckpoints, 2 * step),
                                     step_file(branch_directory(parts, step), kCheckpoints, 2 * step)),
               QString());
    }
  }

  void refuses_branches_in_the_cooldown() {
    for (const double at : {1.0, 11.0}) try {
        with({{"schedule", "wsd"}, {"cooldown_share", 0.25}, {"cooldown_at", {at}}});
        QFAIL("no place for a branch");
      } catch (const UsageError& error) {
        QVERIFY2(QString(error.what()).contains("expected steps between the warm-up and the cooldown, 2 to 9"), error.what());
      }
  }

  void weights_of_domains_are_counted() {
    nlohmann::json object = to_json(tiny_config());
    object["data"].update({{"train", {"prose", "code"}}, {"ood", nlohmann::json::array()}, {"weights", {3, 1}}});
    const fs::path directory = path("weights");
    QCOMPARE(work_on(directory, resolve_config(object, "test")).state, RunState::finished);
    nlohmann::json last;
    JournalReader(directory / "journal.jsonl").poll([&](const Record& record) {
      if (record.at("type") == "data") last = record;
    });
    QCOMPARE(last.at("step").get<int64_t>(), int64_t{12});
    int64_t sequences = 0;
    for (const auto& use : last.at("domains")) sequences += use.at("sequences").get<int64_t>();
    QCOMPARE(sequences, int64_t{24});
    QVERIFY(last.at("domains").at(0).at("sequences") > last.at("domains").at(1).at("sequences"));
    QVERIFY(last.at("domains").at(0).at("epochs") > 0);
  }

 private:
  fs::path path(const char* name) { return folder_.filePath(name).toStdString(); }
  static RunConfig with(const nlohmann::json& training) {
    nlohmann::json object = to_json(tiny_config());
    if (training.contains("schedule") && training.at("schedule") == "wsd") object["training"].erase("min_lr_ratio");
    object["training"].update(training);
    return resolve_config(object, "test");
  }
  static RunState fork(const Fork& fork, const fs::path& directory, int64_t stop_after = 0) {
    std::atomic<bool> stop = false;
    RunProgress progress;
    progress.step = [&](const StepRecord& step, const EvaluationRecord*) { stop = stop_after > 0 && step.step >= stop_after; };
    return fork_run(fork, fork_config(fork), directory, progress, stop);
  }
  /// Every file with the hash of its bytes.
  static std::map<std::string, std::string> contents(const fs::path& directory) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(directory))
      if (entry.is_regular_file()) all[entry.path().string()] = hex(sha256(read_text(entry.path())));
    return all;
  }
  static std::vector<std::string> records_behind(const fs::path& directory, int64_t step) {
    std::vector<std::string> lines;
    for (const std::string& line : comparable_journal(directory))
      if (const auto record = nlohmann::json::parse(line); record.at("step") > step) lines.push_back(line);
    return lines;
  }

  QTemporaryDir folder_;
  std::unique_ptr<TinyCorpus> corpus_;
  fs::path parent_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ForkTest)
#include "fork_test.moc"
