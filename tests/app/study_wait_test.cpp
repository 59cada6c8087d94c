// saccade study start --wait where nothing begins: it says what it waits for, and takes the queue up once it can, or ends with an error.
#include "analysis/runs/run_lock.h"
#include "analysis/studies/queue.h"
#include "tests/app/program.h"

namespace saccade::test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class StudyWaitTest : public QObject {
  Q_OBJECT

 private:
  Program program_;

  /// The program at a place where it can be replaced while it runs.
  fs::path copied_program() const {
    const fs::path copy = program_.path("saccade").toStdString();
    fs::remove(copy);
    fs::copy_file(real_, copy);
    qputenv("SACCADE_BINARY", copy.c_str());
    return copy;
  }

  std::unique_ptr<QProcess> start(const QString& study) const {
    return program_.start({"study", "start", program_.path("study.json"), "--out", program_.path(study), "--wait"});
  }

  static bool says(QProcess& process, QByteArray& said, const QByteArray& words) {
    return QTest::qWaitFor([&] { return (said += process.readAllStandardError()).contains(words); }, 30000 * kSlower);
  }

  std::string real_ = qEnvironmentVariable("SACCADE_BINARY").toStdString();

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    const Json file{{"question", "Which seed?"}, {"base", Program::config()}, {"axes", Json::array()}, {"seeds", {1, 2}}};
    program_.write("study.json", QByteArray::fromStdString(file.dump()));
  }
  void cleanup() { qputenv("SACCADE_BINARY", real_.c_str()); }

  /// Another process has the queue; meanwhile the program is replaced, and its file is not whole yet. The worker starts all the same.
  void aWorkerStartsWhileTheProgramIsReplaced() {
    const DeviceQueue queue("cpu");
    const fs::path copy = copied_program();
    std::optional<RunLock> other(queue.worker_folder());
    const auto process = start("replaced");
    QByteArray said;
    QVERIFY2(says(*process, said, "waits for the queue of cpu, which process " + QByteArray::number(QCoreApplication::applicationPid())),
             said.constData());
    QVERIFY2(said.contains(queue.log_file().c_str()) && said.contains("it has begun none of the runs yet"), said.constData());
    fs::remove(copy);
    std::ofstream(copy) << "half";
    other.reset();
    const auto ended = Program::finish(*process);
    QVERIFY2(ended.code == 0, qPrintable(said + ended.err));
    qputenv("SACCADE_BINARY", real_.c_str());
    QCOMPARE(program_.run({"--json", "study", "status", program_.path("replaced")}).json().at("complete"), Json(true));
  }

  /// The program cannot work the queue off: that is an error, which names the worker's log.
  void aWorkerThatEndsAgainAndAgainIsAnError() {
    const DeviceQueue queue("cpu");
    const fs::path copy = copied_program();
    std::optional<RunLock> other(queue.worker_folder());
    const auto process = start("broken");
    QByteArray said;
    QVERIFY2(says(*process, said, "waits for the queue of cpu"), said.constData());
    fs::remove(copy);
    std::ofstream(copy) << "#!/bin/sh\necho no such luck >&2\nexit 7\n";
    fs::permissions(copy, fs::perms::owner_all);
    other.reset();
    const auto ended = Program::finish(*process);
    QVERIFY2(ended.code == 1 && ended.err.contains("waits in vain for the worker of the queue of cpu"), qPrintable(said + ended.err));
    QVERIFY2(ended.err.contains(queue.log_file().c_str()) && ended.err.contains("it said last: no such luck"), qPrintable(ended.err));
    qputenv("SACCADE_BINARY", real_.c_str());
    QCOMPARE(program_.run({"-q", "study", "resume", program_.path("broken"), "--wait"}).code, 0);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StudyWaitTest)
#include "study_wait_test.moc"
