#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <thread>

#include "analysis/launchers/job_round.h"
#include "analysis/launchers/job_work.h"
#include "analysis/runs/files.h"
#include "analysis/studies/study_folder.h"

namespace saccade::test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// What a job says of a run whose process ends with an error: alone, and while the job is told to end.
class JobWorkTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void failures_data() {
    QTest::addColumn<bool>("asked");
    QTest::addColumn<int>("code");
    QTest::addColumn<int>("of_job");
    QTest::addColumn<QString>("gave_up");
    QTest::newRow("fails") << false << 1 << 1 << "no such thing";
    QTest::newRow("stopped by hand") << false << 130 << 130 << "stopped by hand";
    QTest::newRow("to be continued") << false << kToBeContinued << kToBeContinued << "";
    QTest::newRow("told to end") << true << kToBeContinued << kToBeContinued << "";
    QTest::newRow("stopped by the same signal") << true << 130 << kToBeContinued << "";
    // A reader of files, or another rank, was ended by the signal to all processes of the job.
    QTest::newRow("fails while it is told to end") << true << 1 << kToBeContinued << "";
    QTest::newRow("trained elsewhere") << true << 5 << 5 << "";
  }
  void failures() {
    QFETCH(bool, asked);
    QFETCH(int, code);
    const QTemporaryDir folder;
    const fs::path home = fs::path(folder.path().toStdString()) / "study";
    create_study_folder(home, parse_study(Json{{"question", "?"}, {"base", Json::object()}}.dump(), "study.json", "study"));
    replace_text(home / "config.json", R"({"threads": 1})");
    JobRound round{{}, {{{"runs/first", "config.json", 0}}}, 1, 0};
    make_run_folder(home / "slurm");
    write_round(home, round);
    // In place of the program: it begins, ends when the file `end` is there, and says why.
    const fs::path begun = home / "begun", end = home / "end", program = home / "program";
    replace_text(program, "#!/bin/sh\n: >" + begun.string() + "\nwhile ! [ -e " + end.string() + " ]; do sleep 0.02; done\n" +
                              "echo no such thing\nexit " + std::to_string(code) + "\n");
    fs::permissions(program, fs::perms::owner_all);
    std::atomic<bool> stop = false;
    std::thread scheduler([&] {
      while (!fs::exists(begun)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stop = asked;
      replace_text(end, "");
    });
    const int of_job = work_on_task(home, round.name, 0, program, stop, [](const std::string&) {});
    scheduler.join();
    QTEST(of_job, "of_job");
    const StudyState state = read_study_state(home);
    const auto why = state.gave_up.find("first");
    QTEST(why == state.gave_up.end() ? QString() : QString::fromStdString(why->second), "gave_up");
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::JobWorkTest)
#include "job_work_test.moc"
