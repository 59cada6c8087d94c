// saccade study evaluate and report with several processes at a time: the same bytes as one after the other, whatever ends them.
#include <sys/mount.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <random>

#include "analysis/runs/files.h"
#include "tests/app/program.h"

namespace saccade::test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class StudyWorkersTest : public QObject {
  Q_OBJECT

 private:
  Program program_;

  fs::path folder(const QString& name) const { return program_.path(name).toStdString(); }

  /// A study of two widths and two seeds with a branch each: eight ends to evaluate, and four runs to score on two tasks.
  void train_study() const {
    const Json file{
        {"question", "Which width?"},
        {"base", Program::config()},
        {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
        {"seeds", {1, 2}},
        {"branches", {0.5}},
        {"evaluations", {{"split", "test"}, {"tokens", 1024}, {"paired_error", 5}}},
        {"tasks",
         Json::parse(R"([{"task": "passkey", "lengths": [267], "limit": 9}, {"task": "s-niah-1", "lengths": [768], "limit": 60}])")}};
    program_.write("study.json", QByteArray::fromStdString(file.dump()));
    const auto started = program_.run({"-q", "study", "start", program_.path("study.json"), "--out", program_.path("study"), "--devices",
                                       "cpu", "--jobs", "3", "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
    QVERIFY(QTest::qWaitFor([&] { return fs::is_empty(folder("study/logs")); }, 60000));  // the queue's worker has put its files away
  }

  /// What evaluations and scores have left, by file, with the journals of the runs.
  std::map<std::string, std::string> results(const QString& study) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder(study))) {
      const fs::path path = entry.path().lexically_relative(folder(study));
      const bool made = path.string().starts_with("evaluations/") || path.parent_path().filename() == "tasks";
      if (entry.is_regular_file() && !path.filename().string().starts_with('.') && (made || path.filename() == "journal.jsonl"))
        files[path.string()] = read_text(entry.path());
    }
    return files;
  }

  /// When each result was written.
  std::map<std::string, fs::file_time_type> times(const QString& study) const {
    std::map<std::string, fs::file_time_type> written;
    for (const auto& [name, content] : results(study))
      if (name.ends_with(".json")) written[name] = fs::last_write_time(folder(study) / name);
    return written;
  }

  static std::vector<pid_t> children(const QProcess& process) {
    const QString id = QString::number(process.processId());
    std::ifstream file(("/proc/" + id + "/task/" + id + "/children").toStdString());
    std::vector<pid_t> found;
    for (pid_t child = 0; file >> child;) {
      std::ifstream line("/proc/" + std::to_string(child) + "/cmdline");
      const std::string words(std::istreambuf_iterator<char>(line), {});
      if (words.find("work") != std::string::npos) found.push_back(child);  // none that reads HDF5
    }
    return found;
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    train_study();
    program_.copy("study", "plain");
    const auto report = program_.run({"-q", "study", "report", program_.path("plain"), "--jobs", "1"});
    QVERIFY2(report.code == 0, qPrintable(report.err));
  }

  /// As many as the study's queue has, where nothing is said.
  void theBytesAreThoseOfOneAfterTheOther() {
    for (const QStringList& how : {QStringList{}, QStringList{"--devices", "cpu", "--jobs", "2"}, QStringList{"--jobs", "auto"}}) {
      program_.copy("study", "beside");
      const auto report = program_.run(QStringList{"study", "report", program_.path("beside")} + how);
      QVERIFY2(report.code == 0, qPrintable(report.err));
      QCOMPARE(report.err.count("evaluating "), 8);
      QCOMPARE(report.err.count("scoring "), 8);
      QCOMPARE(results("beside"), results("plain"));
      for (const char* name : {"report.md", "end.csv", "scores.csv", "differences.csv", "equal-loss.csv"})
        QCOMPARE(QString::fromStdString(read_text(folder("beside") / "report" / name)).replace("beside", "plain"),
                 QString::fromStdString(read_text(folder("plain") / "report" / name)));
      QVERIFY(fs::is_empty(folder("beside/logs")));
    }
  }

  void anEvaluationTakesUpToItsTime() {
    program_.copy("study", "brief");
    const auto evaluate = [&](const char* seconds) {
      return program_.run({"-q", "--json", "study", "evaluate", program_.path("brief"), "--jobs", "2", "--seconds", seconds}).json();
    };
    QCOMPARE(evaluate("0").at("made"), 0);
    const Json some = evaluate("0.000001");
    QVERIFY2(some.at("made") == 2 && some.at("complete") == false, some.dump().c_str());  // one of each process
    const Json all = evaluate("1000");
    QVERIFY2(all.at("made") == 14 && all.at("complete") == true && all.at("files").size() == 16, all.dump().c_str());
    QCOMPARE(results("brief"), results("plain"));
  }

  /// A checkpoint is gone, a process ends: the run is named, and all others are made.
  void whatFailsIsNamed() {
    program_.copy("study", "failing");
    fs::remove_all(folder("failing/runs/width-8_seed-2/checkpoints"));
    const auto process = program_.start({"-q", "--json", "study", "evaluate", program_.path("failing"), "--jobs", "2"});
    const auto scores = [&] {
      for (const auto& run : fs::directory_iterator(folder("failing/runs")))
        if (fs::exists(run.path() / "tasks")) return true;
      return false;
    };
    QVERIFY(QTest::qWaitFor([&] { return scores() || process->state() == QProcess::NotRunning; }, 60000 * kSlower));
    for (const pid_t worker : children(*process)) ::kill(worker, SIGKILL);
    const auto ended = Program::finish(*process);
    QVERIFY2(ended.code == 0, qPrintable(ended.err));
    const std::string left_out = ended.json().at("left_out").dump();
    QVERIFY2(left_out.find("runs/width-8_seed-2 ") != std::string::npos || left_out.find("width-8_seed-2: ") != std::string::npos,
             left_out.c_str());
    QVERIFY2(left_out.find("the process at work on it ended with signal 9") != std::string::npos, left_out.c_str());
    QVERIFY(ended.json().at("made") >= 6 + 4);
    const auto again = program_.run({"-q", "--json", "study", "evaluate", program_.path("failing"), "--jobs", "2"});
    QVERIFY2(again.code == 0 && again.json().at("left_out").dump().find("signal") == std::string::npos, qPrintable(again.out));
    auto expected = results("plain"), found = results("failing");
    for (auto* files : {&expected, &found})  // whose process was killed has its scores in another order in its journal
      std::erase_if(*files, [](const auto& file) {
        return file.first.find("width-8_seed-2") != std::string::npos || file.first.ends_with("journal.jsonl");
      });
    QCOMPARE(found, expected);
  }

  /// Killed at any instant, again and again: what is there is never made again, and in the end all is as if nobody had disturbed it.
  void survivesKills() {
    program_.copy("study", "killed");
    std::mt19937 random(20261128);
    std::map<std::string, fs::file_time_type> known;
    int kills = 0;
    for (int round = 0; round < 12; ++round) {
      const auto process = program_.start({"-q", "study", "evaluate", program_.path("killed"), "--jobs", "3"});
      process->waitForFinished(std::uniform_int_distribution<int>(20, 60 + 40 * round)(random));
      kills += process->state() == QProcess::Running;
      process->kill();
      process->waitForFinished();
      for (const auto& [name, time] : times("killed")) QCOMPARE(known.try_emplace(name, time).first->second, time);
    }
    QVERIFY(kills >= 4);
    const auto last = program_.run({"-q", "--json", "study", "evaluate", program_.path("killed"), "--jobs", "3"});
    QVERIFY2(last.code == 0 && last.json().at("complete") == true && last.json().at("left_out").empty(), qPrintable(last.out + last.err));
    for (const auto& [name, time] : known) QCOMPARE(fs::last_write_time(folder("killed") / name), time);
    const auto found = results("killed"), expected = results("plain");
    for (const auto& [name, content] : expected) {
      const auto at = found.find(name);
      QVERIFY2(at != found.end(), name.c_str());
      QVERIFY2(at->second == content, (name + "\n" + at->second + "\nexpected\n" + content).c_str());
    }
    QCOMPARE(found.size(), expected.size());
  }

  /// A process that ended between a score and its record in the run: the next command adds that, and scores nothing again.
  void aScoreWithoutItsRecordIsFinished() {
    program_.copy("study", "cut");
    const fs::path run = folder("cut") / "runs/width-8_seed-1/tasks", whole = folder("plain") / "runs/width-8_seed-1/tasks";
    fs::create_directories(run);
    std::string name;
    for (const auto& entry : fs::directory_iterator(whole))
      if (entry.path().filename().string().starts_with("passkey")) name = entry.path().stem().string();
    fs::copy_file(whole / (name + ".json"), run / (name + ".json"));
    std::ofstream(run / ("." + name + ".part")) << "\n";
    const fs::file_time_type written = fs::last_write_time(run / (name + ".json"));
    const auto done = program_.run({"-q", "--json", "study", "evaluate", program_.path("cut"), "--jobs", "2"});
    QVERIFY2(done.code == 0 && done.json().at("left_out").empty(), qPrintable(done.out + done.err));
    QCOMPARE(fs::last_write_time(run / (name + ".json")), written);
    QVERIFY(!fs::exists(run / ("." + name + ".part")));
    QCOMPARE(results("cut"), results("plain"));
  }

  /// Two commands share the work: neither makes what the other one is at.
  void twoCommandsShareTheWork() {
    program_.copy("study", "shared");
    const QStringList words{"-q", "--json", "study", "evaluate", program_.path("shared"), "--jobs", "2"};
    const auto one = program_.start(words), two = program_.start(words);
    const auto first = Program::finish(*one), second = Program::finish(*two);
    QVERIFY2(first.code == 0 && second.code == 0, qPrintable(first.err + second.err));
    QVERIFY(first.json().at("left_out").empty() && second.json().at("left_out").empty());
    QCOMPARE(results("shared"), results("plain"));
    QVERIFY(fs::is_empty(folder("shared/logs")));
  }

  /// Where nothing can be kept, that is said, and what still goes.
  void aFolderThatCannotBeWrittenIsToldOf() {
    const QString disk = program_.path("disk");
    QDir().mkpath(disk);
    if (::mount("none", disk.toUtf8(), "tmpfs", 0, "size=64m") != 0) QSKIP("no right to mount a file system: read-only folder not tested");
    const auto unmount = qScopeGuard([&] { ::umount(disk.toUtf8()); });
    program_.copy("study", "disk/study");
    QCOMPARE(::mount("none", disk.toUtf8(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    for (const char* jobs : {"1", "2"}) {
      const auto report = program_.run({"-q", "study", "report", disk + "/study", "--out", program_.path("of-disk"), "--jobs", jobs});
      QVERIFY2(is_one_error(report) && report.code == 3 && report.err.contains("cannot be written (Read-only file system)"),
               qPrintable(report.err));
      QVERIFY2(report.err.contains("--recorded --out FOLDER"), qPrintable(report.err));
    }
    const auto recorded = program_.run({"-q", "study", "report", disk + "/study", "--out", program_.path("of-disk"), "--recorded"});
    QVERIFY2(recorded.code == 0, qPrintable(recorded.err));
  }

  void wrongDevicesAreRefused() {
    for (const auto& [devices, why] : {std::pair{"gpu", "expected all, or a list of cuda:N"}, std::pair{"cuda:90", "cuda:90"}}) {
      const auto wrong = program_.run({"study", "report", program_.path("study"), "--devices", devices});
      QVERIFY2(is_one_error(wrong) && wrong.err.contains(why), qPrintable(wrong.err));
    }
    const auto jobs = program_.run({"study", "evaluate", program_.path("study"), "--jobs", "0"});
    QVERIFY2(is_one_error(jobs) && jobs.code == 2 && jobs.err.contains("expected auto, or a number from 1 to 64"), qPrintable(jobs.err));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StudyWorkersTest)
#include "study_workers_test.moc"
