// Studies that are killed, stopped, limited or without room, and go on.
#include <sys/mount.h>

#include <csignal>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "analysis/runs/run_lock.h"
#include "analysis/studies/study_folder.h"
#include "tests/app/study_fixture.h"

using namespace saccade;
using namespace saccade::test;
namespace fs = std::filesystem;

class StudyStopTest : public StudyTest {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  /// The worker and runs are killed at random instants; what had finished is never touched again, and every run comes to its end once.
  void survivesKills() {
    Json base = Program::config();
    base["training"]["steps"] = 60;
    base["training"]["checkpoint_every"] = 10;
    Json file = small_study(base);
    file["axes"][0]["values"] = {8, 16, 24};
    write_study("killed.json", file);
    std::mt19937 random(20260101);
    std::map<std::string, std::string> known;
    int kills = 0;
    QVERIFY(program_.run({"-q", "study", "start", program_.path("killed.json"), "--out", program_.path("killed"), "--jobs", "2"}).code ==
            0);
    for (int round = 0; round < 8; ++round) {
      QTest::qWait(std::uniform_int_distribution<int>(100, 900)(random));
      const Json queues = program_.run({"--json", "queue", "list"}).json();
      if (round != 4 && queues[0]["worker"].is_number()) kills += ::kill(queues[0]["worker"].get<int>(), SIGKILL) == 0;
      std::error_code none;
      for (const auto& run : fs::directory_iterator(folder("killed") / "runs", none))
        if (const auto holder = lock_holder(run.path()); round % 2 == 0 && holder && holder->process > 0)
          kills += ::kill(holder->process, SIGKILL) == 0;
      for (const auto& [name, content] : finished("killed")) known.try_emplace(name, content);
      QVERIFY(program_.run({"-q", "study", "resume", program_.path("killed"), "--jobs", "2"}).code == 0);
    }
    const auto result = program_.run({"-q", "study", "resume", program_.path("killed"), "--wait"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const auto after = finished("killed");
    qInfo("%d processes were killed; %zu runs had finished meanwhile", kills, known.size() / 2);
    QVERIFY(kills >= 4);
    for (const auto& [name, content] : known) QVERIFY2(after.at(name) == content, name.c_str());
    const Json now = status("killed");
    QCOMPARE(now["complete"], true);
    QCOMPARE(now["runs"].size(), size_t{9});
    size_t folders = 0;
    std::set<std::string> identities;
    for (const auto& entry : fs::directory_iterator(folder("killed") / "runs")) {
      ++folders;
      QVERIFY(identities.insert(run_identity(read_run_info(entry.path()).config)).second);
      const Run run(entry.path());
      std::vector<double> steps(60);
      std::iota(steps.begin(), steps.end(), 1);
      QCOMPARE(run.find("train/loss")->step, steps);
    }
    QCOMPARE(folders, size_t{9});
    QVERIFY(at_rest());
  }

  /// Stop takes the study out and its runs to a checkpoint; resume goes on; a limit and a run that cannot be trained are told.
  void stopsAndResumes() {
    Json base = Program::config();
    base["training"].update({{"steps", 1500}, {"evaluate_every", 500}, {"probe_every", 500}, {"checkpoint_every", 500}});
    Json file = small_study(base);
    file.erase("tuning");
    write_study("long.json", file);
    QVERIFY(program_.run({"-q", "study", "start", program_.path("long.json"), "--out", program_.path("long"), "--jobs", "1"}).code == 0);
    QVERIFY(program_.wait_for_records("long/runs/width-8_seed-1", 20));
    const auto stopped = program_.run({"--json", "study", "stop", program_.path("long")});
    QCOMPARE(stopped.json()["queued"], true);
    QVERIFY2(stopped.json()["stopping"] == 1, qPrintable(stopped.out + stopped.err));
    QVERIFY(at_rest());
    const Json now = status("long");
    QCOMPARE(now["runs"][0]["status"], "unfinished");
    QCOMPARE(now["runs"][1]["status"], "to do");
    QVERIFY(now["runs"][0]["step"].get<int>() > 0);
    QCOMPARE(now["waits"].get<std::string>(), "it stands in no queue: saccade study resume " + folder("long").string());
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(program_.run({"-q", "study", "resume", program_.path("long")}).code == 0);
    QCOMPARE(status("long")["waits"].get<std::string>(), std::string("the queue of cpu is paused: saccade queue go-on --device cpu"));
    QVERIFY(program_.run({"queue", "go-on", "--device", "cpu"}).code == 0);
    const auto resumed = program_.run({"--json", "study", "resume", program_.path("long"), "--wait"});
    QVERIFY2(resumed.json()["complete"] == true, qPrintable(resumed.err));
    QCOMPARE(status("long")["waits"], "");
    QCOMPARE(finished("long").size(), size_t{8});
  }

  void limitsAndFailuresAreTold() {
    Json file = small_study(Program::config());
    file.erase("tuning");
    write_study("few.json", file);
    const auto few = program_.run({"study", "start", program_.path("few.json"), "--out", program_.path("few"), "--limit", "1", "--wait"});
    QVERIFY(few.code != 0 && few.err.contains("the limit of runs is reached"));
    QCOMPARE(finished("few").size(), size_t{2});
    // Its text is there when it starts, and gone when its runs begin.
    write_study("wrong.json", file);
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(program_.run({"study", "start", program_.path("wrong.json"), "--out", program_.path("wrong")}).code == 0);
    const QString corpus = program_.path("data") + "/corpora/mine", aside = program_.path("aside");
    QVERIFY(QFile::rename(corpus, aside));
    QVERIFY(program_.run({"queue", "go-on", "--device", "cpu"}).code == 0);
    const auto wrong = program_.run({"study", "resume", program_.path("wrong"), "--wait"});
    QVERIFY(QFile::rename(aside, corpus));
    QVERIFY2(wrong.code != 0 && wrong.err.contains("4 runs were given up"), qPrintable(wrong.err));
    const Json now = status("wrong");
    QCOMPARE(now["runs"][0]["status"], "given up");
    const QString problem = QString::fromStdString(now["runs"][0]["problem"]);
    QVERIFY2(problem.contains("corpus \"mine\" not found") && !problem.startsWith("saccade: "), qPrintable(problem));
    const auto evaluated = program_.run({"study", "evaluate", program_.path("wrong")});
    QVERIFY2(evaluated.code == 0 && evaluated.out.contains("no run of this study has ended"), qPrintable(evaluated.out));
    QVERIFY(at_rest());
  }

  /// Before there is a folder, instead of run by run; a plan says it and goes on, since the runs may go elsewhere.
  void textThatIsNotHereIsToldBeforeAnythingStarts() {
    Json file = small_study(Program::config());
    const auto refused = [&](const Json& set, const QString& why) {
      file["set"] = set;
      write_study("textless.json", file);
      const auto begun = program_.run({"study", "start", program_.path("textless.json"), "--out", program_.path("textless"), "--wait"});
      const auto planned = program_.run({"--json", "study", "plan", program_.path("textless.json"), "--no-measure"});
      return begun.code == 3 && begun.err.contains(why) && !QFileInfo::exists(program_.path("textless")) && planned.code == 0 &&
             QString::fromStdString(planned.json()["missing"].dump()).contains("no-such");
    };
    QVERIFY(refused({{"data.corpus", "no-such-corpus"}}, "corpus \"no-such-corpus\" not found"));
    QVERIFY(refused({{"data.ood", {"no-such-domain"}}}, "has no domain \"no-such-domain\", it has: "));
  }

  /// Runs on a disk without room wait for it, instead of being given up one after the other.
  void aFullDiskIsWaitedFor() {
    const QString disk = program_.path("disk");
    QDir().mkpath(disk);
    if (::mount("none", disk.toUtf8(), "tmpfs", 0, "size=64m") != 0) QSKIP("no right to mount a small file system: full disk not tested");
    const auto unmount = qScopeGuard([&] { ::umount(disk.toUtf8()); });
    Json file = small_study(Program::config());
    file.erase("tuning");
    file["axes"][0]["values"] = {64, 80};
    write_study("room.json", file);
    program_.write("disk/fill", QByteArray((64 << 20) - (600 << 10), 'x'));  // the study's own files have room
    QVERIFY(program_.run({"study", "start", program_.path("room.json"), "--out", disk + "/room"}).code == 0);
    const Json queues = program_.run({"--json", "queue", "list"}).json();
    const QString log = QString::fromStdString(queues[0]["log"].get<std::string>());
    const auto said = [&](const char* words) {
      QFile of(log);
      return of.open(QIODevice::ReadOnly) && of.readAll().contains(words);
    };
    QVERIFY(QTest::qWaitFor([&] { return said("waits for room on the disk"); }, 60000));
    QTest::qWait(1000);
    QVERIFY(status("disk/room")["runs"][0]["status"] == "to do" && finished("disk/room").empty());
    QVERIFY(QFile::remove(disk + "/fill"));
    QVERIFY(QTest::qWaitFor([&] { return finished("disk/room").size() == 4; }, 120000));
    QVERIFY(at_rest());
    const Json room = status("disk/room");
    for (const Json& run : room.at("runs")) QCOMPARE(run["status"], "finished");
  }
};

QTEST_GUILESS_MAIN(StudyStopTest)
#include "study_stop_test.moc"
