#include "tests/models/architecture_rows.h"

namespace saccade::test {

/// Sequences that come in pieces give, position by position, what they give as a whole: everything in the registry.
class ModelDecodingTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLong = 152;

  /// Hidden states [B, T, D] of the first T tokens of sequences of kLong tokens.
  using Hidden = std::function<Array(int64_t tokens)>;

  /// Feeds the sequences [B, T] in pieces and compares what comes back with rows of `hidden` of the whole or, where the model looks ahead,
  /// of the tokens so far.
  static void compare_pieces(const Model& model, const std::vector<int32_t>& values, const Hidden& hidden, int64_t prompt, bool so_far) {
    Array whole = hidden(kLong);
    const int64_t batch = whole.shape[0], length = whole.shape[1], width = whole.shape[2];
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    DecodingState state = model.begin(arena, DType::f64, batch, length);
    double largest = 1;
    for (double v : whole.values) largest = std::max(largest, std::abs(v));
    int64_t n = prompt;
    for (int64_t first = 0, piece = 0; first < length; first += n, ++piece) {
      if (piece > 0) n = std::min<int64_t>(length - first, piece % 4 == 3 ? 5 : 1);
      const Tensor x = arena.allocate({batch, n}, DType::i32);
      for (int64_t b = 0; b < batch; ++b) std::copy_n(values.begin() + b * length + first, n, x.data<int32_t>() + b * n);
      const Array part = to_array(model.extend(tape, x, state));
      QCOMPARE(part.shape, (Shape{batch, n, width}));
      QCOMPARE(state.length, first + n);
      if (so_far) whole = hidden(first + n);
      const int64_t rows = whole.shape[1];
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < n * width; ++i) {
          const double expected = whole.values[static_cast<size_t>((b * rows + first) * width + i)];
          const double off = std::abs(part.values[static_cast<size_t>(b * n * width + i)] - expected) / largest;
          QVERIFY2(off <= 1e-9, qPrintable(QString("prompt %1, position %2 is off by %3").arg(prompt).arg(first + i / width).arg(off)));
        }
    }
    const Tensor more = arena.allocate({batch, 1}, DType::i32);
    std::fill_n(more.data<int32_t>(), batch, 1);
    QVERIFY_THROWS_EXCEPTION(UsageError, model.extend(tape, more, state));
  }

  /// Two pieces of the first sequence, of which only the last position is asked for.
  static void compare_last_only(const Model& model, const std::vector<int32_t>& values, const Hidden& hidden, bool so_far) {
    Array whole = hidden(kLong);
    const int64_t length = whole.shape[1], width = whole.shape[2];
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    DecodingState state = model.begin(arena, DType::f64, 1, length);
    state.last_only = true;
    for (int64_t n : {71, 20}) {
      const int64_t first = state.length;
      const Tensor x = arena.allocate({1, n}, DType::i32);
      std::copy_n(values.begin() + first, n, x.data<int32_t>());
      const std::vector<double> part = to_array(model.extend(tape, x, state)).values;
      if (so_far) whole = hidden(first + n);
      for (int64_t i = 0; i < width; ++i) {
        const double expected = whole.values[static_cast<size_t>((first + n - 1) * width + i)];
        QVERIFY(std::abs(part[part.size() - static_cast<size_t>(width - i)] - expected) <= 1e-9 * std::max(1.0, std::abs(expected)));
      }
    }
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void pieces_are_the_whole_data() { add_all(); }
  /// A prompt of 1, 37 or 131 tokens, then single ones and pieces of 5, in double.
  void pieces_are_the_whole() {
    QFETCH(QString, settings);
    QFETCH(QString, device);
    if (device != "cpu") QSKIP("on a GPU tests/gpu/decode_check.cpp asks this");
    const nlohmann::json resolved = resolve_architecture(nlohmann::json::parse(settings.toStdString()), kLong);
    Arena arena(Device::cpu());
    const auto model = make_model(resolved, kVocabulary, kLong, arena, DType::f64, 3, false);
    for (const Parameter& p : model->parameters()) {
      const Random random(9, p.name);
      for (int64_t i = 0; i < p.value.size(); ++i)
        p.value.data<double>()[i] += (p.decay ? 0.25 : 0.1) * random.normal(static_cast<uint64_t>(i));
    }
    const std::vector<int32_t> values = random_tokens(2 * kLong, "decoded");
    std::map<int64_t, Array> known;
    const Hidden hidden = [&](int64_t tokens) {
      if (const auto found = known.find(tokens); found != known.end()) return found->second;
      Arena own(Device::cpu());
      const Tensor x = own.allocate({2, tokens}, DType::i32);
      for (int64_t b = 0; b < 2; ++b) std::copy_n(values.begin() + b * kLong, tokens, x.data<int32_t>() + b * tokens);
      Tape tape(own, false);
      return known[tokens] = to_array(model->hidden(tape, x, nullptr));
    };
    const Architecture& block = architecture(resolved.at("block"));
    const bool so_far = block.looks_ahead && !block.looks_ahead(resolved).empty();
    for (int64_t prompt : {1, 37, 131}) compare_pieces(*model, values, hidden, prompt, so_far);
    compare_last_only(*model, values, hidden, so_far);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ModelDecodingTest)
#include "model_decoding_test.moc"
