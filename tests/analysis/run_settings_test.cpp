#include "analysis/comparison/run_settings.h"

#include <QTemporaryDir>
#include <QtTest>

#include "analysis/comparison/run_totals.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

class RunSettingsTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  std::vector<std::unique_ptr<Run>> runs_;

  std::unique_ptr<Run> made(const char* name, const FixtureOptions& options, const RunNotes& notes = {}) const {
    const std::filesystem::path directory = std::filesystem::path(folder_.path().toStdString()) / name;
    write_fixture(directory, options);
    if (!(notes == RunNotes{})) write_notes(directory, notes);
    return std::make_unique<Run>(directory);
  }
  static RunFacts facts(const Run& run) { return {run.info(), &run.notes(), "Done"}; }
  static std::vector<std::string> keys(const std::vector<RunSetting>& settings) {
    std::vector<std::string> all;
    for (const RunSetting& setting : settings) all.push_back(setting.key);
    return all;
  }
  static std::string texts(const RunFacts& run, const char* key) {
    std::string all;
    for (const SettingValue& value : values_of(run, key)) all += (all.empty() ? "" : "|") + value.text + (value.set ? "" : "?");
    return all;
  }

 private Q_SLOTS:
  void initTestCase() {
    runs_.push_back(made("a", {.mixer = "top1_chunk", .chunk = 32}, {false, {"paper", "figure 2"}, ""}));
    runs_.push_back(made("b", {.seed = 2}));
    runs_.push_back(made("c", {.layers = 12}));
  }

  /// Usual ones first and in their order; what is the same everywhere and names of runs are no choice.
  void says_in_what_runs_differ() {
    const auto found = differing_settings({facts(*runs_[0]), facts(*runs_[1]), facts(*runs_[2])});
    QCOMPARE(keys(found), (std::vector<std::string>{"architecture", "/architecture/mixer", "/architecture/layers", "/training/seed", "tag",
                                                    "/architecture/chunk"}));
    QCOMPARE(found[2].title, std::string("layers"));
    QVERIFY(found[4].usual && !found[5].usual);
    QVERIFY(differing_settings({facts(*runs_[1])}).empty());
    QVERIFY(differing_settings({}).empty());
    RunFacts studied = facts(*runs_[1]), running = facts(*runs_[1]);
    studied.study = "widths", running.state = "Running";
    QCOMPARE(keys(differing_settings({studied, running})), (std::vector<std::string>{"study", "state"}));
  }

  void gives_each_run_its_values() {
    QCOMPARE(texts(facts(*runs_[0]), "tag"), std::string("paper|figure 2"));
    QCOMPARE(texts(facts(*runs_[1]), "tag"), std::string("no tag?"));
    QCOMPARE(texts(facts(*runs_[0]), "architecture"), std::string("Top-1 Chunk exact"));
    QCOMPARE(texts(facts(*runs_[0]), "/data/ood"), std::string("c + python"));
    QCOMPARE(texts(facts(*runs_[0]), "/architecture/window"), std::string("not set?"));
    QCOMPARE(texts(facts(*runs_[0]), "host"), std::string("this machine?"));
    QCOMPARE(texts(facts(*runs_[0]), "no such key"), std::string("not set?"));
  }

  void keys_of_odd_configs_are_found_again() {
    RunInfo info = runs_[1]->info(), other = info;
    info.config["odd"] = {{"a/b~c", 1}};
    const std::vector<RunSetting> found = differing_settings({{info}, {other}});
    QCOMPARE(found.size(), size_t{1});
    QCOMPARE(texts({info}, found[0].key.c_str()), std::string("1"));
    QCOMPARE(texts({other}, found[0].key.c_str()), std::string("not set?"));
  }

  /// 2 before 10, numbers before words, what is not set last.
  void values_have_an_order() {
    std::vector<SettingValue> values{{"none", {}, false}, {"10", 10.0}, {"b"}, {"2", 2.0}, {"a"}};
    std::sort(values.begin(), values.end());
    std::string all;
    for (const SettingValue& value : values) all += value.text + " ";
    QCOMPARE(all, std::string("2 10 a b none "));
  }

  /// Means of seeds, the best of several settings, nothing where other data or tokens were read, and only of what is done.
  void totals_mean_something() {
    const auto seed = made("s1", {.seed = 1}), stopped = made("s3", {.seed = 3, .end = RunState::stopped});
    const RunTotals seeds = totals_of({seed.get(), runs_[1].get(), stopped.get()});
    QVERIFY(seeds.one_setting && seeds.comparable);
    QCOMPARE(seeds.loss.count, int64_t{2});
    const double one = fixture_loss({.seed = 1}, 200), two = fixture_loss({.seed = 2}, 200);
    QVERIFY(std::abs(seeds.loss.mean - (one + two) / 2) < 1e-9);
    QVERIFY(std::abs(seeds.loss.deviation - (two - one) / std::sqrt(2.0)) < 1e-9);
    QVERIFY(std::abs(seeds.loss.best - one) < 1e-9 && std::abs(seeds.ood.best - 1.25 * one) < 1e-9);
    QVERIFY(!totals_of({seed.get(), runs_[0].get()}).one_setting);
    QCOMPARE(totals_of({stopped.get()}).loss.count, int64_t{0});
    RunInfo info = fixture_info({.seed = 4});
    info.config["data"]["tokenizer"] = "bpe";
    const auto directory = std::filesystem::path(folder_.path().toStdString()) / "other";
    {
      RunWriter writer = RunWriter::create(directory, info);
      writer.set_state(RunState::running, 0);
      for (int64_t step = 1; step <= 20; ++step) writer.add(fixture_step({}, step));
      writer.add(fixture_evaluation({}, 20));
      writer.set_state(RunState::finished, 20);
    }
    const Run other(directory);
    const RunTotals mixed = totals_of({seed.get(), &other});
    QVERIFY(!mixed.comparable);
    QCOMPARE(mixed.loss.count, int64_t{0});
    QVERIFY(std::isnan(mixed.loss.best));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RunSettingsTest)
#include "run_settings_test.moc"
