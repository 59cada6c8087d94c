#include <sys/wait.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <csignal>
#include <fstream>

#include "analysis/runs/capture_file.h"
#include "analysis/runs/hdf5.h"
#include "analysis/runs/natural_order.h"
#include "analysis/runs/results_file.h"
#include "analysis/runs/run_info.h"
#include "analysis/training/training_run.h"
#include "tests/analysis/fixture.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/message.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Who may write where, what a reader sees while a run lives, dies or is damaged.
class RunDirectoryTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void followsALiveRun() {
    FixtureOptions options;
    RunWriter writer = RunWriter::create(path("live"), fixture_info(options));
    Run run(path("live"));
    QCOMPARE(run.info().state, RunState::created);
    writer.set_state(RunState::running, 0);
    for (int64_t step = 1; step <= 3; ++step) writer.add(fixture_step(options, step));
    QVERIFY(run.poll());
    QCOMPARE(run.info().state, RunState::running);
    QCOMPARE(run.info().step, int64_t{3});
    QVERIFY(!run.poll());
    writer.add(fixture_statistics(options, 3));
    QVERIFY(run.poll());
    QCOMPARE(run.last_statistics()->statistics.front().name, std::string("entropy"));
    QVERIFY(run.find("entropy/layer2"));
    writer.set_state(RunState::finished, 3);
    QVERIFY(run.poll());
    QCOMPARE(run.info().state, RunState::finished);
  }

  void tellsTheTimeLeft() {
    FixtureOptions options;
    RunWriter writer = RunWriter::create(path("live"), fixture_info(options));
    Run run(path("live"));
    QVERIFY(std::isnan(run.seconds_left()));
    writer.set_state(RunState::running, 0);
    writer.add(fixture_step(options, 1));
    QVERIFY(run.poll());
    const double steps = static_cast<double>(run.info().steps);
    QCOMPARE(run.seconds_left(), (steps - 1) * fixture_step(options, 1).seconds);  // no second step seen: training alone
    QElapsedTimer watch;
    watch.start();
    QTest::qSleep(60);  // an evaluation, say
    writer.add(fixture_step(options, 2));
    writer.add(fixture_step(options, 3));
    QVERIFY(run.poll());
    const double pace = run.seconds_left() / (steps - 3);
    QVERIFY2(pace >= 0.03 && pace <= static_cast<double>(watch.elapsed() + 20) / 2000, qPrintable(QString::number(pace)));
    writer.set_state(RunState::stopped, 3);
    QVERIFY(run.poll());
    writer.set_state(RunState::running, 3);
    QVERIFY(run.poll());
    QCOMPARE(run.seconds_left(), (steps - 3) * fixture_step(options, 3).seconds / 3);  // the pause tells no pace
  }

  void aRunWithoutItsProcessHasCrashed() {
    FixtureOptions options;
    options.end = RunState::running;
    write_fixture(path("run"), options);
    QCOMPARE(Run(path("run")).info().state, RunState::crashed);
    QVERIFY(!is_live(path("run")));
    QVERIFY(!stop_run(path("run")));
  }

  void aKilledProcessLeavesItsLock() {
    int ready[2];
    QCOMPARE(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGTERM, SIG_DFL);
      RunWriter writer = RunWriter::create(path("held"), fixture_info({}));
      writer.set_state(RunState::running, 0);
      writer.add(fixture_step({}, 1));
      [[maybe_unused]] const auto told = ::write(ready[1], "x", 1);
      ::pause();
      ::_exit(0);
    }
    char byte = 0;
    QCOMPARE(::read(ready[0], &byte, 1), ssize_t{1});
    QVERIFY(is_live(path("held")));
    QCOMPARE(Run(path("held")).info().state, RunState::running);
    QVERIFY(message_of([&] {
              RunWriter::take_up(path("held"), [](const std::string&) {});
            }).contains("in use by process " + QString::number(child)));
    QVERIFY(message_of([&] { RunWriter::create(path("held"), fixture_info({})); }).contains("in use"));
    QVERIFY(stop_run(path("held")));  // SIGTERM, which this child does not catch
    ::waitpid(child, nullptr, 0);
    QVERIFY(!is_live(path("held")));
    const Run run(path("held"));
    QCOMPARE(run.info().state, RunState::crashed);
    QCOMPARE(run.find("train/loss")->value.size(), size_t{1});
    RunWriter::take_up(path("held"), [](const std::string&) {});
  }

  void refusesWhatIsNotItsOwn() {
    fs::create_directories(path("foreign"));
    std::ofstream(path("foreign") / "thesis.txt") << "precious";
    QVERIFY_THROWS_EXCEPTION(UsageError, RunWriter::create(path("foreign"), fixture_info({})));
    QCOMPARE(std::distance(fs::directory_iterator(path("foreign")), {}), 1);
    write_fixture(path("run"));
    const std::string before = read_text(path("run") / "run.json");
    QVERIFY_THROWS_EXCEPTION(UsageError, RunWriter::create(path("run"), fixture_info({})));
    QCOMPARE(read_text(path("run") / "run.json"), before);
    std::ofstream(path("file")) << "x";
    QVERIFY_THROWS_EXCEPTION(DataError, RunWriter::create(path("file"), fixture_info({})));
    QVERIFY_THROWS_EXCEPTION(DataError, RunWriter::create(path("file") / "below", fixture_info({})));
  }

  void takesAnEmptyDirectory() {
    fs::create_directories(path("empty"));
    write_fixture(path("empty"));
    QCOMPARE(Run(path("empty")).info().state, RunState::finished);
  }

  void saysWhatIsWrongWithRunJson_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("said");
    QTest::newRow("empty") << QByteArray("") << "run.json is damaged";
    QTest::newRow("half") << QByteArray("{\"format_version\": 1,") << "run.json is damaged";
    QTest::newRow("other type") << QByteArray("[]") << "run.json is damaged";
    QTest::newRow("other version") << QByteArray("{\"format_version\": 9}") << "format version 9";
  }
  void saysWhatIsWrongWithRunJson() {
    QFETCH(QByteArray, content);
    QFETCH(QString, said);
    write_fixture(path("run"));
    std::ofstream(path("run") / "run.json") << content.toStdString();
    const QString message = message_of([&] { Run run(path("run")); });
    QVERIFY2(message.contains(said) && !message.contains('\n'), qPrintable(message));
    std::vector<std::string> problems;
    QVERIFY(find_runs(folder_->path().toStdString(), &problems).empty());
    QCOMPARE(problems.size(), size_t{1});
  }

  /// What JSON becomes in memory is many times as large: files that are small when this program wrote them are read only so.
  void smallFilesAreReadSmall() {
    write_fixture(path("run"));
    std::ofstream(path("run") / "notes.json") << "{\"starred\": true, \"tags\": " << std::string(100, '[') << std::string(100, ']') << "}";
    QVERIFY(QString::fromStdString(Run(path("run")).notes_problem()).contains("notes.json is no file of notes"));
    std::ofstream(path("run") / "notes.json") << "{\"starred\": true, \"tags\": [], \"note\": \"" << std::string(1 << 20, 'a') << "\"}";
    QVERIFY(QString::fromStdString(Run(path("run")).notes_problem()).contains("notes.json is larger than any such file is written"));
    std::ofstream(path("run") / "run.json") << std::string((16 << 20) + 1, ' ');
    QVERIFY(message_of([&] { Run run(path("run")); }).contains("run.json is larger than any such file is written"));
  }

  void findsRuns() {
    write_fixture(path("a"));
    write_fixture(path("b"));
    fs::create_directories(path("c"));
    QCOMPARE(find_runs(folder_->path().toStdString()).size(), size_t{2});
    QCOMPARE(find_runs(path("a")), std::vector{path("a")});
    QVERIFY(find_runs(path("none")).empty());
    QVERIFY_THROWS_EXCEPTION(DataError, Run run(path("c")));
  }

  void numbersInNamesCountAsNumbers() {
    std::vector<std::string> names{
        "rate-0.125", "window-128", "window-32_seed-2", "rate-0.03125", "window-32_seed-1", "window-32", "window", "b", "rate-1"};
    const std::vector<std::string> natural{"b",         "rate-0.03125",     "rate-0.125",       "rate-1",    "window",
                                           "window-32", "window-32_seed-1", "window-32_seed-2", "window-128"};
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return natural_before(a, b); });
    QCOMPARE(names, natural);
    QVERIFY(natural_before("01", "1") && !natural_before("1", "01"));  // equal as numbers, never equal as names
    QVERIFY(!natural_before("a1", "a1"));
    QVERIFY(natural_before("1x", "a") && natural_before("-", "1"));
  }

  void aDamagedLineIsAGapThatIsTold() {
    write_fixture(path("run"));
    std::string journal = read_text(path("run") / "journal.jsonl");
    const size_t line = journal.find("\"type\":\"step\",\"step\":101,");
    journal[line + 60] ^= 1;
    std::ofstream(path("run") / "journal.jsonl") << journal;
    const Run run(path("run"));
    QCOMPARE(run.lost(), std::string("of the journal, 1 record behind step 100 and before step 102 is damaged or missing"));
    QVERIFY(run.damage().empty());
    QCOMPARE(run.find("train/loss")->value.size(), size_t{199});
    write_results_file(run.info());
    QVERIFY(results_file_is_current(run.info()));
    QVERIFY(("of the journal, " + h5::Reader(path("run") / "results.h5").root().open("run").read_text("journal_lost")) == run.lost());
  }

  /// However many of its last lines are gone, and in whatever state the run is.
  void aShortenedJournalIsNoticed_data() {
    QTest::addColumn<int>("state");
    QTest::addColumn<bool>("old");
    for (const RunState state : {RunState::finished, RunState::stopped, RunState::diverged, RunState::failed}) {
      QTest::addRow("%s", to_string(state)) << static_cast<int>(state) << false;
      QTest::addRow("%s, by an earlier version", to_string(state)) << static_cast<int>(state) << true;
    }
  }
  void aShortenedJournalIsNoticed() {
    QFETCH(int, state);
    QFETCH(bool, old);
    FixtureOptions options;
    options.steps = 40;
    options.end = static_cast<RunState>(state);
    write_fixture(path("run"), options);
    if (old) {  // run.json does not say how many records there are
      RunInfo info = read_run_info(path("run"));
      info.records = -1;
      write_run_info(info);
    }
    QCOMPARE(Run(path("run")).damage(), std::string());
    const fs::path file = path("run") / "journal.jsonl";
    std::string journal = read_text(file);
    for (int gone = 1; !journal.empty(); ++gone) {
      journal.resize(journal.size() < 2 ? 0 : journal.rfind('\n', journal.size() - 2) + 1);
      std::ofstream(file) << journal;
      const std::string damage = Run(path("run")).damage();
      const bool told = !old || options.end != RunState::failed || gone > 5;  // in run.json alone; evaluated at step 40
      QVERIFY2(!told || damage.find("ends at step") != std::string::npos, qPrintable(QString::number(gone)));
    }
    QVERIFY(fs::remove(file));
    QVERIFY(Run(path("run")).damage().ends_with("is missing"));
  }

  void damagedCapturesGiveOneLine() {
    write_fixture(path("run"));
    const fs::path file = step_file(path("run"), kCaptures, 200);
    const std::string good = read_text(file);
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
      std::string bad = good;
      bad[static_cast<size_t>(i) * (bad.size() - 1) / 199] ^= 0x10;
      std::ofstream(file, std::ios::binary) << bad;
      try {
        Run(path("run")).captures(200);
      } catch (const DataError& error) {
        ++refused;
        QVERIFY(QString(error.what()).contains("step-200.h5") && !QString(error.what()).contains('\n'));
      }
    }
    QVERIFY2(refused > 190, qPrintable(QString("%1 of 200 noticed").arg(refused)));
    std::ofstream(file) << "no HDF5";
    QVERIFY_THROWS_EXCEPTION(DataError, Run(path("run")).captures(200));
    fs::remove(file);
    QVERIFY_THROWS_EXCEPTION(DataError, Run(path("run")).captures(200));
  }

  /// Files may not grow beyond a limit, as on a full disk: what was there stays, and the process lives.
  void aFullDiskHarmsNothing() {
    write_fixture(path("run"));
    const std::string captures = read_text(step_file(path("run"), kCaptures, 200)), results = read_text(path("run") / "results.h5");
    const RunInfo info = read_run_info(path("run"));
    FixtureOptions other;
    other.seed = 2;
    for (const rlim_t bytes : {0, 100, 1000, 3000, 6000}) {
      const auto on_a_full_disk = [bytes](const auto& write) {
        const FileSizeLimit limit(bytes);
        return message_of(write);
      };
      const QString a =
          on_a_full_disk([&] { write_captures(step_file(path("run"), kCaptures, 200), {fixture_capture(other, 200, 0, "prose")}); });
      const QString b = on_a_full_disk([&] { write_results_file(info); });
      const QString c = on_a_full_disk([&] { write_run_info(info); });
      QVERIFY2(a.contains("step-200") && b.contains("results.h5"), qPrintable(a + "\n" + b));
      if (bytes <= 100) QVERIFY(c.contains("run.json"));
      QCOMPARE(read_text(step_file(path("run"), kCaptures, 200)), captures);
      QCOMPARE(read_text(path("run") / "results.h5"), results);
      QCOMPARE(read_run_info(path("run")).title, info.title);
      for (const auto& entry : fs::recursive_directory_iterator(path("run")))
        QVERIFY2(entry.path().string().find(".tmp-") == std::string::npos, entry.path().c_str());
    }
  }

  /// Avey's initialisation was no setting once: a run of then is read, and goes on, with what it had.
  void aRunFromBeforeASettingHasWhatItWasMadeWith() {
    FixtureOptions avey;
    avey.mixer = "avey";
    write_fixture(path("old"), avey);
    QVERIFY(!nlohmann::json::parse(read_text(path("old") / "run.json"))["config"]["architecture"].contains("initialisation"));
    const RunInfo old = read_run_info(path("old"));
    QCOMPARE(old.config["architecture"]["initialisation"].get<std::string>(), std::string("xavier"));
    QCOMPARE(old.provenance["config_hash"].get<std::string>(), config_hash(old.config));
    RunInfo today = old;
    today.config["architecture"]["initialisation"] = "uniform";
    write_run_info(today);
    QVERIFY(read_run_info(path("old")).config == today.config);
    QVERIFY(Run(path("old")).experiment() != experiment_of(old.config));
  }

 private:
  fs::path path(const char* name) const { return folder_->filePath(name).toStdString(); }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RunDirectoryTest)
#include "run_directory_test.moc"
