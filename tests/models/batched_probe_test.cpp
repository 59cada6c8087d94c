#include <cmath>

#include "tests/models/architecture_rows.h"

namespace saccade::test {

/// A probe of several sequences in one pass tells what probes of each alone tell: of every statistic the mean over the sequences where it
/// is defined, what every sequence chose, and the maps of the first.
class BatchedProbeTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kSequences = 3;

  static ProbeRecord probed(const Built& built, const std::vector<int32_t>& tokens) {
    ProbeRecord record;
    record.maps_wanted = true;
    Tape tape(built.arena, false);
    compute_in(tape, built.arena, built.model->parameters(), built.dtype);
    built.model->hidden(tape, built.tokens(tokens), &record);
    return record;
  }

  static bool close(double a, double b, double limit) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return std::abs(a - b) <= limit * std::max(1.0, std::abs(b));
  }

  static void compare(const ProbeRecord& together, const std::vector<ProbeRecord>& alone, double limit) {
    for (size_t i = 0; i < together.statistics.size(); ++i) {
      const HeadStatistic& mean = together.statistics[i];
      for (size_t h = 0; h < mean.heads.size(); ++h) {
        double sum = 0;
        int64_t count = 0;
        for (const ProbeRecord& one : alone) {
          const HeadStatistic& own = one.statistics.at(i);
          QVERIFY(own.name == mean.name && own.unit == mean.unit && own.layer == mean.layer && own.heads.size() == mean.heads.size());
          if (!std::isnan(own.heads[h])) sum += own.heads[h], ++count;
        }
        const double expected = count > 0 ? sum / static_cast<double>(count) : NAN;
        QVERIFY2(close(mean.heads[h], expected, limit), qPrintable(QString("%1 of layer %2, head %3: %4 for %5")
                                                                       .arg(mean.name.c_str())
                                                                       .arg(mean.layer)
                                                                       .arg(h)
                                                                       .arg(mean.heads[h])
                                                                       .arg(expected)));
        if (!mean.counts.empty() && mean.name != "skip") QVERIFY2(mean.counts.at(h) == count, mean.name.c_str());  // of no sequence
      }
    }
    for (size_t s = 0; s < alone.size(); ++s) {
      QCOMPARE(alone[s].statistics.size(), together.statistics.size());
      QCOMPARE(alone[s].choices.empty(), together.choices.empty());
      if (!together.choices.empty()) QVERIFY(together.choices.at(s) == alone[s].choices.at(0));
    }
    if (!together.choices.empty()) QCOMPARE(together.choices.size(), alone.size());
    compare_maps(together, alone.front(), limit);
  }

  static void compare_maps(const ProbeRecord& together, const ProbeRecord& first, double limit) {
    QVERIFY(together.selections == first.selections);
    QCOMPARE(together.maps.size(), first.maps.size());
    for (size_t i = 0; i < first.maps.size(); ++i) {
      const CapturedMap &a = together.maps[i], &b = first.maps[i];
      QVERIFY(a.kind == b.kind && a.layer == b.layer && a.shape == b.shape && a.values.size() == b.values.size());
      for (size_t j = 0; j < a.values.size(); ++j)
        QVERIFY2(a.values[j] == b.values[j] || close(static_cast<double>(a.values[j]), static_cast<double>(b.values[j]), limit),
                 to_string(a.kind));
    }
  }

  /// What a pass on a GPU takes beyond the model; 16 heads.
  static int64_t planned_bytes(int64_t sequences, int64_t length, int64_t longest) {
    Arena arena(Device::plan(Engine::cuda));
    const nlohmann::json architecture{{"mixer", "attention"}, {"width", 64}, {"heads", 16}, {"layers", 2}};
    const auto model = make_model(resolve_architecture(architecture, 2048), kVocabulary, 2048, arena, DType::f32, 1, false);
    const Tensor tokens = arena.allocate({sequences, length}, DType::i32);
    const int64_t before = arena.peak_extent();
    ProbeRecord record;
    record.planned = true;
    record.longest_planned = longest;
    Tape tape(arena, false);
    model->hidden(tape, tokens, &record);
    return arena.peak_extent() - before;
  }

 private Q_SLOTS:
  void a_pass_of_several_is_the_mean_of_each_data() { add_all(); }
  void a_pass_of_several_is_the_mean_of_each() {
    with_row([](const Row& row) {
      if (row.on_gpu()) QSKIP("tests/gpu/train_check.cpp asks this of a GPU");
      if (row.settings.dump().find("\"random\"") != std::string::npos) QSKIP("draws by the place in the batch");
      for (const DType dtype : {DType::f64, DType::f32}) {
        const Built built(row, dtype, false);
        built.enliven();
        const std::vector<int32_t> tokens = random_tokens(kSequences * kLength, "tokens");
        std::vector<ProbeRecord> alone;
        for (auto first = tokens.begin(); first != tokens.end(); first += kLength)
          alone.push_back(probed(built, std::vector<int32_t>(first, first + kLength)));
        const ProbeRecord together = probed(built, tokens);
        QVERIFY(!together.statistics.empty());
        compare(together, alone, dtype == DType::f64 ? 1e-9 : 1e-3);
      }
    });
  }

  /// Maps of weights are made together as far as they take 256 MiB, and shorter sequences take no more than the longest that is planned.
  void what_is_looked_at_together_is_bounded() {
    const auto maps = [](int64_t sequences, int64_t length) { return sequences * 16 * length * length * 4; };
    const int64_t rest = int64_t{24} << 20;  // activations and sums
    const auto at_once = [&](int64_t sequences, int64_t length, int64_t longest, int64_t expected) {
      const int64_t bytes = planned_bytes(sequences, length, longest);
      QVERIFY2(bytes >= maps(expected, length) && bytes < maps(expected, length) + rest,
               qPrintable(QString("%1 of %2 tokens take %3 bytes").arg(sequences).arg(length).arg(bytes)));
    };
    at_once(8, 512, 0, 8);
    at_once(4, 1024, 0, 4);
    at_once(5, 1024, 0, 4);
    at_once(2, 2048, 0, 1);
    at_once(2, 1500, 1500, 1);
    at_once(2, 1400, 0, 2);
    at_once(2, 1400, 1500, 1);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BatchedProbeTest)
#include "batched_probe_test.moc"
