#include <QtTest>
#include <cmath>

#include "kernels/engine/random.h"
#include "models/architectures/registry.h"
#include "tests/support/compare.h"

namespace saccade::test {

/// RWKV-5, 6 and 7 in their own block: what the generic tests of architectures cannot know.
class RwkvTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLength = 131, kVocabulary = 31;

  struct Built {
    Arena arena{Device::cpu()};
    std::unique_ptr<Model> model;
    explicit Built(const char* mixer, int64_t length = kLength) {
      const nlohmann::json settings = {{"mixer", mixer}, {"width", 16}, {"layers", 2}, {"heads", 2}};
      model = make_model(resolve_architecture(settings, length), kVocabulary, length, arena, DType::f64, 3, false);
    }
    /// Moves every parameter away from its initial state, in which blocks do nothing.
    void enliven() const {
      for (const Parameter& p : model->parameters()) {
        const Random random(9, p.name);
        for (int64_t i = 0; i < p.value.size(); ++i)
          p.value.data<double>()[i] += (p.decay ? 0.25 : 0.1) * random.normal(static_cast<uint64_t>(i));
      }
    }
  };

  static Tensor tokens(Arena& arena, int64_t batch, int64_t first, int64_t count) {
    const Random random(5, "tokens");
    const Tensor x = arena.allocate({batch, count}, DType::i32);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < count; ++t)
        x.data<int32_t>()[b * count + t] = static_cast<int32_t>(random.below(kVocabulary, static_cast<uint64_t>(b * 1000 + first + t)));
    return x;
  }

  static void mixers() {
    QTest::addColumn<QString>("mixer");
    for (const char* mixer : {"rwkv5", "rwkv6", "rwkv7"}) QTest::newRow(mixer) << mixer;
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  /// W_o and the channel mix's W_v are zero, so no token sees another one yet.
  void blocks_begin_as_identity_data() { mixers(); }
  void blocks_begin_as_identity() {
    QFETCH(QString, mixer);
    Built built(qPrintable(mixer));
    Tape tape(built.arena, false);
    const Array whole = to_array(built.model->hidden(tape, tokens(built.arena, 1, 0, 5), nullptr));
    for (int64_t t = 0; t < 5; ++t) {
      const Array alone = to_array(built.model->hidden(tape, tokens(built.arena, 1, t, 1), nullptr));
      for (int64_t i = 0; i < 16; ++i)
        QVERIFY(std::abs(alone.values[static_cast<size_t>(i)] - whole.values[static_cast<size_t>(t * 16 + i)]) < 1e-12);
    }
  }

  /// A prompt of 1, 37 or 131 tokens, then single ones and pieces of 5: equal to the whole at every position.
  void decoding_is_the_forward_pass_data() { mixers(); }
  void decoding_is_the_forward_pass() {
    QFETCH(QString, mixer);
    Built built(qPrintable(mixer));
    built.enliven();
    Tape tape(built.arena, false);
    const Array whole = to_array(built.model->hidden(tape, tokens(built.arena, 2, 0, kLength), nullptr));
    for (int64_t prompt : {1, 37, 131}) {
      DecodingState state = built.model->begin(built.arena, DType::f64, 2, kLength);
      for (int64_t first = 0, n = prompt, piece = 1; first < kLength; first += n, ++piece) {
        if (first > 0) n = std::min<int64_t>(kLength - first, piece % 4 ? 1 : 5);
        const Array part = to_array(built.model->extend(tape, tokens(built.arena, 2, first, n), state));
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t i = 0; i < n * 16; ++i)
            QVERIFY(std::abs(part.values[static_cast<size_t>(b * n * 16 + i)] -
                             whole.values[static_cast<size_t>((b * kLength + first) * 16 + i)]) < 1e-9);
      }
      QCOMPARE(state.length, kLength);
      QVERIFY_THROWS_EXCEPTION(UsageError, built.model->extend(tape, tokens(built.arena, 2, 0, 1), state));
    }
  }

  /// A probe gets signed weights of every earlier position, and what they say in numbers.
  void reads_are_reported_data() { mixers(); }
  void reads_are_reported() {
    QFETCH(QString, mixer);
    Built built(qPrintable(mixer), 300);
    built.enliven();
    Tape tape(built.arena, false);
    ProbeRecord record;
    record.maps_wanted = true;
    built.model->hidden(tape, tokens(built.arena, 2, 0, 300), &record);
    QCOMPARE(record.maps.size(), size_t(2));
    bool negative = false;
    for (const CapturedMap& map : record.maps) {
      QCOMPARE(map.kind, MapKind::weights);
      QCOMPARE(map.shape, (std::vector<int64_t>{2, 300, 300}));
      for (int64_t row = 0; row < 600; ++row)
        for (int64_t j = 0; j < 300; ++j) {
          const float w = map.values[static_cast<size_t>(row * 300 + j)];
          if (j > row % 300) QCOMPARE(w, 0.0f);
          negative = negative || w < 0;
        }
    }
    QVERIFY(negative);
    std::map<std::string, int> found;
    for (const HeadStatistic& s : record.statistics) {
      ++found[s.name];
      const double most = s.name == "entropy" ? std::log(300.0) : s.name == "distance" ? 300 : 1;
      for (double v : s.heads) QVERIFY2(v >= 0 && v <= most, s.name.c_str());
    }
    QCOMPARE(found, (std::map<std::string, int>{{"distance", 2}, {"entropy", 2}, {"entropy_normalized", 2}, {"outside_256", 2}}));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RwkvTest)
#include "rwkv_test.moc"
