// How many runs at a time pay, by made-up paces and by made-up journals.
#include "analysis/studies/device_sharing.h"

#include <QtTest>
#include <fstream>

#include "analysis/studies/pace_watch.h"

using namespace saccade;

namespace {

/// Tokens a second of all runs of a device together, by their number: the last one is that of all more.
struct MadeUpDevice {
  std::vector<double> together;
  double of_one(int64_t runs) const {
    return together[std::min(static_cast<size_t>(runs), together.size()) - 1] / static_cast<double>(runs);
  }
};

/// Works off so many runs of one model: as many at a time as may be, each measured after every change. The most that were at work, and
/// how many were at work at the end of each change.
std::vector<int64_t> work_off(DeviceSharing& sharing, const MadeUpDevice& device, int runs, const std::string& model = "m") {
  std::vector<int64_t> at_work;
  int64_t running = 0;
  while (runs > 0 || running > 0) {
    const auto fill = [&] { return runs > 0 && sharing.may_add(std::vector<std::string>(static_cast<size_t>(running), model)); };
    while (fill()) {
      ++running, --runs;
      sharing.measured(model, running, device.of_one(running));
    }
    at_work.push_back(running);
    --running;  // one ends
  }
  return at_work;
}

void write_steps(const std::filesystem::path& run, int64_t first, int64_t last, double seconds_each) {
  std::filesystem::create_directories(run);
  std::ofstream journal(run / "journal.jsonl", std::ios::app);
  for (int64_t step = first; step <= last; ++step)
    journal << journal_line(step - 1, to_record(StepRecord{step, 1000 * step, 0, seconds_each * static_cast<double>(step), 3, 1e-3, 1, 0}));
}

}  // namespace

class DeviceSharingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void addsRunsWhileTheSumRises_data() {
    QTest::addColumn<QList<double>>("together");
    QTest::addColumn<int>("tried");
    QTest::addColumn<int>("settles");
    QTest::newRow("nothing is gained") << QList<double>{100, 100} << 2 << 1;
    QTest::newRow("less than is asked for") << QList<double>{100, 104} << 2 << 1;
    QTest::newRow("two lose") << QList<double>{100, 70} << 2 << 1;
    QTest::newRow("two gain, three do not") << QList<double>{100, 150, 151} << 3 << 2;
    QTest::newRow("three gain") << QList<double>{100, 150, 180, 170} << 4 << 3;
    QTest::newRow("all gain") << QList<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18} << 16 << 16;
  }
  void addsRunsWhileTheSumRises() {
    QFETCH(QList<double>, together);
    QFETCH(int, tried);
    QFETCH(int, settles);
    DeviceSharing sharing;
    std::vector<int64_t> at_work = work_off(sharing, {{together.begin(), together.end()}}, 60);
    QCOMPARE(*std::max_element(at_work.begin(), at_work.end()), tried);
    at_work.resize(at_work.size() - static_cast<size_t>(settles));  // the last ones, when nothing waits any more
    QCOMPARE(at_work.front(), tried);
    for (size_t i = 1; i < at_work.size(); ++i) QCOMPARE(at_work[i], settles);  // it goes back, and stays there
  }

  void nothingIsAddedBeforeAllAreMeasured() {
    DeviceSharing sharing;
    QVERIFY(sharing.may_add({}));
    QVERIFY(!sharing.may_add({"m"}));
    sharing.measured("m", 1, 100);
    QVERIFY(sharing.may_add({"m"}));
    QVERIFY(!sharing.may_add({"m", "m"}));  // nobody knows what two make
    sharing.measured("m", 2, 80);
    QVERIFY(sharing.may_add({"m", "m"}));
    QVERIFY(!sharing.may_add({"m", "other"}));
    QCOMPARE(sharing.gain({"m", "m"}, 2), std::optional(1.6));
    QCOMPARE(sharing.gain({"m", "m"}, 3), std::optional<double>());
  }

  /// A slow model beside a fast one makes the sum of tokens smaller, though each keeps most of its pace: judged each by itself, it pays.
  /// Beside itself the fast one gains nothing, and that is kept apart.
  void modelsAreJudgedByThemselves() {
    DeviceSharing sharing;
    sharing.measured("fast", 1, 1000), sharing.measured("slow", 1, 100);
    sharing.measured("fast", 2, 750), sharing.measured("slow", 2, 80);  // one of each
    QCOMPARE(sharing.gain({"fast", "slow"}, 2), std::optional(1.55));
    QVERIFY(sharing.may_add({"fast", "slow"}));
    DeviceSharing crowded;
    work_off(crowded, {{1000, 1000}}, 5, "fast");
    QVERIFY(!crowded.may_add({"fast"}));
    QVERIFY(!crowded.may_add({"slow"}));
    crowded.measured("slow", 1, 100);
    QVERIFY(crowded.may_add({"slow"}));
  }

  void severalMeasurementsAreAveraged() {
    DeviceSharing sharing;
    sharing.measured("m", 1, 90), sharing.measured("m", 1, 110);
    sharing.measured("m", 2, 100);
    QCOMPARE(sharing.gain({"m"}, 2), std::optional(2.0));
  }

  /// Tokens by seconds of steps, from when all had begun; a change of the runs at work begins anew.
  void readsPacesFromJournals() {
    const QTemporaryDir folder;
    const std::filesystem::path a = folder.path().toStdString() + "/a", b = folder.path().toStdString() + "/b";
    write_steps(a, 1, 40, 0.5);  // before it is followed: does not count
    DeviceSharing sharing;
    PaceWatch watch;
    const std::vector<RunAtWork> alone{{a, "a"}}, both{{a, "a"}, {b, "b"}};
    watch.follow(alone);
    QCOMPARE(watch.poll(sharing), 0);
    write_steps(a, 41, 42, 0.5);
    QCOMPARE(watch.poll(sharing), 0);
    write_steps(a, 43, 61, 0.5);
    QCOMPARE(watch.poll(sharing), 0);  // 19 steps
    write_steps(a, 62, 62, 0.5);
    watch.follow(alone);
    QCOMPARE(watch.poll(sharing), 1);
    QVERIFY(sharing.may_add({"a"}));
    write_steps(a, 63, 90, 0.5);
    QCOMPARE(watch.poll(sharing), 0);  // once
    watch.follow(both);
    write_steps(a, 91, 200, 0.5);  // b prepares
    QCOMPARE(watch.poll(sharing), 0);
    write_steps(b, 1, 3, 0.25);
    QCOMPARE(watch.poll(sharing), 0);
    write_steps(a, 201, 230, 0.625);  // 30 steps of which the first brings the seconds of all earlier ones
    write_steps(b, 4, 10, 0.25);
    QCOMPARE(watch.poll(sharing), 1);
    write_steps(b, 11, 40, 0.25);
    QCOMPARE(watch.poll(sharing), 1);
    QVERIFY(sharing.gain({"a", "b"}, 2).has_value());
    QVERIFY(sharing.may_add({"b", "b"}));
  }

  void whatAStepCostsMakesAModel() {
    using Json = nlohmann::json;
    const Json config{{"architecture", {{"mixer", "attention"}}},
                      {"data", {{"sequence_length", 64}}},
                      {"training", {{"batch_tokens", 512}, {"seed", 1}, {"learning_rate", 0.1}}}};
    Json other = config;
    other["training"]["seed"] = 2, other["training"]["learning_rate"] = 0.2, other["name"] = "another";
    QCOMPARE(model_of(other), model_of(config));
    other["training"]["batch_tokens"] = 1024;
    QVERIFY(model_of(other) != model_of(config));
    other = config, other["architecture"]["mixer"] = "mamba2";
    QVERIFY(model_of(other) != model_of(config));
  }
};

QTEST_GUILESS_MAIN(DeviceSharingTest)
#include "device_sharing_test.moc"
