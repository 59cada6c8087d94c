#include <QtTest>

#include "analysis/comparison/comparison.h"
#include "tests/analysis/compared_runs.h"

namespace saccade::test {

/// What makes runs incomparable is named.
class ComparisonWarningsTest : public QObject {
  Q_OBJECT
  std::unique_ptr<ComparedRuns> runs_;
  std::vector<Run> write(const std::vector<FixtureOptions>& all) const { return runs_->write(all); }
  static std::vector<const Run*> pointers_to(const std::vector<Run>& runs) { return ComparedRuns::pointers_to(runs); }

 private Q_SLOTS:
  void init() { runs_ = std::make_unique<ComparedRuns>(); }

  void namesDifferencesOfTraining_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("warning");
    const auto row = [](const char* pointer, const char* value, const char* warning) {
      QTest::newRow(pointer) << pointer << value << (QStringLiteral("attention-seed2: ") + warning);
    };
    row("/provenance/precision", "\"f64\"", "compute in f64 (attention-seed1: f32)");
    row("/config/training/schedule", "\"linear\"", "are trained with schedule linear (attention-seed1: cosine)");
    row("/config/training/max_grad_norm", "0", "are trained with max_grad_norm 0 (attention-seed1: 1.0)");
    row("/config/training/weight_decay", "0.2", "are trained with weight_decay 0.2 (attention-seed1: 0.1)");
    row("/config/training/learning_rate", "0.01", "are trained with learning_rate 0.01 (attention-seed1: 0.001)");
    row("/config/training/probe_every", "3", "");
    row("/config/device", "\"cuda:3\"", "");
  }
  void namesDifferencesOfTraining() {
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, warning);
    const auto runs = write({ComparedRuns::small(1, 0), ComparedRuns::small(2, 0)});
    const Run first = ComparedRuns::rewritten(runs[0], "/provenance/precision", "\"f32\""),
              same = ComparedRuns::rewritten(runs[1], "/provenance/precision", "\"f32\"");
    QVERIFY(compare({&first, &same}).warnings.empty());
    const Run changed = ComparedRuns::rewritten(runs[1], pointer, value);
    const Comparison c = compare({&first, &changed});
    const bool named = !warning.endsWith(": ");
    QCOMPARE(c.warnings, named ? std::vector<std::string>{warning.toStdString()} : std::vector<std::string>{});
  }

  /// What only one schedule has is no other difference than the schedule.
  void settingsOfAnotherScheduleAreNotNamed() {
    const auto runs = write({ComparedRuns::small(1, 0), ComparedRuns::small(2, 0)});
    RunInfo info = read_run_info(runs[1].info().directory);
    info.config["training"]["schedule"] = "wsd", info.config["training"]["cooldown_share"] = 0.2;
    write_run_info(info);
    const Run wsd(info.directory);
    std::string told;
    for (const std::string& warning : compare({&runs[0], &wsd}).warnings) told += warning + "\n";
    QVERIFY2(told.find("trained with schedule wsd (attention-seed1: cosine)") != std::string::npos, told.c_str());
    QVERIFY2(told.find("cooldown") == std::string::npos && told.find("null") == std::string::npos, told.c_str());
  }

  /// Two experiments under one name are told apart by their folders; seeds of one experiment share the name.
  void aNameOfTwoExperimentsHasItsFolder() {
    const auto runs = write({{.seed = 1, .layers = 2}, {.mixer = "avey", .seed = 1}, {.mixer = "avey", .seed = 2}});
    std::vector<Run> named;
    for (const Run& run : runs) {
      RunInfo info = read_run_info(run.info().directory);
      info.name = "mine", info.state = RunState::stopped;
      write_run_info(info);
      named.emplace_back(info.directory);
    }
    const std::vector<std::string> warnings = compare(pointers_to(named)).warnings;
    const std::string told = "mine (attention1-2), mine (avey1-3), mine (avey2-3): are not finished (stopped)";
    QVERIFY2(std::find(warnings.begin(), warnings.end(), told) != warnings.end(), warnings.front().c_str());
    const std::vector<std::string> seeds = compare({&named[1], &named[2]}).warnings;
    QVERIFY2(seeds.size() == 1 && seeds[0].starts_with("mine, mine: are not finished"), seeds.front().c_str());
  }

  void warnsOfRunsThatCannotBeCompared_data() {
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QByteArray>("value");
    QTest::addColumn<QString>("warning");
    const auto row = [](const char* name, const char* pointer, const char* value, const char* warning) {
      QTest::newRow(name) << QString::fromUtf8(pointer) << QByteArray(value) << QString::fromUtf8(warning);
    };
    row("corpus", "/provenance/corpus_hash", "", "another corpus");
    row("tokenizer", "/provenance/tokenizer_hash", "", "another tokenizer");
    row("length", "/config/data/sequence_length", "64", "another sequence length");
    row("evaluation", "/config/training/evaluation_tokens", "4096", "another number of tokens");
    row("domains", "/config/data/train", "[\"changed\"]", "other domains");
    row("parameters", "parameters", "", "more than 1 %");
    row("unfinished", "state", "", "not finished (stopped)");
  }
  void warnsOfRunsThatCannotBeCompared() {
    QFETCH(QString, pointer);
    QFETCH(QByteArray, value);
    QFETCH(QString, warning);
    const auto good = write({{.seed = 1}, {.seed = 2}});
    QVERIFY(compare(pointers_to(good)).warnings.empty());
    RunInfo info = read_run_info(good[1].info().directory);
    if (pointer == "parameters")
      info.parameters = 1'010'001;
    else if (pointer == "state")
      info.state = RunState::stopped;
    else if (pointer.startsWith("/config"))
      info.config[nlohmann::json::json_pointer(pointer.mid(7).toStdString())] = nlohmann::json::parse(value.toStdString());
    else
      info.provenance[pointer.section('/', -1).toStdString()] = "changed";
    write_run_info(info);
    const Run first(good[0].info().directory), changed(info.directory);
    const Comparison c = compare({&first, &changed});
    QCOMPARE(c.warnings.size(), size_t{1});
    const QString line = QString::fromStdString(c.warnings[0]);
    QVERIFY2(line.contains(warning) && line.contains("attention-seed2"), qPrintable(line));
    QVERIFY(QString::fromStdString(to_text(c)).contains("warning: "));
    if (pointer != "state") QVERIFY(compare({&first, &changed, &changed}).warnings == c.warnings);  // a name stands once
  }

  /// One run that is still young takes nothing from the others.
  void aYoungRunIsLeftOutAndNamed() {
    const auto runs =
        write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}, {.mixer = "avey", .seed = 1, .steps = 40, .end = RunState::stopped}});
    const Comparison whole = compare({&runs[0], &runs[1]}), with_young = compare(pointers_to(runs));
    QVERIFY(whole.equal_loss && with_young.equal_loss);
    QCOMPARE(*with_young.equal_loss, *whole.equal_loss);
    QVERIFY(with_young.rows[0].ood_at_equal.mean && with_young.rows[1].ood_at_equal.mean && !with_young.rows[2].ood_at_equal.mean);
    QCOMPARE(with_young.left_out.size(), size_t{1});
    QVERIFY(with_young.left_out[0].starts_with("avey-seed1, seed 1: has not come down to"));
    QVERIFY(whole.left_out.empty());
    // Where another experiment has its name, the folder tells whose it is.
    RunInfo info = read_run_info(runs[2].info().directory);
    info.name = "attention-seed1";
    write_run_info(info);
    const Run namesake(info.directory);
    const std::string left_out = compare({&runs[0], &runs[1], &namesake}).left_out.at(0);
    const std::string folder = info.directory.filename().string();
    QVERIFY2(left_out.starts_with("attention-seed1 (" + folder + "), seed 1: has not come down to"), left_out.c_str());
  }

  /// A run of a task at one length never will have an OOD loss; "not yet" would be waited for.
  void aRunWithoutOodDomainsSaysSo() {
    const auto runs = write({{.seed = 1}});
    RunInfo info = fixture_info({.seed = 2});
    info.config["data"]["ood"] = nlohmann::json::array();
    const QTemporaryDir folder;
    const std::filesystem::path directory = (folder.path() + "/run").toStdString();
    RunWriter writer = RunWriter::create(directory, info);
    const auto left_out = [&] {
      const Run run(directory);
      return compare({&runs[0], &run}).left_out;
    };
    QCOMPARE(left_out(), (std::vector<std::string>{"attention-seed2, seed 2: has no OOD domains"}));
    info.config["data"]["ood"] = {"c"};
    info.directory = directory;
    write_run_info(info);
    QCOMPARE(left_out(), (std::vector<std::string>{"attention-seed2, seed 2: has no OOD loss yet (step 0 of 200)"}));
  }

  /// Runs of studies are named by what differs, with commas: names stand apart all the same.
  void namesWithCommasStandApart() {
    const auto runs = write({{.seed = 1}, {.mixer = "top1_chunk", .seed = 1}, {.mixer = "avey", .seed = 1}});
    std::vector<Run> named;
    for (const Run& run : runs) {
      RunInfo info = read_run_info(run.info().directory);
      info.name = info.title + ", rate 0.1", info.state = RunState::stopped;
      write_run_info(info);
      named.emplace_back(info.directory);
    }
    const std::vector<std::string> warnings = compare(pointers_to(named)).warnings;
    const std::string told = "Transformer++, rate 0.1; Top-1 Chunk exact, rate 0.1; Avey, rate 0.1: are not finished (stopped)";
    QVERIFY2(std::find(warnings.begin(), warnings.end(), told) != warnings.end(), warnings.back().c_str());
  }

  /// Twenty runs that diverged are told in one line.
  void unfinishedRunsAreOneWarning() {
    std::vector<FixtureOptions> options{{.seed = 1}, {.mixer = "avey", .seed = 1, .end = RunState::stopped}};
    for (int64_t seed = 1; seed <= 5; ++seed) options.push_back({.mixer = "top1_chunk", .seed = seed, .end = RunState::diverged});
    const auto runs = write(options);
    const std::vector<std::string> warnings = compare(pointers_to(runs)).warnings;
    const auto told = [&](const std::string& line) { return std::count(warnings.begin(), warnings.end(), line); };
    QCOMPARE(told("avey-seed1: is not finished (stopped)"), std::ptrdiff_t{1});
    QCOMPARE(told("top1_chunk-seed1, top1_chunk-seed2, top1_chunk-seed3 and 2 more: are not finished (diverged)"), std::ptrdiff_t{1});
  }

  void onePercentOfParametersIsNear() {
    const auto runs = write({{.seed = 1}, {.seed = 2}});
    RunInfo info = read_run_info(runs[1].info().directory);
    info.parameters = 1'010'000;
    write_run_info(info);
    const Run changed(info.directory);
    QVERIFY(compare({&runs[0], &changed}).warnings.empty());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ComparisonWarningsTest)
#include "comparison_warnings_test.moc"
