// saccade queue through the real program: its order, and runs that share cores, devices and workers.
#include <QRegularExpression>
#include <algorithm>
#include <set>
#include <thread>

#include "analysis/studies/queue_worker.h"
#include "analysis/studies/study_folder.h"
#include "tests/app/study_fixture.h"
#include "tests/support/instrumented.h"

using namespace saccade;
using namespace saccade::test;
namespace fs = std::filesystem;

class StudyQueueTest : public StudyTest {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(), train_widths(); }

  /// As many runs at a time as the cores hold, with equal shares of them, and the same losses as one after the other.
  void runsShareTheCores() {
    Json base = Program::config();
    base["threads"] = 0;
    write_study("shared.json", small_study(base));
    const auto shared =
        program_.run({"-q", "study", "start", program_.path("shared.json"), "--out", program_.path("shared"), "--jobs", "auto", "--wait"});
    QVERIFY2(shared.code == 0, qPrintable(shared.err));
    QVERIFY(at_rest());
    QCOMPARE(program_.run({"--json", "queue", "list"}).json()[0]["jobs"], "auto");
    const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    int64_t least = cores;
    for (const auto& entry : fs::directory_iterator(folder("shared") / "runs")) {
      const Run run(entry.path());
      const int64_t threads = run.info().config["threads"];
      QVERIFY(threads >= 1 && threads <= cores);
      least = std::min(least, threads);
      const Run alone(folder("widths") / "runs" / entry.path().filename());
      QCOMPARE(run.find("train/loss")->value, alone.find("train/loss")->value);
      QCOMPARE(run.find("ood/loss")->value, alone.find("ood/loss")->value);
    }
    QVERIFY(cores < 2 || least <= cores / 2);  // four were ready when the first one began
    QVERIFY(program_.run({"queue", "go-on", "--jobs", "1"}).code == 0);
    const auto wrong = program_.run({"queue", "go-on", "--jobs", "many"});
    QVERIFY2(wrong.code == 2 && wrong.err.contains("expected auto, or a number from 1 to 64"), qPrintable(wrong.err));
  }

  /// The worker measures what runs make together, from their journals, as it does on a GPU; here of runs with a core each.
  void theWorkerMeasuresWhatRunsMakeTogether() {
    share_queues();
    Json base = Program::config();
    const int steps = 40000 / kSlower;  // as long as it takes to measure
    base["training"].update({{"steps", steps}, {"evaluate_every", steps}, {"probe_every", steps}, {"checkpoint_every", steps}});
    Json file = small_study(base);
    file["axes"][0]["values"] = {16, 24};
    file["seeds"] = {1};
    file.erase("tuning");
    write_study("measured.json", file);
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(
        program_.run({"-q", "study", "start", program_.path("measured.json"), "--out", program_.path("measured"), "--jobs", "auto"}).code ==
        0);
    const DeviceQueue queue("cpu");
    queue.edit([](QueueState& state) { state.paused = false; });  // no worker but this one
    QStringList said;
    const std::atomic<bool> stop = false;
    QueueWorker(
        queue, qEnvironmentVariable("SACCADE_BINARY").toStdString(), [&](const std::string& line) { said << QString::fromStdString(line); },
        true)
        .work(stop);
    QCOMPARE(status("measured")["complete"], true);
    QCOMPARE(finished("measured").size(), size_t{4});
    const QStringList measured = said.filter(QRegularExpression("^2 runs at a time make [0-9.]+ times the tokens a second of 1$"));
    QVERIFY2(!measured.isEmpty(), qPrintable(said.join("\n")));
    qInfo("%s", qPrintable(said.join("\n")));
    const qsizetype first_end = said.indexOf("width-16_seed-1: finished"), second = said.indexOf("width-24_seed-1: started");
    QVERIFY(second >= 0 && second < first_end);  // beside the first one, once that was measured
    QVERIFY(program_.run({"queue", "go-on", "--jobs", "1"}).code == 0);
    QVERIFY(at_rest());
  }

  /// A study that stands in the queues of two devices: their workers share its runs, and each is begun once. (Both train on the CPU here,
  /// as the config says, since a second device is not at hand.)
  void workersOfTwoQueuesShareAStudy() {
    share_queues();
    Json base = Program::config();
    base["device"] = "cpu";
    Json file = small_study(base);
    file["axes"][0]["values"] = {8, 16, 24, 32};
    write_study("shared-out.json", file);
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(program_.run({"-q", "study", "start", program_.path("shared-out.json"), "--out", program_.path("shared-out"), "--jobs", "2"})
                .code == 0);
    const DeviceQueue first("cpu"), second("cuda:7");
    enqueue_study(second, folder("shared-out"));
    first.edit([](QueueState& state) { state.paused = false; });  // no workers but these
    const std::atomic<bool> stop = false;
    const auto work = [&](const DeviceQueue& queue, std::vector<std::string>& said) {
      QueueWorker(queue, qEnvironmentVariable("SACCADE_BINARY").toStdString(), [&](const std::string& line) {
        said.push_back(line);
      }).work(stop);
    };
    std::vector<std::string> by_first, by_second;
    std::thread other([&] { work(second, by_second); });
    work(first, by_first);
    other.join();
    const auto started = [](const std::vector<std::string>& said) {
      std::set<std::string> runs;
      for (const std::string& line : said)
        if (line.ends_with(": started") && !runs.insert(line).second) runs.insert(line + " again");
      return runs;
    };
    const std::set<std::string> one = started(by_first), two = started(by_second);
    qInfo("%zu and %zu runs", one.size(), two.size());
    QVERIFY(!one.empty() && !two.empty());
    std::set<std::string> all = one;
    all.insert(two.begin(), two.end());
    QCOMPARE(all.size(), one.size() + two.size());
    QCOMPARE(all.size(), size_t{12});  // four widths at two rates, then another seed at the better one
    QCOMPARE(status("shared-out")["complete"], true);
    QCOMPARE(finished("shared-out").size(), size_t{24});
    for (const auto& entry : fs::directory_iterator(folder("shared-out") / "logs")) QFAIL(entry.path().c_str());
    QVERIFY(program_.run({"queue", "go-on", "--device", "cpu", "--jobs", "1"}).code == 0);
    QVERIFY(second.read().entries.empty());
    fs::remove_all(second.folder());
    QVERIFY(at_rest());
  }

  /// --devices is kept, and decides where its runs train whatever their configs say.
  void isSpreadOverDevices() {
    Json base = Program::config();
    base["device"] = "cuda:9";
    Json file = small_study(base);
    file.erase("tuning");
    write_study("spread.json", file);
    const auto start = [&](const QString& devices) {
      return program_.run(
          {"--json", "study", "start", program_.path("spread.json"), "--out", program_.path("spread"), "--devices", devices});
    };
    for (const auto& [devices, why] : {std::pair{"cpu,cpu", "names cpu twice"}, std::pair{"gpu", "expected all, or a list of cuda:N"},
                                       std::pair{"cuda:90-91", "cuda:90"}}) {
      const auto wrong = start(devices);
      QVERIFY2(wrong.code != 0 && wrong.err.contains(why), qPrintable(wrong.out + wrong.err));
      QVERIFY(!fs::exists(folder("spread")));
    }
    const auto begun = start("cpu");
    QVERIFY2(begun.code == 0 && begun.json()["queue"] == "cpu", qPrintable(begun.out + begun.err));
    const auto resumed = program_.run({"--json", "study", "resume", program_.path("spread"), "--wait"});
    QVERIFY2(resumed.code == 0 && resumed.json()["complete"] == true, qPrintable(resumed.out + resumed.err));
    for (const auto& entry : fs::directory_iterator(folder("spread") / "runs")) {
      const RunInfo info = read_run_info(entry.path());
      QCOMPARE(info.config["device"], "cuda:9");
      QCOMPARE(info.provenance["device"], "cpu");
    }
    QVERIFY(at_rest());
  }

  void aStudyWithoutItsFolders_data() {
    QTest::addColumn<QString>("broken");
    QTest::addColumn<QString>("missing");
    QTest::newRow("no log") << "logs"
                            << "configs";  // seen before a run of it is chosen
    QTest::newRow("no config") << "configs"
                               << "logs";  // when the run is to start
  }

  /// A study that was copied without its folders of configs and logs goes on; one in which they cannot be written leaves the queue to the
  /// others, and its status says why until it is resumed.
  void aStudyWithoutItsFolders() {
    QFETCH(QString, broken);
    QFETCH(QString, missing);
    Json file = small_study(Program::config());
    file.erase("tuning");
    const QString bare = "bare-" + broken, behind = "behind-" + broken;
    write_study(bare + ".json", file);
    write_study(behind + ".json", file);
    const auto start = [&](const QString& name) {
      return program_.run({"-q", "study", "start", program_.path(name + ".json"), "--out", program_.path(name)}).code;
    };
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    QVERIFY(start(bare) == 0 && start(behind) == 0);
    const fs::path no_folder = folder(bare) / broken.toStdString();
    fs::remove_all(no_folder);
    std::ofstream(no_folder) << "no folder";
    QVERIFY(program_.run({"queue", "go-on"}).code == 0);
    QVERIFY(at_rest());
    QCOMPARE(status(behind)["complete"], true);
    const auto left = QString::fromStdString(status(bare)["waits"].get<std::string>());
    QVERIFY2(
        left.startsWith("left the queue of cpu, ") && left.contains("/" + bare + "/" + broken + "/") && left.contains("Not a directory"),
        qPrintable(left));
    const auto refused = program_.run({"study", "resume", program_.path(bare), "--wait"});
    QVERIFY2(is_one_error(refused) && refused.err.contains(broken), qPrintable(refused.err));

    fs::remove(no_folder);
    fs::remove_all(folder(bare) / missing.toStdString());
    const auto resumed = program_.run({"-q", "study", "resume", program_.path(bare), "--wait"});
    QVERIFY2(resumed.code == 0, qPrintable(resumed.err));
    QCOMPARE(status(bare)["complete"], true);
    QVERIFY(at_rest());
    QVERIFY(read_study_state(folder(bare)).left_queue.empty());
  }

  void queueHasAnOrder() {
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
    QVERIFY(program_.run({"queue", "pause", "--device", "cpu"}).code == 0);
    for (const char* name : {"a", "b", "c"})
      QVERIFY(
          program_.run({"queue", "add", program_.path("config.json"), "--out", program_.path(name), "--set", "training.steps=3"}).code ==
          0);
    const auto order = [&] {
      QStringList names;
      const Json queue = program_.run({"--json", "queue", "list"}).json()[0];
      for (const Json& entry : queue["entries"])
        names << QString::fromStdString(fs::path(entry["directory"].get<std::string>()).filename().string());
      return names.join(" ");
    };
    QCOMPARE(order(), QString("a b c"));
    QVERIFY(program_.run({"queue", "move", "c", "1"}).code == 0);
    QCOMPARE(order(), QString("c a b"));
    QVERIFY(program_.run({"queue", "remove", "a"}).code == 0);
    QCOMPARE(order(), QString("c b"));
    auto unknown = program_.run({"queue", "remove", "a"});
    QVERIFY(is_one_error(unknown) && unknown.code == 2);
    const Json before = program_.run({"--json", "queue", "list"}).json()[0];
    const int b = before["entries"][1]["id"].get<int>();
    QVERIFY(program_.run({"queue", "remove", "c"}).code == 0 && program_.run({"queue", "remove", "b"}).code == 0);
    QCOMPARE(order(), QString());
    QVERIFY(program_.run({"queue", "put-back", QString::number(b)}).code == 0);
    QVERIFY(program_.run({"queue", "put-back", QString::number(before["entries"][0]["id"].get<int>())}).code == 0);
    QVERIFY(program_.run({"queue", "put-back", QString::number(b)}).code == 0);  // it is there already
    QCOMPARE(program_.run({"--json", "queue", "list"}).json()[0]["entries"], before["entries"]);
    unknown = program_.run({"queue", "put-back", "4711"});
    QVERIFY2(is_one_error(unknown) && unknown.code == 2 && unknown.err.contains("nothing with the number 4711"), qPrintable(unknown.err));
    QVERIFY(program_.run({"queue", "add", program_.path("config.json"), "--out", program_.path("b")}).code == 2);  // waits already
    QVERIFY(!fs::exists(folder("c")));
    const auto going = program_.run({"queue", "go-on"});  // the worker is there when its queue is shown
    QVERIFY2(going.code == 0 && !going.out.contains("nobody works it off"), qPrintable(going.out + going.err));
    QVERIFY(at_rest());
    QCOMPARE(read_run_info(folder("c")).state, RunState::finished);
    QCOMPARE(read_run_info(folder("b")).state, RunState::finished);
    QVERIFY(!fs::exists(folder("a")));
  }
};

QTEST_GUILESS_MAIN(StudyQueueTest)
#include "study_queue_test.moc"
