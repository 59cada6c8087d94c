#include "analysis/tasks/scoring.h"
#include "tests/models/architecture_rows.h"

namespace saccade::test {

/// A choice item whose context is read once scores as one whose every choice is read whole: everything in the registry.
class SharedContextTest : public QObject {
  Q_OBJECT

  /// Items with two to four choices behind contexts of 4 to 60 tokens, some of one length; of the last item the choices have nothing in
  /// common.
  static std::vector<EncodedRequest> requests() {
    std::vector<EncodedRequest> all;
    const Random random(3, "requests");
    uint64_t next = 0;
    const auto token = [&] { return static_cast<int32_t>(random.below(kVocabulary, next++)); };
    const std::vector<int64_t> contexts{60, 23, 23, 4, 37, 23, 60, 0};
    for (size_t item = 0; item < contexts.size(); ++item) {
      std::vector<int32_t> context;
      for (int64_t i = 0; i < contexts[item]; ++i) context.push_back(token());
      for (size_t choice = 0; choice < 2 + item % 3; ++choice) {
        EncodedRequest request{context, 1 + static_cast<int64_t>((item * 5 + choice * 7) % 11), false, static_cast<int64_t>(item)};
        if (context.empty()) request.tokens = {static_cast<int32_t>(choice)};
        for (int64_t i = 0; i < request.scored; ++i) request.tokens.push_back(token());
        all.push_back(request);
      }
    }
    return all;
  }

  struct Found {
    std::vector<double> log_likelihoods;
    std::vector<bool> greedy;
    int batches = 0;
  };
  static Found scored(EvaluationPass& pass, const std::vector<EncodedRequest>& requests, const ScoringOptions& options) {
    Found found{std::vector<double>(requests.size(), NAN), std::vector<bool>(requests.size())};
    std::vector<size_t> all(requests.size());
    std::iota(all.begin(), all.end(), size_t{0});
    score_requests(pass, requests, all, options, [&](const std::vector<ScoredRequest>& batch) {
      for (const ScoredRequest& s : batch) {
        if (!std::isnan(found.log_likelihoods[s.request])) throw std::logic_error("scored twice");
        found.log_likelihoods[s.request] = s.log_likelihood, found.greedy[s.request] = s.greedy;
      }
      ++found.batches;
      return true;
    });
    return found;
  }

  /// A model that counts the tokens it is given.
  class Counting : public Model {
   public:
    explicit Counting(const Model& model) : model_(model) {}
    Tensor hidden(Tape& tape, const Tensor& tokens, Probe* probe) const override {
      read += tokens.size();
      return model_.hidden(tape, tokens, probe);
    }
    DecodingState begin(Arena& arena, DType dtype, int64_t batch, int64_t capacity) const override {
      return model_.begin(arena, dtype, batch, capacity);
    }
    Tensor extend(Tape& tape, const Tensor& tokens, DecodingState& state) const override {
      read += tokens.size();
      return model_.extend(tape, tokens, state);
    }
    Tensor output_weight() const override { return model_.output_weight(); }
    double state_values_per_token() const override { return model_.state_values_per_token(); }
    mutable int64_t read = 0;

   private:
    const Model& model_;
  };

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void a_context_is_read_once_data() { add_all(); }
  void a_context_is_read_once() {
    with_row([](const Row& row) {
      constexpr int64_t kLongest = 96;
      const nlohmann::json resolved = resolve_architecture(row.settings, kLongest);
      const DType dtype = row.exact();
      Arena arena(parse_device(row.device));
      const auto model = make_model(resolved, kVocabulary, kLongest, arena, accumulation_dtype(dtype), 3, false);
      for (const Parameter& p : model->parameters()) {
        const Random random(9, p.name);
        std::vector<double> values = to_doubles(p.value);
        for (size_t i = 0; i < values.size(); ++i) values[i] += (p.decay ? 0.25 : 0.1) * random.normal(i);
        from_doubles(p.value, values);
      }
      const Architecture& block = architecture(resolved.at("block"));
      if (block.looks_ahead && !block.looks_ahead(resolved).empty()) QSKIP("what it reads is not the same beside another continuation");
      if (row.settings.dump().find("\"random\"") != std::string::npos) QSKIP("the random control draws for each sequence of a batch anew");
      const std::vector<EncodedRequest> all = requests();
      const double tolerance = dtype == DType::f64 ? 1e-9 : dtype == DType::f32 ? 1e-4 : 0.2;
      for (const int64_t piece : {1, 400}) {
        EvaluationPass pass(*model, arena, computing_in(arena, model->parameters(), dtype), piece);
        const Found whole = scored(pass, all, {.greedy = true, .shared_contexts = false});
        const Found shared = scored(pass, all, {.greedy = true});
        for (size_t i = 0; i < all.size(); ++i) {
          const double off =
              std::abs(shared.log_likelihoods[i] - whole.log_likelihoods[i]) / std::max(1.0, std::abs(whole.log_likelihoods[i]));
          QVERIFY2(off <= tolerance, qPrintable(QString("request %1 is off by %2").arg(i).arg(off)));
        }
        if (dtype == DType::f64) QCOMPARE(shared.greedy, whole.greedy);
      }
    });
  }

  /// In float too, what is read side by side, padded, and behind a context that was read once, scores as each request by itself: within
  /// 1e-6 of a token's log-likelihood.
  void in_float_batches_are_one_by_one_data() { add_all(true); }
  void in_float_batches_are_one_by_one() {
    with_row([](const Row& row) {
      if (row.on_gpu()) QSKIP("its products have an order of their own for each size");
      constexpr int64_t kLongest = 96;
      const nlohmann::json resolved = resolve_architecture(row.settings, kLongest);
      const Architecture& block = architecture(resolved.at("block"));
      if (block.looks_ahead && !block.looks_ahead(resolved).empty()) QSKIP("what it reads is not the same beside another continuation");
      if (row.settings.dump().find("\"random\"") != std::string::npos) QSKIP("the random control draws for each sequence of a batch anew");
      Arena arena(Device::cpu());
      const auto model = make_model(resolved, kVocabulary, kLongest, arena, DType::f32, 3, false);
      const std::vector<EncodedRequest> all = requests();
      EvaluationPass alone(
          *model, arena, [](Tape&) {}, 1),
          together(
              *model, arena, [](Tape&) {}, 400);
      const Found expected = scored(alone, all, {.shared_contexts = false});
      for (const bool shared : {false, true}) {
        const Found found = scored(together, all, {.shared_contexts = shared});
        QVERIFY(found.batches < expected.batches);
        for (size_t i = 0; i < all.size(); ++i) {
          const double off = std::abs(found.log_likelihoods[i] - expected.log_likelihoods[i]) / static_cast<double>(all[i].scored);
          QVERIFY2(off <= 1e-6, qPrintable(QString("request %1 of %2 tokens is off by %3").arg(i).arg(all[i].scored).arg(off)));
        }
      }
    });
  }

  void what_is_read() {
    const nlohmann::json settings{{"block", "llama"}, {"width", 16}, {"layers", 1}, {"heads", 2}};
    Arena arena(Device::cpu());
    const auto model = make_model(resolve_architecture(settings, 512), kVocabulary, 512, arena, DType::f32, 3, false);
    std::vector<EncodedRequest> item;
    for (int32_t choice = 0; choice < 4; ++choice) {
      item.push_back({std::vector<int32_t>(401, 3), 16, false, 0});
      item.back().tokens.insert(item.back().tokens.end(), 16, choice);
    }
    const Counting counting(*model);
    EvaluationPass pass(
        counting, arena, [](Tape&) {}, 4096);
    scored(pass, item, {.shared_contexts = false});
    QCOMPARE(counting.read, int64_t{4 * 416});
    counting.read = 0;
    scored(pass, item, {});
    QCOMPARE(counting.read, int64_t{400 + 4 * 16});
    counting.read = 0;
    scored(pass, item, {.batching = Batching::equal});
    QCOMPARE(counting.read, int64_t{4 * 416});
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::SharedContextTest)
#include "shared_context_test.moc"
