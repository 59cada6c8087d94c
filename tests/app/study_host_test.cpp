// saccade study evaluate and report, here and of a study on a host, whose checkpoints stay there.
#include <algorithm>
#include <map>

#include "analysis/remote/mirror.h"
#include "analysis/runs/run_info.h"
#include "tests/app/host_fixture.h"
#include "tests/app/program.h"

namespace saccade::test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class StudyHostTest : public QObject {
  Q_OBJECT

 private:
  Program program_;
  std::unique_ptr<StandInHost> host_;

  static std::vector<std::string> files_of(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::string bytes(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  fs::path at(const QString& name) const { return program_.path(name).toStdString(); }

  /// Of every cell of the table of losses at the end, as text.
  static std::string ends_of(const Json& report) {
    for (const Json& table : report.at("tables"))
      if (table.at("id") == "end") return table.at("rows").dump();
    return {};
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    host_ = std::make_unique<StandInHost>(program_);
    const auto added = program_.run({"-q", "host", "add", "server", "--ssh", "alias"});
    QVERIFY2(added.code == 0, qPrintable(added.err));
    Json study{{"question", "Which width?"},
               {"base", Program::config()},
               {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
               {"seeds", {1, 2}},
               {"branches", {0.5}},
               {"evaluations", {{"split", "test"}, {"tokens", 1024}, {"paired_error", 5}}}};
    program_.write("widths.json", QByteArray::fromStdString(study.dump()));
    const auto started =
        program_.run({"-q", "study", "start", program_.path("widths.json"), "--out", host_->there("runs/widths"), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
  }

  /// Some at a time, each once, and afterwards a report needs no checkpoint.
  void evaluations_are_made_before_the_report() {
    const QString study = program_.path("copied");
    fs::copy(host_->there("runs/widths").toStdString(), study.toStdString(), fs::copy_options::recursive);
    const auto none = program_.run({"--json", "study", "evaluate", study, "--seconds", "0"});
    QVERIFY2(none.code == 0, qPrintable(none.err));
    QCOMPARE(none.json().at("made"), 0);
    QCOMPARE(none.json().at("complete"), false);
    const auto one = program_.run({"--json", "study", "evaluate", study, "--seconds", "0.000001"});
    QCOMPARE(one.json().at("made"), 1);
    QCOMPARE(one.json().at("complete"), false);
    const auto all = program_.run({"--json", "study", "evaluate", study});
    QCOMPARE(all.json().at("made"), 7);  // four runs and a branch of each
    QCOMPARE(all.json().at("complete"), true);
    QCOMPARE(all.json().at("files").size(), size_t{8});
    for (const Json& file : all.json().at("files")) QVERIFY(fs::exists(at("copied") / file.get<std::string>()));
    for (const auto& run : fs::directory_iterator(at("copied/runs"))) {
      fs::remove_all(run.path() / kCheckpoints);
      for (const auto& branch : fs::directory_iterator(run.path() / "branches")) fs::remove_all(branch.path() / kCheckpoints);
    }
    const auto report = program_.run({"-q", "--json", "study", "report", study});
    QVERIFY2(report.code == 0, qPrintable(report.err));
    QVERIFY(ends_of(report.json()).find("test split") != std::string::npos);
    QVERIFY(report.json().at("remarks").dump().find("cannot be evaluated") == std::string::npos);
  }

  /// The host evaluates; what comes here is what it found, and no checkpoint.
  void a_report_of_a_study_on_a_host() {
    const auto synced = program_.run({"-q", "host", "sync", "server"});
    QVERIFY2(synced.code == 0, qPrintable(synced.err));
    const fs::path here = at("runs/server/widths");
    QVERIFY(files_of(here / kEvaluations).empty());
    const auto report = program_.run({"-q", "--json", "study", "report", program_.path("runs/server/widths")});
    QVERIFY2(report.code == 0, qPrintable(report.err));
    QCOMPARE(files_of(here / kEvaluations).size(), size_t{8});
    QCOMPARE(files_of(here / kEvaluations), files_of(fs::path(host_->there("runs/widths").toStdString()) / kEvaluations));
    for (const auto& run : fs::directory_iterator(here / "runs")) QVERIFY(files_of(run.path() / kCheckpoints).empty());
    const Json there = program_.run({"-q", "--json", "study", "report", host_->there("runs/widths")}).json();
    QCOMPARE(ends_of(report.json()), ends_of(there));
    QVERIFY(!fs::exists(here / "report" / kCheckpoints) && fs::exists(here / "report" / "report.html"));

    const int logins = host_->logins();  // what is here already needs no host
    QCOMPARE(program_.run({"-q", "--json", "study", "report", program_.path("runs/server/widths")}).code, 0);
    QCOMPARE(host_->logins(), logins);
  }

  /// One that was made anew on the host, of a later step, replaces the one here.
  void an_evaluation_that_changed_is_fetched_again() {
    const fs::path there = fs::path(host_->there("runs/widths").toStdString()), here = at("runs/server/widths");
    const std::string name = files_of(there / kEvaluations).front();
    std::ofstream(here / kEvaluations / name) << R"({"step": 1})";
    const auto report = program_.run({"-q", "--json", "study", "report", program_.path("runs/server/widths")});
    QVERIFY2(report.code == 0, qPrintable(report.err));
    QCOMPARE(bytes(here / kEvaluations / name), bytes(there / kEvaluations / name));
  }

  /// Those that runs make at their end come with them: of differences over the same sequences.
  void evaluations_of_runs_are_mirrored() {
    const fs::path here = at("runs/server/widths/runs");
    for (const auto& run : fs::directory_iterator(here))
      QCOMPARE(files_of(run.path() / kEvaluations),
               files_of(fs::path(host_->there("runs/widths/runs").toStdString()) / run.path().filename() / kEvaluations));
  }

  /// As much text as its differences need.
  void a_study_without_evaluations_has_some_to_make() {
    Json study = Json::parse(std::ifstream(at("widths.json")));
    study.erase("evaluations"), study.erase("branches"), study["seeds"] = {1};
    program_.write("plain.json", QByteArray::fromStdString(study.dump()));
    QCOMPARE(program_.run({"-q", "study", "start", program_.path("plain.json"), "--out", program_.path("plain"), "--wait"}).code, 0);
    const auto made = program_.run({"-q", "--json", "study", "evaluate", program_.path("plain")});
    QVERIFY2(made.code == 0, qPrintable(made.err));
    QVERIFY(made.json().at("made") >= 2 && made.json().at("complete") == true);
    for (const auto& run : fs::directory_iterator(at("plain/runs"))) fs::remove_all(run.path() / kCheckpoints);
    const auto report = program_.run({"-q", "--json", "study", "report", program_.path("plain")});
    QVERIFY2(report.code == 0, qPrintable(report.err));
    QVERIFY2(report.json().at("remarks").dump().find("of no more text") == std::string::npos, report.json().at("remarks").dump().c_str());
    const auto refused = program_.run({"-q", "study", "evaluate", program_.path("plain"), "--split", "test"});
    QVERIFY2(is_one_error(refused) && refused.code == 2 && refused.err.contains("asks for no \"evaluations\""), qPrintable(refused.err));
  }

  /// Scores on tasks are made there, side by side where that is asked for, and come here with the report; then no host is needed.
  void a_host_scores_tasks() {
    Json study = Json::parse(std::ifstream(at("widths.json")));
    study.erase("branches"), study["seeds"] = {1};
    study["tasks"] = Json::parse(R"([{"task": "passkey", "lengths": [267], "limit": 5}, {"task": "s-niah-1", "lengths": [768], "limit": 5},
                                  {"task": "s-niah-1", "lengths": [300], "limit": 5}])");
    program_.write("scored.json", QByteArray::fromStdString(study.dump()));
    const QString there = host_->there("runs/scored"), here = program_.path("runs/server/scored");
    const auto started = program_.run({"-q", "study", "start", program_.path("scored.json"), "--out", there, "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    QCOMPARE(program_.run({"-q", "host", "sync", "server"}).code, 0);
    const auto report = program_.run({"-q", "--json", "study", "report", here, "--jobs", "2"});
    QVERIFY2(report.code == 0, qPrintable(report.err));
    Json scores;
    const Json told = report.json();
    for (const Json& table : told.at("tables"))
      if (table.at("id") == "scores") scores = table.at("rows");
    const std::string remarks = told.at("remarks").dump();  // why the shortest could not be made is known there
    QVERIFY2(remarks.find("On the host server: Not scored on s-niah-1-300: ") != std::string::npos, remarks.c_str());
    QVERIFY2(remarks.find("has no room beside question and answer") != std::string::npos, remarks.c_str());
    QVERIFY2(remarks.find("checkpoints/") == std::string::npos, remarks.c_str());
    QVERIFY2(scores.size() == 6, told.at("remarks").dump().c_str());  // two widths on two tasks, and the average
    for (const char* run : {"width-8_seed-1", "width-16_seed-1"}) {
      const fs::path mirrored = fs::path(here.toStdString()) / "runs" / run, original = fs::path(there.toStdString()) / "runs" / run;
      QCOMPARE(files_of(mirrored / "tasks").size(), size_t{2});
      for (const std::string& name : files_of(original / "tasks"))
        QCOMPARE(bytes(mirrored / "tasks" / name), bytes(original / "tasks" / name));
      QVERIFY(files_of(mirrored / kCheckpoints).empty());
    }
    const auto times = [&] {
      std::map<std::string, fs::file_time_type> written;
      for (const std::string& name : files_of(fs::path(there.toStdString()) / "runs/width-8_seed-1/tasks"))
        written[name] = fs::last_write_time(fs::path(there.toStdString()) / "runs/width-8_seed-1/tasks" / name);
      return written;
    };
    const auto before = times();
    const auto again = program_.run({"-q", "--json", "study", "report", here});
    QVERIFY2(again.code == 0 && times() == before, qPrintable(again.err));
    QCOMPARE(again.json().at("tables"), told.at("tables"));
    const auto wrong = program_.run({"study", "evaluate", here, "--devices", "gpu"});
    QVERIFY2(is_one_error(wrong) && wrong.err.contains("expected all, or a list of cuda:N"), qPrintable(wrong.err));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StudyHostTest)
#include "study_host_test.moc"
