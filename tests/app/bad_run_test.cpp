#include "program.h"

#include <sys/mount.h>
#include <sys/resource.h>

namespace saccade::test {

/// Damaged, full and occupied run directories: one line, the exit code, and nothing written before is harmed.
class BadRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.train("finished");
    // Stopped after several checkpoints, as SIGTERM leaves it.
    program_.write("long.json", QByteArray::fromStdString(Program::config().dump()));
    auto process =
        program_.start({"-q", "train", program_.path("long.json"), "--out", program_.path("stopped"), "--set", "training.steps=1000000"});
    QVERIFY(program_.wait_for_records("stopped", 30));
    process->terminate();
    const Program::Result result = Program::finish(*process);
    QVERIFY2(result.code == 130, qPrintable(result.err));
  }

  void damaged_data() {
    QTest::addColumn<QString>("base");
    QTest::addColumn<QString>("file");
    QTest::addColumn<QByteArray>("content");  // null: bits are turned over; "-": the file is removed
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const char* base, const char* file, const QByteArray& content, const QStringList& arguments,
                        int code, const char* says) { QTest::newRow(name) << base << file << content << arguments << code << says; };
    const QByteArray bit, removed = "-";
    row("compare, run.json cut", "finished", "run.json", "{\"name\": ", {"compare", "RUN"}, 3, "run.json:1:");
    row("compare, run.json without fields", "finished", "run.json", "{\"format_version\": 1}", {"compare", "RUN"}, 3,
        "key 'name' not found");
    row("compare, run.json of another version", "finished", "run.json", "{\"format_version\": 9}", {"compare", "RUN"}, 3, "version 9");
    row("inspect, run.json empty", "finished", "run.json", "", {"inspect", "RUN"}, 3, "run.json:1:1");
    row("evaluate, run.json removed", "finished", "run.json", removed, {"evaluate", "RUN"}, 3, "has no run.json");
    row("resume, run.json cut", "stopped", "run.json", "[", {"resume", "RUN"}, 3, "run.json:1:");
    row("stop, run.json removed", "finished", "run.json", removed, {"stop", "RUN"}, 3, "has no run.json");
    row("compare, journal damaged", "finished", "journal.jsonl", bit, {"compare", "RUN"}, 0, "damaged or missing");
    row("export, journal damaged", "finished", "journal.jsonl", bit, {"export", "loss", "RUN", "--out", "loss.csv"}, 0,
        "damaged or missing");
    row("compare, journal removed", "finished", "journal.jsonl", removed, {"compare", "RUN"}, 3, "journal.jsonl is missing");
    row("compare, journal empty", "finished", "journal.jsonl", "", {"compare", "RUN"}, 3, "ends at step 0");
    row("inspect, capture damaged", "finished", "captures/step-12.h5", bit, {"inspect", "RUN"}, 3, "step-12.h5");
    row("inspect, capture of text", "finished", "captures/step-12.h5", "no HDF5", {"inspect", "RUN"}, 3, "step-12.h5");
    row("export, capture empty", "finished", "captures/step-12.h5", "", {"export", "selection", "RUN", "--out", "map.csv"}, 3,
        "step-12.h5");
    row("evaluate, checkpoint damaged", "finished", "checkpoints/step-12.h5", bit, {"evaluate", "RUN", "--checkpoint", "12"}, 3,
        "step-12.h5");
    row("evaluate, checkpoint of text", "finished", "checkpoints/step-12.h5", "no HDF5", {"evaluate", "RUN", "--checkpoint", "12"}, 3,
        "step-12.h5");
    row("compare, results.h5 damaged: not read", "finished", "results.h5", bit, {"compare", "RUN"}, 0, "");
    row("compare, one of several is no run", "finished", "run.json", removed, {"compare", "finished", "RUN"}, 0, "has no run.json");
    row("evaluate, newest checkpoint damaged", "finished", "checkpoints/step-12.h5", bit, {"evaluate", "RUN"}, 3,
        "name an earlier one with --checkpoint: 8");
    row("generate, newest checkpoint of text", "finished", "checkpoints/step-12.h5", "junk", {"--json", "generate", "RUN"}, 3,
        "name an earlier one with --checkpoint: 8");
    row("generate, the named checkpoint is used", "finished", "checkpoints/step-12.h5", "junk",
        {"--json", "generate", "RUN", "--tokens", "2", "--checkpoint", "8"}, 0, "\"step\":8");
  }
  void damaged() {
    QFETCH(QString, base);
    QFETCH(QString, file);
    QFETCH(QByteArray, content);
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, says);
    program_.copy(base, "run");
    if (content.isNull())
      program_.damage("run/" + file);
    else if (content == "-")
      QVERIFY(QFile::remove(program_.path("run/" + file)));
    else
      program_.write("run/" + file, content);
    const QByteArray before = program_.contents("run");
    arguments.replaceInStrings("RUN", program_.path("run"));
    const Program::Result result = program_.run(QStringList{"-q"} + arguments);
    QVERIFY2(result.code == code, qPrintable(QString::number(result.code) + ": " + result.err + result.out));
    if (code != 0) QVERIFY2(is_one_error(result) && result.err.contains(says), qPrintable(result.err + result.out));
    QCOMPARE(program_.contents("run"), before);
    if (code == 0)
      QVERIFY2(QString(result.out + result.err).remove(' ').contains(QString(says).remove(' ')), qPrintable(result.out + result.err));
    QCOMPARE(QFile::remove(program_.path("loss.csv")), code == 0 && arguments.contains("loss.csv"));
    QVERIFY(!QFile::exists(program_.path("map.csv")));
  }

  void resume_without_a_good_checkpoint() {
    program_.copy("stopped", "run");
    for (const QString& name : QDir(program_.path("run/checkpoints")).entryList(QDir::Files)) program_.damage("run/checkpoints/" + name);
    const QByteArray before = program_.contents("run");
    const Program::Result result = program_.run({"-q", "resume", program_.path("run")});
    QCOMPARE(result.code, 3);
    QVERIFY2(is_one_error(result), qPrintable(result.err + result.out));
    QCOMPARE(program_.contents("run"), before);
  }

  void resume_on_another_corpus() {
    program_.copy("stopped", "run");
    program_.copy("data", "data-kept");
    QByteArray lines;
    for (int i = 0; i < 200; ++i)
      for (const char* domain : {"prose", "code"}) {
        const nlohmann::json line{{"text", std::string("other ") + domain + ", number " + std::to_string(i)},
                                  {"meta", {{"redpajama_set_name", domain}}}};
        lines += QByteArray::fromStdString(line.dump()) + "\n";
      }
    program_.write("other.jsonl", lines);
    QCOMPARE(program_.run({"corpus", "import", "mine", program_.path("other.jsonl"), "--replace", "--validation-share", "0.3"}).code, 0);
    const QByteArray before = program_.contents("run");
    const Program::Result result = program_.run({"-q", "resume", program_.path("run")});
    program_.copy("data-kept", "data");
    QVERIFY2(result.code == 3 && is_one_error(result) && result.err.contains("has changed"), qPrintable(result.err));
    QCOMPARE(program_.contents("run"), before);
  }

  void damaged_corpus() {
    program_.copy("data", "data-kept");
    int damaged = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(program_.path("data").toStdString()))
      if (entry.is_regular_file() && entry.file_size() > 0) {
        std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
        ++damaged;
      }
    QVERIFY(damaged > 2);
    const Program::Result result = program_.run({"-q", "train", program_.path("long.json"), "--out", program_.path("new")});
    program_.copy("data-kept", "data");
    QVERIFY2(result.code == 3 && is_one_error(result), qPrintable(result.err));
    QVERIFY(!QFileInfo::exists(program_.path("new")));
  }

  void in_use() {
    program_.copy("stopped", "run");
    auto holder = program_.start({"-q", "resume", program_.path("run")});
    QVERIFY(QTest::qWaitFor(
        [&] {
          return program_.run({"-q", "--json", "compare", program_.path("run")}).out.contains("(running)");
        },
        60000));
    const QString pid = QString::number(holder->processId());
    for (const QStringList& arguments : {QStringList{"-q", "resume", program_.path("run")},
                                         QStringList{"-q", "train", program_.path("long.json"), "--out", program_.path("run")}}) {
      const Program::Result result = program_.run(arguments);
      QVERIFY2(result.code == 5 && is_one_error(result) && result.err.contains("in use by process " + pid), qPrintable(result.err));
    }
    QCOMPARE(holder->state(), QProcess::Running);
    QCOMPARE(program_.run({"stop", program_.path("run")}).code, 0);
    QCOMPARE(Program::finish(*holder).code, 130);
    const auto again = program_.run({"--json", "stop", program_.path("run")});
    QVERIFY(again.code == 0 && again.json()["stopping"] == false);
  }

  /// A write fails in the middle of the run: it ends as failed, what was there stays, and without the limit it goes on.
  void files_that_may_not_grow() {
    program_.copy("stopped", "run");
    const QByteArray checkpoints = program_.contents("run/checkpoints");
    const auto limit = [] {
      const rlimit bytes{4096, 4096};
      setrlimit(RLIMIT_FSIZE, &bytes);
    };
    const Program::Result result = program_.run({"-q", "resume", program_.path("run")}, limit);
    QVERIFY2(result.code == 3 && is_one_error(result), qPrintable(QString::number(result.code) + result.err));
    QCOMPARE(program_.contents("run/checkpoints"), checkpoints);
    QCOMPARE(program_.run({"-q", "compare", program_.path("run")}).code, 0);

    auto process = program_.start({"-q", "resume", program_.path("run")});
    QVERIFY(program_.wait_for_records("run", 60));
    process->terminate();
    QCOMPARE(Program::finish(*process).code, 130);
  }

  void full_device() {
    const QString disk = program_.path("disk");
    QDir().mkpath(disk);
    if (::mount("none", disk.toUtf8(), "tmpfs", 0, "size=300k") != 0)
      QSKIP("no right to mount a small file system: full device not tested");
    const Program::Result result =
        program_.run({"-q", "train", program_.path("long.json"), "--out", disk + "/run", "--set", "training.steps=400"});
    const Program::Result compared = program_.run({"-q", "--json", "compare", disk + "/run"});
    const bool journal_good = compared.code == 0;
    ::umount(disk.toUtf8());
    QVERIFY2(result.code == 3 && is_one_error(result), qPrintable(QString::number(result.code) + result.err));
    QVERIFY2(journal_good && compared.out.contains("(failed)"), qPrintable(compared.err + compared.out));
  }

  /// Figures on a disk with room for a part of them: the exit code is not 0, the line has the system's reason, nothing remains.
  void figures_on_a_full_device_data() {
    QTest::addColumn<QString>("suffix");
    for (const char* suffix : {"pdf", "svg", "png", "csv", "json"}) QTest::newRow(suffix) << suffix;
  }
  void figures_on_a_full_device() {
    QFETCH(QString, suffix);
    const QString disk = program_.path("disk-" + suffix);
    QDir().mkpath(disk);
    if (::mount("none", disk.toUtf8(), "tmpfs", 0, "size=256k") != 0)
      QSKIP("no right to mount a small file system: full device not tested");
    const auto unmount = qScopeGuard([&] { ::umount(disk.toUtf8()); });
    const QString figure = disk + "/figure." + suffix;
    const QStringList arguments{"-q", "export", "loss", program_.path("finished"), "--out", figure};
    Program::Result result = program_.run(arguments);
    if (result.err.contains("is not installed")) QSKIP("the workbench is not built: pictures not tested");
    const qint64 whole = QFileInfo(figure).size();
    QVERIFY2(result.code == 0 && whole > 0, qPrintable(result.err));
    for (const qint64 pages : {0, 1, 2}) {
      if (pages * 4096 >= whole) break;
      QVERIFY(QFile::remove(figure));
      program_.write("disk-" + suffix + "/fill", QByteArray(262144 - 4096 * pages, 'x'));
      result = program_.run(arguments);
      QVERIFY2(result.code != 0 && is_one_error(result) && result.err.contains("No space left on device"), qPrintable(result.err));
      QCOMPARE(QDir(disk).entryList(QDir::Files | QDir::Hidden), QStringList{"fill"});
      QVERIFY(QFile::remove(disk + "/fill"));
      QCOMPARE(program_.run(arguments).code, 0);
    }
  }

 private:
  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BadRunTest)
#include "bad_run_test.moc"
