// Studies and runs that grow: cells, seeds and repetitions are added, and what was there stays as it is.
#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include "analysis/runs/files.h"
#include "analysis/runs/run_lock.h"
#include "tests/app/study_fixture.h"

using namespace saccade;
using namespace saccade::test;
namespace fs = std::filesystem;

class StudyGrowthTest : public StudyTest {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(), train_widths(); }

  /// A run by itself gets repetitions beside it, with the smallest seeds that it has not had.
  void aRunIsRepeatedWithOtherSeeds() {
    program_.train("single-seed2", {"training.seed=2", "training.learning_rate=0.00123"});  // no other run here repeats it
    const auto queued = program_.run({"queue", "seeds", program_.path("single-seed2"), "2"});
    QVERIFY2(queued.code == 0 && queued.err.contains("single-seed1 added") && queued.err.contains("single-seed3 added"),
             qPrintable(queued.err));
    QVERIFY(at_rest());
    std::set<std::string> settings;
    for (const int64_t seed : {1, 2, 3}) {
      const Run run(folder("single-seed" + QString::number(seed)));
      QVERIFY(run.info().state == RunState::finished && run.info().seed == seed);
      settings.insert(run.setting());
    }
    QCOMPARE(settings.size(), size_t{1});
    QVERIFY(program_.run({"queue", "seeds", program_.path("nowhere")}).code == 2);
  }

  /// A study whose folder was removed while one of its runs is at work ends there: a new study of that name is begun and comes to its end.
  void aNewStudyOwesNothingToARemovedOne() {
    Json file = small_study(Program::config());
    file["base"]["training"]["steps"] = 1000000;
    file.erase("tuning");
    write_study("again.json", file);
    const auto started = program_.run({"-q", "study", "start", program_.path("again.json"), "--out", program_.path("again")});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    fs::path run;
    const auto at_work = [&] {
      std::error_code none;
      for (const auto& each : fs::directory_iterator(folder("again") / "runs", none))
        if (const auto holder = lock_holder(each.path()); holder && holder->process > 0 && fs::exists(each.path() / "journal.jsonl", none))
          run = each.path();
      return !run.empty();
    };
    QVERIFY(QTest::qWaitFor(at_work, 60000));
    const int process = lock_holder(run)->process;
    QCOMPARE(::kill(process, SIGSTOP), 0);  // it ends once the new study is there
    fs::remove_all(folder("again"));
    file["base"]["training"]["steps"] = 12;
    write_study("again.json", file);
    const auto anew = program_.run({"-q", "study", "start", program_.path("again.json"), "--out", program_.path("again")});
    QCOMPARE(::kill(process, SIGCONT), 0);
    QVERIFY2(anew.code == 0, qPrintable(anew.err));
    QVERIFY(at_rest());
    const Json now = status("again");
    QVERIFY2(now["complete"] == true, qPrintable(QString::fromStdString(now.dump())));
    QCOMPARE(finished("again").size(), size_t{8});  // two files of each of four runs
  }

  /// A grid that is extended adds runs and leaves the others as they are, byte by byte.
  void extendingAddsRuns() {
    Json file = small_study(Program::config());
    file["axes"][0]["values"] = {8, 16, 24};
    write_study("widths.json", file);
    const auto before = finished("widths");
    QCOMPARE(before.size(), size_t{12});
    const auto result = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const auto after = finished("widths");
    QCOMPARE(after.size(), size_t{18});
    for (const auto& [name, content] : before) QVERIFY2(after.at(name) == content, name.c_str());
    QVERIFY(at_rest());
  }

  /// Every cell gets the smallest seeds it lacks; only those are trained, at the best value, and they stay when the file is started again.
  void seedsAreAddedToCells() {
    const auto before = finished("widths");
    const auto all = program_.run({"--json", "study", "seeds", program_.path("widths"), "1", "--wait"});
    QVERIFY2(all.code == 0, qPrintable(all.err));
    QCOMPARE(all.json()["seeds_added"], (Json{{"width-8", {3}}, {"width-16", {3}}, {"width-24", {3}}}));
    QCOMPARE(finished("widths").size(), size_t{24});
    const auto one = program_.run({"study", "seeds", program_.path("widths"), "1", "--cell", "width-24", "--wait"});
    QVERIFY2(one.code == 0 && one.err.contains("width-24: seeds 4 added"), qPrintable(one.err));
    const std::string run = before.lower_bound("width-24")->first;
    const auto by_run =
        program_.run({"queue", "seeds", program_.path("widths/runs/" + QString::fromStdString(run.substr(0, run.find('/'))))});
    QVERIFY2(by_run.code == 0 && by_run.err.contains("width-24: seed 5 added"), qPrintable(by_run.err));
    QVERIFY(at_rest());
    const auto after = finished("widths");
    QCOMPARE(after.size(), size_t{28});
    for (const auto& [name, content] : before) QVERIFY2(after.at(name) == content, name.c_str());
    const auto wrong = program_.run({"study", "seeds", program_.path("widths"), "1", "--cell", "width-25"});
    QVERIFY(wrong.code == 2 && wrong.err.contains("did you mean \"width-24\"?"));
    const auto again = program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", program_.path("widths"), "--wait"});
    QVERIFY2(again.code == 0, qPrintable(again.err));
    const Json now = status("widths");
    QCOMPARE(now["runs"].size(), size_t{14});
    QCOMPARE(now["complete"], true);
    const Json report = program_.run({"--json", "study", "report", program_.path("widths")}).json();
    std::map<std::string, std::string> seeds;
    for (const Json& row : report["tables"][0]["rows"]) seeds[row[0]["text"]] = row[1]["text"];
    QCOMPARE(seeds, (std::map<std::string, std::string>{{"width-8", "3"}, {"width-16", "3"}, {"width-24", "5"}}));
    for (const Json& table : report["tables"])
      if (table["id"] == "differences")
        for (const Json& row : table["rows"])
          if (row[1]["text"] != "OOD at equal loss") QCOMPARE(row[2]["text"], "3");  // pairs: the seeds that both have
    QVERIFY(at_rest());
  }

  /// A report says which run it lacks, in itself and by how it ends.
  void aRunThatCannotBeReadIsNamed() {
    const fs::path run = folder("widths") / "runs";
    fs::path file;
    for (const auto& entry : fs::directory_iterator(run))
      if (entry.path().filename().string().starts_with("width-24")) file = entry.path() / "run.json";
    QVERIFY(!file.empty());
    fs::rename(file, file.string() + ".kept");
    fs::create_directory(file);
    const auto report = program_.run({"--json", "study", "report", program_.path("widths"), "--recorded"});
    const Json now = status("widths");
    fs::remove(file);
    fs::rename(file.string() + ".kept", file);
    QVERIFY2(report.code == 3 && report.err.contains("it lacks a run that cannot be read"), qPrintable(report.err));
    QVERIFY(report.json()["remarks"].dump().find("Left out, for it cannot be read") != std::string::npos);
    QCOMPARE(program_.run({"-q", "study", "report", program_.path("widths"), "--recorded"}).code, 0);
    for (const Json& one : now["runs"])
      if (const std::string folder = file.parent_path().string(); folder.ends_with("/" + one["name"].get<std::string>())) {
        QCOMPARE(one["status"], "given up");
        const std::string problem = one["problem"];
        QVERIFY2(problem.find(file.string()) != std::string::npos && problem.find("remove the folder " + folder) != std::string::npos,
                 problem.c_str());
      }
    QCOMPARE(now["blocked"], "what stands in the folder of 1 run cannot be read, which saccade study status tells of");
  }

  /// A damaged run.json: trying again cannot help and is not done, removing the folder does.
  void aDamagedRunIsTrainedAnewOnceItIsRemoved() {
    fs::path run;
    for (const auto& entry : fs::directory_iterator(folder("widths") / "runs"))
      if (entry.path().filename().string().starts_with("width-24")) run = entry.path();
    std::ofstream(run / "run.json") << "{";
    const auto resume = [&] { return program_.run({"-q", "study", "resume", program_.path("widths"), "--wait"}); };
    const auto tried = resume();
    QVERIFY2(tried.code != 0 && tried.err.contains("what stands in the folder of 1 run cannot be read"), qPrintable(tried.err));
    QCOMPARE(read_text(run / "run.json"), std::string("{"));
    QVERIFY(at_rest());  // a worker that is still there could begin the run while its folder goes, file by file
    fs::remove_all(run);
    const auto anew = resume();
    QVERIFY2(anew.code == 0, qPrintable(anew.err + QString::fromStdString(status("widths").dump())));
    QCOMPARE(status("widths")["complete"], true);
    QVERIFY(holds_run(run) && at_rest());
  }
};

QTEST_GUILESS_MAIN(StudyGrowthTest)
#include "study_growth_test.moc"
