#include <QtTest>
#include <cmath>
#include <cstring>
#include <thread>

#include "models/layers/parts_probe.h"
#include "tests/models/probed_run.h"
#include "tests/support/compare.h"

namespace saccade::test {

/// With all queries zero every score is equal, so what a probe must report is known: uniform weights, and ties that go to
/// the smaller index.
class ProbeTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLength = 300, kChunk = 20;

  static ProbeRecord probed(nlohmann::json settings) {
    settings.update({{"heads", 2}, {"qk_norm", "none"}, {"position", "none"}});
    return test::probed(settings, kLength, [](Model& model) {
      for (const char* name : {"layer0.query", "layer1.query"}) {
        const Tensor& query = model.parameter(name).value;
        std::fill(query.data<double>(), query.data<double>() + query.size(), 0.0);
      }
    });
  }

  /// The mean over all queries of f(t).
  static double mean(const std::function<double(int64_t)>& f, int64_t begin = 0) {
    double sum = 0;
    for (int64_t t = begin; t < kLength; ++t) sum += f(t);
    return sum / static_cast<double>(kLength - begin);
  }
  static void check(const ProbeRecord& record, const std::string& name, double expected) {
    int found = 0;
    for (const HeadStatistic& s : record.statistics) {
      if (s.name != name) continue;
      QCOMPARE(s.layer, found++);
      QCOMPARE(s.heads.size(), size_t(2));
      for (double value : s.heads)
        QVERIFY2(std::abs(value - expected) < 1e-9 * std::max(1.0, std::abs(expected)),
                 qPrintable(QString("%1 is %2, expected %3").arg(name.c_str()).arg(value).arg(expected)));
    }
    QVERIFY2(found == 2, qPrintable(QString("%1 layers report %2").arg(found).arg(name.c_str())));
  }
  static const CapturedMap& map(const ProbeRecord& record, MapKind kind) {
    for (const CapturedMap& m : record.maps)
      if (m.kind == kind && m.layer == 1) return m;
    throw std::runtime_error(std::string("no map ") + to_string(kind));
  }
  static void check_rows(const CapturedMap& weights) {
    QCOMPARE(weights.shape, (std::vector<int64_t>{2, kLength, kLength}));
    for (int64_t row = 0; row < 2 * kLength; ++row) {
      double sum = 0;
      for (int64_t j = 0; j < kLength; ++j) {
        const double w = static_cast<double>(weights.values[static_cast<size_t>(row * kLength + j)]);
        if (j > row % kLength) QCOMPARE(w, 0.0);
        sum += w;
      }
      QVERIFY(std::abs(sum - 1) < 1e-5);
    }
  }
  template <class T>
  static bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
  }
  static double number(int64_t n) { return static_cast<double>(n); }
  static double outside(int64_t t) { return number(std::max<int64_t>(0, t + 1 - 256)); }

 private Q_SLOTS:
  void attention() {
    const ProbeRecord record = probed({{"mixer", "attention"}});
    check(record, "entropy", mean([](int64_t t) { return std::log(number(t + 1)); }));
    check(record, "entropy_normalized", 1);
    check(record, "distance", mean([](int64_t t) { return number(t) / 2; }));
    check(record, "outside_256", mean([](int64_t t) { return outside(t) / number(t + 1); }));
    check_rows(map(record, MapKind::weights));
    QVERIFY(record.selections.empty());
  }

  void windows_bound_the_reads() {
    const ProbeRecord record = probed({{"mixer", "attention"}, {"window", 16}});
    check(record, "entropy", mean([](int64_t t) { return std::log(number(std::min<int64_t>(t + 1, 16))); }));
    check(record, "outside_256", 0);
  }

  void top1_element() {
    const ProbeRecord record = probed({{"mixer", "top1_element"}});
    check(record, "entropy_normalized", 1);  // of the soft distribution
    check(record, "distance", mean(number));
    check(record, "outside_256", mean([](int64_t t) { return t >= 256 ? 1.0 : 0.0; }));
    check_rows(map(record, MapKind::weights));
    check_rows(map(record, MapKind::soft_weights));
    QCOMPARE(map(record, MapKind::weights).values[static_cast<size_t>(kLength * kLength - kLength)], 1.0f);
    QCOMPARE(map(record, MapKind::selected).shape, (std::vector<int64_t>{2, kLength}));
    QVERIFY((record.selections.at(1) == Selection{Selection::Unit::element, 1}));
  }

  void top1_chunk() {
    const ProbeRecord record = probed({{"mixer", "top1_chunk"}, {"chunk", kChunk}});
    const auto used = [](int64_t t) { return number(t % kChunk + 1 + (t >= kChunk ? kChunk : 0)); };
    check(record, "entropy", mean([&](int64_t t) { return std::log(used(t)); }));
    check(record, "captured_mass", mean([](int64_t t) { return number(kChunk) / number(t + 1); }, kChunk));
    check(record, "margin", 0);
    check(record, "chunk_distance", mean([](int64_t t) { return number(t / kChunk); }, kChunk));
    check(record, "usage_entropy", 0);
    check(record, "dead_chunks", 13.0 / 14);     // all queries choose the first of those that the last query could choose
    QCOMPARE(record.choices.size(), size_t{2});  // sequences
    QCOMPARE(record.choices[1].size(), size_t{2});
    const ChosenSources& choices = record.choices[1][1];
    QCOMPARE((std::array{choices.layer, choices.heads, choices.queries, choices.per_query}), (std::array<int64_t, 4>{1, 2, kLength, 1}));
    for (int64_t i = 0; i < 2 * kLength; ++i) QCOMPARE(choices.values[static_cast<size_t>(i)], i % kLength < kChunk ? -1 : 0);
    check_rows(map(record, MapKind::weights));
    QCOMPARE(map(record, MapKind::score).shape, (std::vector<int64_t>{2, kLength, kLength / kChunk}));
    QCOMPARE(map(record, MapKind::captured_mass).shape, (std::vector<int64_t>{2, kLength}));
    QCOMPARE(map(record, MapKind::margin).shape, (std::vector<int64_t>{2, kLength}));
    QCOMPARE(map(record, MapKind::selected).values[0], -1.0f);
    QVERIFY((record.selections.at(0) == Selection{Selection::Unit::chunk, kChunk}));
  }

  void churn_is_the_share_of_queries_that_choose_another_set() {
    const ChosenSources before{.layer = 1, .heads = 2, .queries = 3, .per_query = 2, .values = {-1, -1, 0, -1, 0, 1, -1, -1, 0, -1, 1, 2}};
    ChosenSources now = before;
    QCOMPARE(churn(before, now), (std::vector<double>{0, 0}));
    now.values = {-1, -1, 0, -1, 1, 0, -1, -1, 1, -1, 1, 3};  // in head 0 another order, in head 1 others; query 0 chooses nothing
    QCOMPARE(churn(before, now), (std::vector<double>{0, 1}));
    now.values = before.values;
    now.values[5] = 2;
    QCOMPARE(churn(before, now), (std::vector<double>{0.5, 0}));
    now.values.assign(12, -1);
    QCOMPARE(churn(before, now), (std::vector<double>{1, 1}));
    QVERIFY(std::isnan(churn(now, now)[0]));
    now.heads = 1, now.queries = 6;
    QVERIFY(churn(before, now).empty());
  }

  /// Heads of a part that does not choose have chosen nothing.
  void parts_tell_what_they_chose() {
    std::vector<ProbeRecord> parts(3);
    parts[0].statistics.push_back({"entropy", "nats", 5, {1, 2}});
    parts[1].choices = {{{.layer = 0, .heads = 1, .queries = 2, .per_query = 1, .values = {-1, 0}}},
                        {{.layer = 0, .heads = 1, .queries = 2, .per_query = 1, .values = {-1, -1}}}};
    parts[2].choices = {{{.layer = 0, .heads = 1, .queries = 2, .per_query = 1, .values = {3, 4}}},
                        {{.layer = 0, .heads = 1, .queries = 2, .per_query = 1, .values = {5, 6}}}};
    ProbeRecord all;
    report_parts(all, 5, parts);
    const auto chosen = [](const std::vector<int32_t>& values) {
      return std::vector<ChosenSources>{{.layer = 5, .heads = 4, .queries = 2, .per_query = 1, .values = values}};
    };
    QCOMPARE(all.choices.size(), size_t{2});
    QVERIFY(all.choices[0] == chosen({-1, -1, -1, -1, -1, 0, 3, 4}) && all.choices[1] == chosen({-1, -1, -1, -1, -1, -1, 5, 6}));
    for (auto& sequence : parts[2].choices) sequence[0].queries = 1;
    ProbeRecord none;
    report_parts(none, 5, parts);
    QVERIFY(none.choices.empty());
  }

  /// The same reports in the same order, whichever thread makes them.
  void reports_made_later_are_the_same_data() {
    QTest::addColumn<QByteArray>("architecture");
    const auto add = [](const char* name, const nlohmann::json& architecture) {
      QTest::newRow(name) << QByteArray::fromStdString(architecture.dump());
    };
    const nlohmann::json chunks{{"mixer", "top1_chunk"}, {"heads", 2}, {"chunk", 20}};
    add("attention", {{"mixer", "attention"}, {"heads", 2}});
    add("elements", {{"mixer", "top1_element"}, {"heads", 2}});
    add("chunks", chunks);
    add("mamba", {{"mixer", "mamba2"}, {"heads", 2}});
    add("avey", {{"block", "avey"}, {"split", 20}, {"top_k", 2}});
    add("two in a layer", {{"mixer", "parallel"}, {"heads", 2}, {"first", {{"mixer", "attention"}}}, {"second", {{"mixer", "mamba2"}}}});
  }
  void reports_made_later_are_the_same() {
    QFETCH(const QByteArray, architecture);
    LateReports reports;
    ProbeRecord now, later;
    now.maps_wanted = later.maps_wanted = true;
    const auto settings = nlohmann::json::parse(architecture.toStdString());
    test::look(settings, kLength, now);
    later.reports = &reports;
    test::look(settings, kLength, later);
    later.reports = nullptr;
    QVERIFY(later.statistics.empty() && later.maps.empty() && later.choices.empty() && later.selections.empty());
    std::thread([&] { reports.make(later); }).join();
    QVERIFY(!now.statistics.empty() && !now.maps.empty());
    QCOMPARE(later.statistics.size(), now.statistics.size());
    for (size_t i = 0; i < now.statistics.size(); ++i) {
      const HeadStatistic &a = now.statistics[i], &b = later.statistics[i];
      QVERIFY(a.name == b.name && a.unit == b.unit && a.layer == b.layer && same_bits(a.heads, b.heads));
    }
    QCOMPARE(later.maps.size(), now.maps.size());
    for (size_t i = 0; i < now.maps.size(); ++i) {
      const CapturedMap &a = now.maps[i], &b = later.maps[i];
      QVERIFY(a.kind == b.kind && a.layer == b.layer && a.shape == b.shape && same_bits(a.values, b.values));
    }
    QVERIFY(later.choices == now.choices && later.selections == now.selections);
  }

  void nothing_is_reported_that_nobody_wants() {
    Arena arena(Device::cpu());
    const auto model = make_model(resolve_architecture({{"mixer", "top1_chunk"}, {"chunk", 4}}, 8), 7, 8, arena, DType::f32, 1, false);
    const Tensor tokens = arena.allocate({1, 8}, DType::i32);
    std::fill(tokens.data<int32_t>(), tokens.data<int32_t>() + 8, 1);
    Tape tape(arena, false);
    ProbeRecord record;
    record.statistics_wanted = false;
    model->hidden(tape, tokens, &record);
    QVERIFY(record.statistics.empty() && record.maps.empty());
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ProbeTest)
#include "probe_test.moc"
