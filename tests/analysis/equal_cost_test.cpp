// Losses at equal tokens, FLOPs and seconds, and what rows took beside each other.
#include "analysis/comparison/equal_cost.h"

#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "analysis/comparison/comparison.h"
#include "analysis/runs/run_info.h"
#include "tests/analysis/fixture.h"

namespace saccade::test {

namespace fs = std::filesystem;

class EqualCostTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }

  void readsAtEqualSeconds() {
    const auto quick = timed("attention", 1, 1.0), slow = timed("top1_chunk", 1, 2.0);
    const std::vector<const Run*> runs{&quick, &slow};
    const EqualCost equal = compare_at_equal(runs, Spent::seconds);
    QCOMPARE(equal.amount.value(), 10.0);
    QCOMPARE(equal.rows[0].read_from, std::string("end"));
    QCOMPARE(equal.rows[0].pretraining.mean, 4.0);  // 5 − step / 10
    QCOMPARE(equal.rows[1].read_from, std::string("mid-schedule"));
    QVERIFY(std::abs(equal.rows[1].pretraining.mean - 4.5) < 1e-12);  // at step 5, between 4 and 6
    QVERIFY(std::abs(equal.rows[1].ood.mean - 5.5) < 1e-12);
    QVERIFY(std::abs(equal.rows[1].against_first.value() - 0.5) < 1e-12);
    QCOMPARE(equal.warnings.size(), size_t{1});
    QVERIFY2(equal.warnings[0].find("mid-schedule") != std::string::npos, equal.warnings[0].c_str());
    const QString text = QString::fromStdString(to_text(equal));
    QVERIFY2(text.contains("10 s of training") && text.contains("cpu, Xeon") && text.contains("ID loss 4.5000, OOD loss 5.5000"),
             qPrintable(text));
    const EqualCost tokens = compare_at_equal(runs, Spent::tokens);
    QVERIFY(tokens.warnings.empty() && tokens.rows[1].read_from == "end" && tokens.rows[1].pretraining.mean == 4.0);
    QCOMPARE(to_json(tokens).at("what"), "tokens");
    QVERIFY_THROWS_EXCEPTION(UsageError, parse_spent("hours"));
  }

  /// Seconds are those of a device, and of a device alone.
  void secondsOfOtherDevicesAreRefusedAndSharedOnesTold() {
    const auto first = timed("attention", 1, 1.0), other = timed("top1_chunk", 1, 1.0, [](nlohmann::json&p) { p["processor"] = "EPYC"; });
    try {
      compare_at_equal({&first, &other}, Spent::seconds);
      QFAIL("a Xeon's seconds are no EPYC's");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).contains("cpu, EPYC; cpu, Xeon"), error.what());
    }
    QVERIFY(compare_at_equal({&first, &other}, Spent::flops).rows.size() == 2);
    const auto gpu = [](int index) {
      return [index](nlohmann::json& p) { p["device"] = "cuda:" + std::to_string(index), p["gpu"] = "H200"; };
    };
    const auto slot0 = timed("attention", 2, 1.0, gpu(0)), slot1 = timed("top1_chunk", 2, 1.0, gpu(1));
    QVERIFY(different_devices({&slot0.info(), &slot1.info()}).empty());  // two of one model
    QVERIFY(describe_equality(compare({&slot0, &slot1}).rows).find("devices") == std::string::npos);
    QVERIFY(describe_equality(compare({&first, &other}).rows).find("of 2 devices") != std::string::npos);
    const auto from = [](const char* time) { return [time](nlohmann::json& p) { p["started"] = time; }; };
    const auto before = timed("attention", 3, 1.0, from("2000-01-01T00:00:00Z")),
               beside = timed("avey", 3, 1.0, from("2000-01-01T00:00:00Z"));
    const std::vector<std::string> shared = shared_time({&before.info(), &beside.info()});
    QCOMPARE(shared.size(), size_t{1});
    QVERIFY2(shared[0].find("2 of 2 runs were at work on one device at the same time") != std::string::npos, shared[0].c_str());
    const auto later = timed("avey", 4, 1.0, from("2999-01-01T00:00:00Z"));
    QVERIFY(shared_time({&before.info(), &later.info()}).empty());
    const EqualCost told = compare_at_equal({&before, &beside}, Spent::seconds);
    QVERIFY(std::count(told.warnings.begin(), told.warnings.end(), shared[0]) == 1);
  }

  /// What rows took stands beside them, and what of it is equal in words.
  void saysWhatIsEqual() {
    const auto state = [](double bytes) {
      return [bytes](nlohmann::json& p) { p["state_bytes_per_token"] = bytes, p["embedding_parameters"] = 200000; };
    };
    const auto first = timed("attention", 1, 1.0, state(1024)), other = timed("top1_chunk", 1, 2.0, state(64));
    const Comparison c = compare({&first, &other});
    QCOMPARE(c.rows[1].seconds, 20.0);
    QCOMPARE(c.rows[1].state_bytes, 64.0);
    QCOMPARE(c.equality,
             std::string("Equal within 1 %: parameters, parameters without embeddings, tokens, FLOPs. Not equal: seconds of training 10 to "
                         "20, bytes of state per token of context 64 to 1024."));
    const QString text = QString::fromStdString(to_text(c));
    QVERIFY2(text.contains("800000") && text.contains(QString::fromStdString(c.equality)), qPrintable(text));
    QCOMPARE(to_json(c).at("rows")[0].at("state_bytes_per_token"), 1024.0);
    QVERIFY(compare({&first}).equality.empty());
  }

 private:
  /// Ten steps of `pace` seconds, evaluated at every second one: loss 5 − step / 10, one more on other domains.
  Run timed(const std::string& mixer, int64_t seed, double pace, const std::function<void(nlohmann::json&)>& change = {}) const {
    RunInfo info = fixture_info({.mixer = mixer, .seed = seed, .steps = 10});
    info.provenance["processor"] = "Xeon";
    if (change) change(info.provenance);
    const fs::path directory = path("timed-" + mixer + std::to_string(seed));
    const std::string started = info.provenance.value("started", "");
    RunWriter writer = RunWriter::create(directory, info);
    for (int64_t step = 1; step <= 10; ++step) {
      const Position at{step, step * 1024, static_cast<double>(step) * 6e9, static_cast<double>(step) * pace};
      const double loss = 5 - static_cast<double>(step) / 10;
      writer.add(StepRecord{at.step, at.tokens, at.flops, at.seconds, loss, 1e-3, 1.0, 1000});
      if (step % 2 == 0) writer.add(EvaluationRecord{at, {{"prose", false, loss}, {"c", true, loss + 1}}});
    }
    writer.set_state(RunState::finished, 10);
    RunInfo written = read_run_info(directory);
    written.provenance["started"] = started;  // the writer's is now
    write_run_info(written);
    return Run(directory);
  }
  fs::path path(const std::string& name) const { return fs::path(folder_->path().toStdString()) / name; }

  std::unique_ptr<QTemporaryDir> folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::EqualCostTest)
#include "equal_cost_test.moc"
