#include "kernels/ops/first_largest/first_largest.h"
#include "models/training/batch_decoder.h"
#include "tests/models/architecture_rows.h"

namespace saccade::test {

/// Sequences side by side at positions of their own: everything in the registry.
class BatchDecodingTest : public QObject {
  Q_OBJECT

  static constexpr int64_t kLong = 96, kPlaces = 3;

  /// A model in double whose weights are larger than initial ones, and hidden states of the first tokens of sequences.
  struct Whole {
    Arena arena{Device::cpu()};
    std::unique_ptr<Model> model;
    bool so_far;  ///< positions look ahead: compared with the tokens so far

    explicit Whole(const nlohmann::json& settings) {
      const nlohmann::json resolved = resolve_architecture(settings, kLong);
      const Architecture& block = architecture(resolved.at("block"));
      so_far = block.looks_ahead && !block.looks_ahead(resolved).empty();
      model = make_model(resolved, kVocabulary, kLong, arena, DType::f64, 3, false);
      for (const Parameter& p : model->parameters()) {
        const Random random(9, p.name);
        for (int64_t i = 0; i < p.value.size(); ++i)
          p.value.data<double>()[i] += (p.decay ? 0.25 : 0.1) * random.normal(static_cast<uint64_t>(i));
      }
    }
    /// Hidden states [end, D] of one sequence's first tokens.
    std::vector<double> hidden(const std::vector<int32_t>& tokens, int64_t end) const {
      Arena own(Device::cpu());
      Tape tape(own, false);
      const Tensor x = own.allocate({1, end}, DType::i32);
      std::copy_n(tokens.begin(), end, x.data<int32_t>());
      return to_array(model->hidden(tape, x, nullptr)).values;
    }
  };

  static std::vector<int32_t> text(int64_t number) { return random_tokens(kLong, ("text " + std::to_string(number)).c_str()); }

  /// Rows first … end − 1 of a sequence as they came and as `hidden` of the whole gives them.
  static void compare(const Whole& whole, const std::vector<int32_t>& tokens, int64_t first, int64_t end, const double* rows,
                      const QString& what) {
    // One that looks ahead is right about the last token of what it was given.
    const std::vector<double> all = whole.hidden(tokens, whole.so_far ? end : kLong);
    const int64_t width = static_cast<int64_t>(all.size()) / (whole.so_far ? end : kLong);
    double largest = 1;
    for (double v : all) largest = std::max(largest, std::abs(v));
    for (int64_t i = 0; i < (end - first) * width; ++i) {
      const double off = std::abs(rows[i] - all[static_cast<size_t>(first * width + i)]) / largest;
      QVERIFY2(off <= 1e-9, qPrintable(QString("%1: position %2 is off by %3").arg(what).arg(first + i / width).arg(off)));
    }
  }

  struct Sequences {
    const Whole& whole;
    Arena arena{Device::cpu()};
    Tape tape{arena, false};
    DecodingState state;
    std::vector<std::vector<int32_t>> texts;
    std::vector<int64_t> lengths;

    explicit Sequences(const Whole& w)
        : whole(w), state(w.model->begin(arena, DType::f64, kPlaces, kLong)), texts(kPlaces), lengths(kPlaces) {
      state.let_lengths_differ(arena);
    }
    Tensor tokens(int64_t b, int64_t first, int64_t n) {
      const Tensor x = arena.allocate({1, n}, DType::i32);
      std::copy_n(texts[static_cast<size_t>(b)].begin() + first, n, x.data<int32_t>());
      return x;
    }
    void start(int64_t b, int64_t number, int64_t prompt) {
      const auto i = static_cast<size_t>(b);
      texts[i] = text(number), lengths[i] = prompt;
      state.clear(b);
      DecodingState one = state.sequence(b, 0);
      const Array y = to_array(whole.model->extend(tape, tokens(b, 0, prompt), one));
      QCOMPARE(one.length, prompt);
      compare(whole, texts[i], 0, prompt, y.values.data(), QString("prompt %1").arg(number));
    }
    /// n tokens more of each.
    void extend(int64_t n) {
      const Tensor x = arena.allocate({kPlaces, n}, DType::i32);
      for (int64_t b = 0; b < kPlaces; ++b)
        std::copy_n(texts[static_cast<size_t>(b)].begin() + lengths[static_cast<size_t>(b)], n, x.data<int32_t>() + b * n);
      state.length = *std::max_element(lengths.begin(), lengths.end());
      const Array y = to_array(whole.model->extend(tape, x, state));
      for (int64_t b = 0; b < kPlaces; ++b) {
        const auto i = static_cast<size_t>(b);
        const double* rows = y.values.data() + b * n * y.shape[2];
        compare(whole, texts[i], lengths[i], lengths[i] + n, rows, QString("place %1").arg(b));
        if (QTest::currentTestFailed()) return;
        lengths[i] += n;
      }
    }
  };

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void each_has_its_own_position_data() { add_all(); }
  /// Prompts of 5, 37 and 20 tokens, steps of one token and a piece of three; then one is replaced by another and they go on.
  void each_has_its_own_position() {
    QFETCH(QString, settings);
    QFETCH(QString, device);
    if (device != "cpu") QSKIP("on a GPU tests/gpu/decode_check.cpp asks this");
    const Whole whole(nlohmann::json::parse(settings.toStdString()));
    Sequences sequences(whole);
    sequences.start(0, 1, 5), sequences.start(1, 2, 37), sequences.start(2, 3, 20);
    for (int64_t n : {1, 1, 3, 1}) sequences.extend(n);
    sequences.start(1, 4, 11);
    for (int i = 0; i < 6; ++i) sequences.extend(1);
  }

  void copies_go_on_apart_data() { add_all(); }
  /// One context, read once, of which copies go on with texts of their own.
  void copies_go_on_apart() {
    QFETCH(QString, settings);
    QFETCH(QString, device);
    if (device != "cpu") QSKIP("on a GPU tests/gpu/decode_check.cpp asks this");
    const Whole whole(nlohmann::json::parse(settings.toStdString()));
    if (whole.so_far) QSKIP("what it reads is not the same beside another continuation");
    if (settings.contains("\"random\"")) QSKIP("the random control draws for each sequence of a batch anew");
    constexpr int64_t kContext = 43, kMore = 9;
    Sequences sequences(whole);
    Tape& tape = sequences.tape;
    DecodingState context = whole.model->begin(sequences.arena, DType::f64, 1, kContext + kMore);
    DecodingState copies = whole.model->begin(sequences.arena, DType::f64, 2, kContext + kMore);
    sequences.texts[0] = text(1);
    whole.model->extend(tape, sequences.tokens(0, 0, kContext), context);
    const Tensor index = sequences.arena.allocate({2}, DType::i32);
    std::fill_n(index.data<int32_t>(), 2, 0);
    copies.copy(tape, context, index);
    QCOMPARE(copies.length, kContext);
    const Tensor x = sequences.arena.allocate({2, kMore}, DType::i32);
    std::vector<std::vector<int32_t>> texts{text(1), text(1)};
    const std::vector<int32_t> other = text(7);
    std::copy_n(other.begin(), kMore, texts[1].begin() + kContext);
    for (int64_t b = 0; b < 2; ++b) std::copy_n(texts[static_cast<size_t>(b)].begin() + kContext, kMore, x.data<int32_t>() + b * kMore);
    const Array y = to_array(whole.model->extend(tape, x, copies));
    for (int64_t b = 0; b < 2; ++b)
      compare(whole, texts[static_cast<size_t>(b)], kContext, kContext + kMore, y.values.data() + b * kMore * y.shape[2],
              QString("copy %1").arg(b));
  }

  void batches_change_no_text_data() { add_all(true); }
  /// Eleven prompts of 1 to 30 tokens, each with a number of tokens to follow: alone, by two, by four and all at once; greedy, and sampled
  /// with a seed for each. The same as a decoder of one sequence gives.
  void batches_change_no_text() {
    QFETCH(QString, settings);
    QFETCH(QString, device);
    if (device != "cpu") QSKIP("on a GPU tests/gpu/decode_check.cpp asks this");
    InferenceModel model(resolve_architecture(nlohmann::json::parse(settings.toStdString()), kLong), kVocabulary, kLong, Device::cpu(),
                         "f32", 3);
    enliven(model);
    std::vector<Prompt> prompts;
    for (int64_t i = 0; i < 11; ++i) {
      std::vector<int32_t> tokens = text(i);
      tokens.resize(static_cast<size_t>(1 + (i * 17) % 30));
      prompts.push_back({tokens, 1 + (i * 5) % 13});
    }
    for (const double temperature : {0.0, 0.9}) {
      const auto token_of = [&](size_t which, int64_t index, const std::vector<double>& logits) {
        const Sampling sampling{temperature, which % 2 == 0 ? 0 : 7, which % 3 == 0 ? 0.8 : 1, 10 + which};
        const int32_t token = choose_token(logits, sampling, static_cast<uint64_t>(index));
        return token == 5 ? -1 : token;  // stands for the end of text
      };
      const std::vector<std::vector<int32_t>> alone = one_by_one(model, prompts, token_of);
      for (const int64_t batch : {1, 2, 4, 64}) {
        std::vector<std::vector<int32_t>> written(prompts.size());
        continue_prompts(
            model, prompts, batch,
            [&](const NextToken& next) {
              const std::vector<double> logits = next.logits();
              if (next.likeliest != std::max_element(logits.begin(), logits.end()) - logits.begin())
                throw std::logic_error("not the likeliest");
              const int32_t token = token_of(next.which, next.index, logits);
              if (token >= 0) written[next.which].push_back(token);
              return token;
            },
            false);
        QVERIFY2(written == alone, qPrintable(QString("temperature %1, batch %2").arg(temperature).arg(batch)));
      }
    }
  }

  void draws_are_among_the_likeliest() {
    const std::vector<double> logits{std::log(0.1), std::log(0.4), std::log(0.3), std::log(0.15), std::log(0.05)};
    const auto drawn = [&](const Sampling& sampling) {
      std::vector<int> counts(logits.size());
      for (uint64_t i = 0; i < 4000; ++i) ++counts[static_cast<size_t>(choose_token(logits, sampling, i))];
      return counts;
    };
    std::vector<int> counts = drawn({1, 2, 1, 3});
    QVERIFY(counts[0] == 0 && counts[3] == 0 && counts[4] == 0);
    QVERIFY(std::abs(counts[1] / 4000.0 - 4.0 / 7) < 0.03);
    counts = drawn({1, 0, 0.75, 3});  // 0.4, 0.7, 0.85: three tokens
    QVERIFY(counts[0] == 0 && counts[4] == 0 && counts[3] > 0);
    QVERIFY(std::abs(counts[3] / 4000.0 - 0.15 / 0.85) < 0.03);
    counts = drawn({1, 0, 0, 3});
    QCOMPARE(counts[1], 4000);
    counts = drawn({0, 0, 1, 3});
    QCOMPARE(counts[1], 4000);
    counts = drawn({1, 4, 0.5, 3});  // of the first four 0.95: 0.4 and 0.3
    QVERIFY(counts[0] == 0 && counts[3] == 0 && counts[2] > 0);
  }

  void what_does_not_fit_is_refused() {
    InferenceModel model(resolve_architecture({{"block", "llama"}, {"width", 16}, {"layers", 1}, {"heads", 2}}, kLong), kVocabulary, kLong,
                         Device::cpu(), "f32", 3);
    BatchDecoder decoder(model, 2, 4);
    const std::vector<int32_t> tokens{1, 2, 3, 4, 5}, next{1, 1};
    QVERIFY_THROWS_EXCEPTION(UsageError, decoder.start(0, tokens));
    QVERIFY_THROWS_EXCEPTION(UsageError, decoder.start(0, {}));
    decoder.start(0, std::span(tokens).first(3));
    decoder.feed(next);
    QVERIFY_THROWS_EXCEPTION(UsageError, decoder.feed(next));
    decoder.start(0, std::span(tokens).first(1));  // the other place, which is empty, starts again where it is full
    for (int i = 0; i < 3; ++i) decoder.feed(next);
    QCOMPARE(decoder.length(0), int64_t{4});
  }

  void the_first_of_the_largest() {
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    const Tensor x = arena.allocate({3, 4}, DType::f64), index = arena.allocate({3}, DType::i32);
    from_doubles(x, {1, 3, 3, 2, -5, -5, -6, -5, NAN, -1, 2, NAN});
    first_largest(tape, x, index);
    QCOMPARE(to_doubles(index), (std::vector<double>{1, 0, 2}));
    QVERIFY_THROWS_EXCEPTION(std::invalid_argument, first_largest(tape, x, x));
  }

 private:
  static void enliven(InferenceModel& model) {
    std::vector<NamedTensor> weights;
    Arena host(Device::cpu());
    for (const Parameter& p : model.model().parameters()) {
      const Random random(9, p.name);
      std::vector<double> values = to_doubles(p.value);
      for (size_t i = 0; i < values.size(); ++i) values[i] += (p.decay ? 0.25 : 0.1) * random.normal(i);
      weights.push_back({p.name, host.allocate(p.value.shape(), p.value.dtype())});
      from_doubles(weights.back().tensor, values);
    }
    model.load(weights);
  }

  template <class Choose>
  static std::vector<std::vector<int32_t>> one_by_one(InferenceModel& model, const std::vector<Prompt>& prompts, const Choose& choose) {
    std::vector<std::vector<int32_t>> all;
    for (size_t i = 0; i < prompts.size(); ++i) {
      std::vector<int32_t>& written = all.emplace_back();
      Decoder decoder(model, static_cast<int64_t>(prompts[i].tokens.size()) + prompts[i].most);
      decoder.feed(prompts[i].tokens);
      while (static_cast<int64_t>(written.size()) < prompts[i].most) {
        const int32_t token = choose(i, static_cast<int64_t>(written.size()), decoder.logits());
        if (token < 0) break;
        written.push_back(token);
        decoder.feed({&token, 1});
      }
    }
    return all;
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BatchDecodingTest)
#include "batch_decoding_test.moc"
