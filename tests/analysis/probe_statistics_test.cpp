#include <QtTest>
#include <cmath>

#include "analysis/training/observe.h"
#include "models/training/probe_plan.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

/// Statistics of a frozen batch against those of each of its sequences alone.
class ProbeStatisticsTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLength = 24;
  LinesCorpus corpus_;

  std::unique_ptr<Trainer> trainer(const nlohmann::json& architecture, const char* precision = "f64") const {
    const RunConfig config = small_run(architecture, {}, precision);
    return std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config));
  }

  /// Documents of so many tokens, each in a row of its own.
  FrozenBatch documents(const std::vector<int64_t>& lengths) const {
    FrozenBatch batch = frozen(std::ssize(lengths), kLength, corpus_.vocabulary());
    for (size_t s = 0; s < lengths.size(); ++s) {
      const auto row = batch.targets.begin() + static_cast<int64_t>(s) * kLength;
      std::fill(row + lengths[s], row + kLength, kNoTarget);
    }
    return batch;
  }

  static ProbeRecord probed(Trainer& trainer, const FrozenBatch& batch, int64_t sequence) {
    const int64_t length = batch.targets_of(sequence);
    const auto cut = [&](const std::vector<int32_t>& all) {
      return std::vector<int32_t>(all.begin() + sequence * kLength, all.begin() + sequence * kLength + length);
    };
    ProbeRecord record;
    trainer.probe({batch.domain, cut(batch.tokens), cut(batch.targets), 1, length}, record);
    return record;
  }

  static double mean(const std::vector<double>& values) {
    double sum = 0, count = 0;
    for (const double value : values)
      if (!std::isnan(value)) sum += value, ++count;
    return count > 0 ? sum / count : NAN;
  }
  static void compare(const HeadStatistic& statistic, size_t head, const std::vector<double>& of_sequences) {
    const double got = statistic.heads.at(head), expected = mean(of_sequences);
    QVERIFY2(std::isnan(expected) ? std::isnan(got) : std::abs(got - expected) <= 1e-10 * std::max(1.0, std::abs(expected)),
             qPrintable(QString("%1 of layer %2, head %3 is %4, expected %5")
                            .arg(statistic.name.c_str())
                            .arg(statistic.layer)
                            .arg(head)
                            .arg(got)
                            .arg(expected)));
  }

 private Q_SLOTS:
  void unequal_documents_count_alike_data() {
    QTest::addColumn<QString>("architecture");
    const auto add = [](const char* name, const nlohmann::json& architecture) {
      QTest::newRow(name) << QString::fromStdString(architecture.dump());
    };
    add("attention", {{"mixer", "attention"}, {"heads", 2}});
    add("elements", {{"mixer", "top1_element"}, {"heads", 2}});
    add("chunks", {{"mixer", "top1_chunk"}, {"heads", 2}, {"chunk", 5}, {"top_k", 2}});
    add("mamba", {{"block", "mamba"}, {"mixer", "mamba1"}});
    add("rwkv", {{"block", "rwkv"}, {"mixer", "rwkv7"}, {"heads", 2}});
    add("avey", {{"block", "avey"}, {"split", 4}, {"top_k", 2}});
    add("two in a layer", {{"mixer", "parallel"}, {"heads", 2}, {"first", "attention(window=7)"}, {"second", "top1_chunk(chunk=5)"}});
  }
  /// With sequences so short that a statistic has no value in them.
  void unequal_documents_count_alike() {
    QFETCH(QString, architecture);
    const auto t = trainer(nlohmann::json::parse(architecture.toStdString()));
    const FrozenBatch batch = documents({24, 24, 24, 17, 17, 3, 3, 24, 1});
    ProbedChoices last, expected_last;
    std::vector<std::vector<ChosenSources>> before;
    for (int look = 0; look < 2; ++look) {
      const StatisticsRecord record = probe_statistics(*t, batch, {}, last);
      std::vector<ProbeRecord> alone;
      expected_last.clear();
      for (int64_t s = 0; s < batch.sequences; ++s) {
        alone.push_back(probed(*t, batch, s));
        if (!alone.back().choices.empty()) expected_last.push_back(alone.back().choices.front());
      }
      QVERIFY(last == expected_last);
      const size_t usual = alone.front().statistics.size();
      for (size_t i = 0; i < usual; ++i)
        for (size_t h = 0; h < record.statistics.at(i).heads.size(); ++h) {
          std::vector<double> values;
          for (const ProbeRecord& one : alone) values.push_back(one.statistics.at(i).heads.at(h));
          compare(record.statistics[i], h, values);
        }
      const size_t churned = look > 0 && !last.empty() ? last.front().size() : 0;
      QCOMPARE(record.statistics.size(), usual + churned);
      for (size_t l = 0; l < churned; ++l) {
        const HeadStatistic& statistic = record.statistics[usual + l];
        QVERIFY(statistic.name == "churn" && statistic.layer == last.front()[l].layer);
        for (size_t h = 0; h < statistic.heads.size(); ++h) {
          std::vector<double> values;
          for (size_t s = 0; s < last.size(); ++s) values.push_back(churn(before[s][l], last[s][l]).at(h));
          compare(statistic, h, values);
        }
      }
      before = last;
      for (int i = 0; i < 8; ++i) t->step();
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ProbeStatisticsTest)
#include "probe_statistics_test.moc"
