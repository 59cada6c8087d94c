// A study of a thousand runs is listed quickly.
#include <sys/resource.h>

#include <QElapsedTimer>
#include <algorithm>
#include <cmath>

#include "analysis/runs/journal.h"
#include "analysis/studies/study_folder.h"
#include "tests/app/study_fixture.h"
#include "tests/support/instrumented.h"

using namespace saccade;
using namespace saccade::test;
namespace fs = std::filesystem;

class StudyListTest : public StudyTest {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  /// Made-up runs, written without the program: a thousand of them are listed in a second.
  void listsAThousandRuns() {
    Json file = small_study(Program::config());
    file.erase("tuning");
    file["axes"][0] = {{"setting", "training.learning_rate"}, {"log_range", {{"from", 0.0001}, {"to", 0.1}, {"count", 250}}}};
    file["seeds"] = {1, 2, 3, 4};
    write_study("thousand.json", file);
    const Study study = load_study(folder("thousand.json"));
    create_study_folder(folder("thousand"), study);
    for (const WantedRun& wanted : view_study(study, {}).wanted) write_made_up(folder("thousand") / "runs" / wanted.name, wanted.run);
    const auto processor = [] {
      rusage used{};
      ::getrusage(RUSAGE_CHILDREN, &used);
      const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
      return seconds(used.ru_utime) + seconds(used.ru_stime);
    };
    /// Seconds of one of three looks, at least: by the clock, or of processors where others keep the machine busy.
    const auto least_of_three = [&](const char* look, bool anew) {
      double by_clock = INFINITY, of_processors = INFINITY;
      for (int i = 0; i < 3; ++i) {
        if (anew) fs::remove(folder("thousand") / "index.json");  // then every journal is read
        const double before = processor();
        QElapsedTimer clock;
        clock.start();
        const auto result = program_.run({"study", "status", program_.path("thousand")});
        by_clock = std::min(by_clock, static_cast<double>(clock.elapsed()) / 1e3);
        of_processors = std::min(of_processors, processor() - before);
        if (result.code != 0 || !result.out.contains("1000 finished")) qFatal("%s", qPrintable(result.err + result.out.left(400)));
      }
      qInfo("status of 1 000 runs, %s: %.2f s, of processors %.2f s", look, by_clock, of_processors);
      return std::min(by_clock, of_processors);
    };
    QVERIFY(least_of_three("the first look", true) <= 1 * kSlower);
    QVERIFY(least_of_three("later", false) <= 1 * kSlower);
  }

 private:
  static void write_made_up(const fs::path& directory, const StudyRun& run) {
    fs::create_directories(directory);
    const Json config = to_json(run.config);
    const Json object{{"format_version", 1},
                      {"name", run.config.name},
                      {"title", "Transformer++"},
                      {"state", "finished"},
                      {"message", ""},
                      {"step", 40},
                      {"steps", 40},
                      {"seed", run.seed},
                      {"parameters", 1000},
                      {"config", config},
                      {"provenance", {{"config_hash", config_hash(config)}}}};
    std::ofstream(directory / "run.json") << object.dump(2);
    std::ofstream journal(directory / "journal.jsonl");
    int64_t number = 0;
    for (int64_t step = 1; step <= 40; ++step) {
      const Position at{step, step * 128, static_cast<double>(step), static_cast<double>(step)};
      journal << journal_line(number++, to_record(StepRecord{step, at.tokens, at.flops, at.seconds, 3.0, 1e-3, 1, 1000}));
      if (step % 10 == 0)
        journal << journal_line(number++, to_record(EvaluationRecord{at, {{"prose", false, 2, 0.1}, {"code", true, 3, 0.1}}}));
    }
    journal << journal_line(number, state_record(RunState::finished, 40, ""));
  }
};

QTEST_GUILESS_MAIN(StudyListTest)
#include "study_list_test.moc"
