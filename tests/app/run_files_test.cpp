#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "program.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// The files of a run: none is reached through a link, they are their owner's alone, and what killed processes leave goes.
class RunFilesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
    program_.train("first");
    // As a process that was killed behind step 8 leaves it.
    program_.copy("first", "stopped");
    fs::remove(file("stopped/checkpoints/step-12.h5"));
    auto info = nlohmann::json::parse(contents("first/run.json").toStdString());
    info["state"] = "running";
    program_.write("stopped/run.json", QByteArray::fromStdString(info.dump()));
  }

  void links_are_refused_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("folder");
    for (const char* name : {"journal.jsonl", "log.txt", "lock", "run.json"}) QTest::newRow(name) << name << false;
    for (const char* name : {"checkpoints", "captures"}) QTest::newRow(name) << name << true;
  }
  /// Resuming writes nothing through a link that stands in the place of a run's file or folder, and says so in one line.
  void links_are_refused() {
    QFETCH(QString, name);
    QFETCH(bool, folder);
    program_.copy("stopped", "run");
    fs::remove_all(file("elsewhere"));
    fs::rename(file("run/" + name), file("elsewhere"));
    fs::create_symlink(file("elsewhere"), file("run/" + name));
    if (folder) std::ofstream(file("elsewhere") / ".step-1.h5.tmp-999999999") << "precious";
    const QByteArray before = contents("elsewhere");
    const auto result = program_.run({"-q", "resume", program_.path("run")});
    QVERIFY2(result.code == 3 && is_one_error(result) && result.err.contains(name + " is a link"), qPrintable(result.err));
    QCOMPARE(contents("elsewhere"), before);
  }

  void a_linked_checkpoint_is_not_read() {
    program_.copy("first", "finished");
    fs::rename(file("finished/checkpoints/step-12.h5"), file("step-12.h5"));
    fs::create_symlink(file("step-12.h5"), file("finished/checkpoints/step-12.h5"));
    const auto result = program_.run({"-q", "evaluate", program_.path("finished"), "--checkpoint", "12"});
    QVERIFY2(result.code == 3 && is_one_error(result) && result.err.contains("is a link"), qPrintable(result.err));
  }

  /// A lock that is a link in a new directory: the file it leads to is not overwritten with our process's number.
  void a_link_in_a_new_directory_is_refused() {
    fs::create_directory(file("new"));
    program_.write("victim", "precious");
    fs::create_symlink(file("victim"), file("new/lock"));
    const auto result = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("new")});
    QVERIFY2(result.code == 3 && is_one_error(result), qPrintable(result.err));
    QCOMPARE(contents("victim"), QByteArray("precious"));
  }

  void a_run_may_be_reached_by_a_link() {
    program_.copy("stopped", "run");
    fs::create_directory_symlink(file("run"), file("alias"));
    QCOMPARE(program_.run({"-q", "resume", program_.path("alias")}).code, 0);
    QCOMPARE(program_.run({"-q", "compare", program_.path("alias")}).code, 0);
  }

  void files_are_their_owners() {
    const auto modes = [&](const QString& run) {
      std::set<int> files, folders;
      struct stat state {};
      for (const auto& entry : fs::recursive_directory_iterator(file(run))) {
        ::stat(entry.path().c_str(), &state);
        (entry.is_directory() ? folders : files).insert(static_cast<int>(state.st_mode & 0777));
      }
      ::stat(file(run).c_str(), &state);
      folders.insert(static_cast<int>(state.st_mode & 0777));
      return std::pair(files, folders);
    };
    const auto train = [&](const QString& run) {
      return program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path(run)}, [] { ::umask(0022); });
    };
    QCOMPARE(train("own/run").code, 0);
    QVERIFY(modes("own/run") == std::pair(std::set<int>{0600}, std::set<int>{0700}));
    qputenv("SACCADE_SHARE_RUNS", "1");
    const int code = train("shared").code;
    qunsetenv("SACCADE_SHARE_RUNS");
    QCOMPARE(code, 0);
    QVERIFY(modes("shared") == std::pair(std::set<int>{0644}, std::set<int>{0755}));
  }

  /// What a process that was killed while it wrote leaves goes with the next one that writes; what a live one holds stays.
  void left_files_go() {
    program_.copy("stopped", "run");
    const std::vector<QString> left{"run/.run.json.tmp-999999999", "run/checkpoints/.step-7.h5.tmp-999999998",
                                    "run/captures/.step-7.h5.tmp-999999997", "run/.results.h5.tmp-1"};
    const std::vector<QString> not_ours{"run/notes.tmp-5", "run/.notes.tmp-mine", "run/checkpoints/.tmp-5"};
    for (const auto* names : {&left, &not_ours})
      for (const QString& name : *names) program_.write(name, "half");
    program_.write("run/.results.h5.tmp-2", "a live process's");
    const int held = ::open(file("run/.results.h5.tmp-2").c_str(), O_RDWR);
    QCOMPARE(::flock(held, LOCK_EX | LOCK_NB), 0);
    QCOMPARE(program_.run({"-q", "resume", program_.path("run")}).code, 0);
    for (const QString& name : left) QVERIFY2(!fs::exists(file(name)), qPrintable(name));
    for (const QString& name : not_ours) QVERIFY2(fs::exists(file(name)), qPrintable(name));
    QVERIFY(fs::exists(file("run/.results.h5.tmp-2")));
    ::close(held);
  }

  void left_exports_go() {
    program_.write(".loss.csv.tmp-999999999", "half");
    program_.write(".other.csv.tmp-999999999", "another file's");
    QCOMPARE(program_.run({"-q", "export", "loss", program_.path("first"), "--out", program_.path("loss.csv")}).code, 0);
    QVERIFY(!fs::exists(file(".loss.csv.tmp-999999999")) && fs::exists(file(".other.csv.tmp-999999999")));
    struct stat state {};
    ::stat(file("loss.csv").c_str(), &state);
    QVERIFY((state.st_mode & 0044) != 0);  // a figure is no file of a run
  }

  void an_interrupted_start_is_started_anew_data() {
    QTest::addColumn<bool>("made");
    QTest::newRow("killed before run.json") << false;
    QTest::newRow("killed behind run.json") << true;
  }
  void an_interrupted_start_is_started_anew() {
    QFETCH(bool, made);
    fs::remove_all(file("begun"));
    fs::create_directory(file("begun"));
    program_.write("begun/lock", "999999999 elsewhere\n");
    program_.write("begun/.run.json.tmp-999999999", "{");
    if (made) {
      auto info = nlohmann::json::parse(contents("first/run.json").toStdString());
      info["state"] = "created", info["step"] = 0;
      program_.write("begun/run.json", QByteArray::fromStdString(info.dump()));
      const QByteArray journal = contents("first/journal.jsonl");
      program_.write("begun/journal.jsonl", journal.left(journal.indexOf('\n') + 1));
    }
    const auto result = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("begun")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QVERIFY(!fs::exists(file("begun/.run.json.tmp-999999999")));
    QCOMPARE(contents("begun/journal.jsonl").count("\"state\""), contents("first/journal.jsonl").count("\"state\""));
  }

  /// The lock file can be deleted; the run stays held.
  void a_deleted_lock_lets_nobody_in() {
    fs::remove_all(file("held"));
    auto holder =
        program_.start({"-q", "train", program_.path("config.json"), "--out", program_.path("held"), "--set", "training.steps=1000000"});
    QVERIFY(program_.wait_for_records("held", 60));
    fs::remove(file("held/lock"));
    const auto second = program_.run({"-q", "resume", program_.path("held")});
    QVERIFY2(second.code == 5 && is_one_error(second) && second.err.contains("in use by"), qPrintable(second.err));
    QVERIFY(program_.run({"-q", "--json", "compare", program_.path("held")}).out.contains("(running)"));
    QCOMPARE(holder->state(), QProcess::Running);
    holder->terminate();
    QCOMPARE(Program::finish(*holder).code, 130);
  }

  void a_run_json_that_cannot_be_read_is_not_called_damaged() {
    program_.copy("stopped", "run");
    fs::remove(file("run/run.json"));
    fs::create_directory(file("run/run.json"));
    const auto result = program_.run({"-q", "compare", program_.path("run")});
    QVERIFY2(result.code == 3 && !result.err.contains("damaged"), qPrintable(result.err));
  }

  /// An old checkpoint that cannot be deleted is told, and the run goes on.
  void an_undeletable_checkpoint_ends_no_run() {
    program_.copy("stopped", "run");
    fs::create_directory(file("run/checkpoints/step-1.h5"));
    const auto result = program_.run({"resume", program_.path("run")});
    QVERIFY2(result.code == 0 && result.err.contains("cannot remove") && result.err.contains("step-1.h5"), qPrintable(result.err));
  }

 private:
  fs::path file(const QString& name) const { return program_.path(name).toStdString(); }
  /// Of a file, or of all files of a folder with their names.
  QByteArray contents(const QString& name) const {
    QByteArray all;
    std::set<fs::path> files{file(name)};
    if (fs::is_directory(file(name)))
      for (const auto& entry : fs::directory_iterator(file(name))) files.insert(entry.path());
    for (const fs::path& path : files) {
      if (path != file(name)) all += path.c_str();
      QFile content(QString::fromStdString(path.string()));
      if (content.open(QIODevice::ReadOnly)) all += content.readAll();
    }
    return all;
  }

  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RunFilesTest)
#include "run_files_test.moc"
