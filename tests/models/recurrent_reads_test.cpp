#include <QtTest>
#include <cmath>

#include "tests/models/probed_run.h"
#include "tests/support/compare.h"

namespace saccade::test {

/// What recurrences report to a probe; that the weights are exact is checked beside their ops.
class RecurrentReadsTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLength = 300, kLayers = 2;

  static ProbeRecord probed(nlohmann::json settings, const std::function<void(Model&)>& change = {}) {
    settings["block"] = "mamba";
    return test::probed(settings, kLength, change);
  }
  static void fill(const Tensor& x, double value) { std::fill(x.data<double>(), x.data<double>() + x.size(), value); }
  static const HeadStatistic& statistic(const ProbeRecord& record, const std::string& name) {
    for (const HeadStatistic& s : record.statistics)
      if (s.name == name && s.layer == 1) return s;
    throw std::runtime_error("no statistic " + name);
  }

 private Q_SLOTS:
  void every_recurrence_reports_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int>("heads");
    QTest::newRow("mamba1") << R"({"mixer": "mamba1"})" << 8;
    QTest::newRow("mamba1 none") << R"({"mixer": "mamba1", "decay": "none"})" << 8;
    QTest::newRow("mamba2") << R"({"mixer": "mamba2", "heads": 4, "state": 8})" << 4;
    QTest::newRow("deltanet") << R"({"mixer": "deltanet", "heads": 2})" << 2;
    QTest::newRow("gated_deltanet") << R"({"mixer": "gated_deltanet", "heads": 2})" << 2;
    QTest::newRow("based linear") << R"({"mixer": "based", "heads": 2, "layout": ["linear"]})" << 2;
    QTest::newRow("based window") << R"({"mixer": "based", "heads": 2, "layout": ["window"], "window": 20})" << 2;
  }
  void every_recurrence_reports() {
    QFETCH(QString, settings);
    QFETCH(int, heads);
    const ProbeRecord record = probed(nlohmann::json::parse(settings.toStdString()));
    QCOMPARE(record.maps.size(), size_t(kLayers));
    for (const CapturedMap& map : record.maps) {
      QCOMPARE(map.kind, MapKind::weights);
      QCOMPARE(map.shape, (std::vector<int64_t>{heads, kLength, kLength}));
      double below = 0;
      for (int64_t row = 0; row < heads * kLength; ++row)
        for (int64_t j = 0; j < kLength; ++j) {
          const float w = map.values[static_cast<size_t>(row * kLength + j)];
          if (j > row % kLength) QCOMPARE(w, 0.0f);
          if (j < row % kLength) below = std::max(below, static_cast<double>(std::abs(w)));
        }
      QVERIFY(below > 0);
    }
    for (const char* name : {"entropy", "entropy_normalized", "distance", "outside_256"}) {
      QCOMPARE(statistic(record, name).heads.size(), static_cast<size_t>(heads));
      for (double value : statistic(record, name).heads) QVERIFY2(std::isfinite(value) && value >= 0, name);
    }
  }

  /// D u_t is the token's own input, not a read: another D changes no read, and is reported itself.
  void a_skip_is_no_read_data() {
    QTest::addColumn<QString>("settings");
    QTest::newRow("mamba1") << R"({"mixer": "mamba1"})";
    QTest::newRow("mamba1 none") << R"({"mixer": "mamba1", "decay": "none"})";
    QTest::newRow("mamba2") << R"({"mixer": "mamba2", "heads": 4, "state": 8})";
    QTest::newRow("mamba2 one") << R"({"mixer": "mamba2", "heads": 4, "state": 8, "decay": "one"})";
  }
  void a_skip_is_no_read() {
    QFETCH(QString, settings);
    // In the last layer alone, so that what it reads from is the same.
    const auto with_skip = [&](double d) {
      return probed(nlohmann::json::parse(settings.toStdString()), [d](Model& model) { fill(model.parameter("layer1.skip").value, d); });
    };
    const ProbeRecord usual = with_skip(1), other = with_skip(-30);
    QVERIFY(usual.maps[1].values == other.maps[1].values);
    for (const char* name : {"entropy", "entropy_normalized", "distance", "outside_256"})
      QVERIFY2(statistic(usual, name).heads == statistic(other, name).heads, name);
    for (const double d : statistic(other, "skip").heads) QCOMPARE(d, -30.0);
    for (const double d : statistic(usual, "skip").heads) QCOMPARE(d, 1.0);
  }

  /// Queries and keys of zero: every pair has p = 1, so reads are uniform.
  void uniform_reads() {
    const ProbeRecord record = probed({{"mixer", "based"}, {"heads", 2}, {"layout", {"linear"}}}, [](Model& model) {
      for (const char* name : {"layer0.query", "layer1.query"}) fill(model.parameter(name).value, 0);
    });
    double distance = 0, outside = 0;
    for (int64_t t = 0; t < kLength; ++t) {
      distance += static_cast<double>(t) / 2 / kLength;
      outside += static_cast<double>(std::max<int64_t>(0, t + 1 - 256)) / static_cast<double>(t + 1) / kLength;
    }
    for (double value : statistic(record, "entropy_normalized").heads) QVERIFY(std::abs(value - 1) < 1e-9);
    for (double value : statistic(record, "distance").heads) QVERIFY(std::abs(value - distance) < 1e-9);
    for (double value : statistic(record, "outside_256").heads) QVERIFY(std::abs(value - outside) < 1e-9);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RecurrentReadsTest)
#include "recurrent_reads_test.moc"
