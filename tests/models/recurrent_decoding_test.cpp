#include <QtTest>

#include "kernels/engine/random.h"
#include "models/architectures/registry.h"
#include "tests/support/compare.h"

namespace saccade::test {

/// Sequences that come in pieces give, position by position, what they give as a whole.
class RecurrentDecodingTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kVocabulary = 29, kBatch = 2;

  static std::unique_ptr<Model> lively_model(const nlohmann::json& settings, Arena& arena) {
    auto model = make_model(resolve_architecture(settings, 131), kVocabulary, 131, arena, DType::f64, 3, false);
    for (const Parameter& p : model->parameters()) {
      const Random random(9, p.name);
      for (int64_t i = 0; i < p.value.size(); ++i) p.value.data<double>()[i] += 0.2 * random.normal(static_cast<uint64_t>(i));
    }
    return model;
  }

  /// Tokens first … first + n − 1 of every sequence.
  static Tensor tokens(Arena& arena, int64_t first, int64_t n) {
    const Random random(5, "tokens");
    const Tensor x = arena.allocate({kBatch, n}, DType::i32);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t t = 0; t < n; ++t)
        x.data<int32_t>()[b * n + t] = static_cast<int32_t>(random.below(kVocabulary, static_cast<uint64_t>(b * 1000 + first + t)));
    return x;
  }

  /// Positions first … first + n − 1 of hidden states [B, T, D].
  static Array positions(const Array& x, int64_t first, int64_t n) {
    const int64_t length = x.shape[1], width = x.shape[2];
    Array part{{kBatch, n, width}, {}, false};
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t i = first * width; i < (first + n) * width; ++i)
        part.values.push_back(x.values[static_cast<size_t>(b * length * width + i)]);
    return part;
  }

  static std::vector<int64_t> pieces(int64_t length, int64_t prompt) {
    std::vector<int64_t> sizes{std::min(prompt, length)};
    for (int64_t at = sizes[0], size = 1; at < length; at += sizes.back(), size = size % 3 + 1)
      sizes.push_back(std::min(size, length - at));
    return sizes;
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void pieces_are_the_whole_data() {
    QTest::addColumn<QString>("settings");
    for (const char* settings :
         {R"({"mixer": "mamba1"})", R"({"mixer": "mamba1", "decay": "one"})",
          R"({"mixer": "mamba1", "decay": "none", "convolution": false})", R"({"mixer": "mamba2", "heads": 4, "groups": 2, "state": 8})",
          R"({"mixer": "mamba2", "heads": 4, "state": 8, "decay": "one"})",
          R"({"mixer": "mamba2", "heads": 4, "state": 8, "decay": "none", "convolution": false, "norm": false})",
          R"({"mixer": "deltanet", "heads": 2})", R"({"mixer": "deltanet", "heads": 2, "convolution": false})",
          R"({"mixer": "gated_deltanet", "heads": 2})", R"({"mixer": "based", "heads": 2, "layout": ["conv", "linear"]})",
          R"({"mixer": "based", "heads": 2, "layout": ["linear", "window"], "window": 9})",
          R"({"mixer": "based", "heads": 2, "layout": ["window", "conv"], "window": 1000})"})
      QTest::newRow(settings) << settings;
  }
  void pieces_are_the_whole() {
    QFETCH(QString, settings);
    nlohmann::json architecture = nlohmann::json::parse(settings.toStdString());
    architecture.update({{"block", "mamba"}, {"width", 16}, {"layers", 2}});
    Arena arena(Device::cpu());
    const auto model = lively_model(architecture, arena);
    for (int64_t length : {1, 37, 131})
      for (int64_t prompt : {1, 70}) {
        Tape tape(arena, false);
        const Array whole = to_array(model->hidden(tape, tokens(arena, 0, length), nullptr));
        DecodingState state = model->begin(arena, DType::f64, kBatch, length);
        int64_t at = 0;
        for (int64_t size : pieces(length, prompt)) {
          const Tensor y = model->extend(tape, tokens(arena, at, size), state);
          COMPARE_CLOSE(to_array(y), positions(whole, at, size), 1e-11, QString("%1 tokens from %2 of %3").arg(size).arg(at).arg(length));
          at += size;
        }
        QCOMPARE(at, length);
        QCOMPARE(state.length, length);
      }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RecurrentDecodingTest)
#include "recurrent_decoding_test.moc"
