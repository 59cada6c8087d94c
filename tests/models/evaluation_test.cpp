#include <QtTest>
#include <algorithm>
#include <cmath>

#include "kernels/engine/transfer.h"
#include "models/evaluation/evaluation_pass.h"
#include "models/training/decoder.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

/// One evaluation pass for training and for weights alone.
class EvaluationTest : public QObject {
  Q_OBJECT

  LinesCorpus corpus_;
  std::unique_ptr<Tokenizer> tokenizer_ = make_byte_tokenizer();

  static nlohmann::json plain(const std::string& host = "llama") { return {{"host", host}, {"mixer", "attention"}, {"heads", 2}}; }

  std::unique_ptr<Trainer> trained(const RunConfig& config, int steps) const {
    auto trainer = std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config));
    for (int i = 0; i < steps; ++i) trainer->step();
    return trainer;
  }
  std::unique_ptr<InferenceModel> weights_of(const RunConfig& config, Trainer& trainer) const {
    auto model = std::make_unique<InferenceModel>(config.architecture, corpus_.vocabulary(), config.data.sequence_length, Device::cpu(),
                                                  config.precision, uint64_t{77});
    model->load(trainer.state().weights);
    return model;
  }
  static EvaluationPass pass_of(InferenceModel& model, int64_t piece_tokens) {
    return {model.model(), model.arena(), [&](Tape& tape) { model.prepare(tape); }, piece_tokens};
  }
  static FrozenBatch sequence(const FrozenBatch& batch, int64_t s) {
    const auto row = [&](const std::vector<int32_t>& v) {
      return std::vector<int32_t>(v.begin() + s * batch.length, v.begin() + (s + 1) * batch.length);
    };
    return {batch.domain, row(batch.tokens), row(batch.targets), 1, batch.length};
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void bins_of_positions() {
    const std::vector<PositionLoss> bins = loss_by_position({5, 4, 3, 1, 1, 2, 3});
    std::vector<int64_t> edges;
    for (const PositionLoss& bin : bins) edges.push_back(bin.begin), edges.push_back(bin.end);
    QCOMPARE(edges, (std::vector<int64_t>{0, 1, 1, 2, 2, 4, 4, 7}));
    QCOMPARE(bins[2].loss, 2.0);
    QCOMPARE(bins[3].loss, 2.0);
    QVERIFY(loss_by_position({}).empty());
  }

  /// The bytes of the text that is predicted: of byte tokens one each, but for ends of text.
  void bits_per_byte_count_the_text() {
    const auto trainer = trained(small_run(plain()), 1);
    const Corpus corpus = Corpus::open("lines");
    const FrozenBatch batch = frozen_batch(corpus, "lines", {Split::train, 24, 1000}, *make_byte_tokenizer());
    const auto ends = std::count(batch.targets.begin(), batch.targets.end(), make_byte_tokenizer()->end_of_text());
    QCOMPARE(batch.bytes, static_cast<int64_t>(batch.targets.size()) - ends);
    const Evaluation e = trainer->evaluate(batch);
    const double nats = e.loss * static_cast<double>(batch.targets.size());
    QVERIFY(std::abs(e.bits_per_byte - nats / std::log(2.0) / static_cast<double>(batch.bytes)) < 1e-12);
    QVERIFY(std::isnan(trainer->evaluate(frozen(2, 24, corpus_.vocabulary())).bits_per_byte));  // no text is known
  }

  void weights_alone_give_the_trainers_numbers_data() {
    QTest::addColumn<QString>("architecture");
    const auto row = [](const char* name, const nlohmann::json& architecture) {
      QTest::newRow(name) << QString::fromStdString(architecture.dump());
    };
    row("attention", plain());
    row("learned positions", plain("gpt"));
    row("top-1 chunk", {{"host", "gpt"}, {"mixer", "top1_chunk"}, {"heads", 2}, {"chunk", 5}});
    row("avey", {{"host", "avey"}, {"split", 8}, {"top_k", 2}});
    row("mamba2", {{"mixer", "mamba2"}});
  }
  void weights_alone_give_the_trainers_numbers() {
    QFETCH(QString, architecture);
    const RunConfig config = small_run(nlohmann::json::parse(architecture.toStdString()));
    const auto trainer = trained(config, 3);
    const auto model = weights_of(config, *trainer);
    const FrozenBatch batch = frozen(9, 24, corpus_.vocabulary());
    const Evaluation expected = trainer->evaluate(batch), got = pass_of(*model, micro_batch_tokens(config.training)).evaluate(batch);
    QCOMPARE(got.loss, expected.loss);
    QCOMPARE(got.standard_error, expected.standard_error);
    QCOMPARE(got.by_position, expected.by_position);
    QCOMPARE(got.by_sequence, expected.by_sequence);
  }

  /// Nothing but weights lies there before and after, and what a pass takes at its peak is planned.
  void memory_is_that_of_the_weights_and_planned() {
    const RunConfig config = small_run(plain());
    const auto trainer = trained(config, 0);
    const auto model = weights_of(config, *trainer);
    int64_t weights = 0;
    for (const Parameter& p : model->model().parameters()) {
      QVERIFY(!p.grad);
      weights += (p.value.bytes() + 255) / 256 * 256;
    }
    QCOMPARE(model->arena().used(), weights);
    for (const int64_t length : {24, 40}) {
      model->arena().reset_peak();
      pass_of(*model, micro_batch_tokens(config.training)).evaluate(frozen(8, length, corpus_.vocabulary()));
      QCOMPARE(model->arena().used(), weights);
      QCOMPARE(model->arena().peak_extent(), planned_evaluation_bytes(config, corpus_.vocabulary(), Engine::cpu, length));
    }
  }

  void standard_error_is_that_of_independent_sequences() {
    QVERIFY(std::abs(standard_error(std::vector<double>{1, 2, 3, 4}) - std::sqrt(5.0 / 12)) < 1e-15);
    QVERIFY(std::isnan(standard_error(std::vector<double>{1})));
    const RunConfig config = small_run(plain(), {}, "f64");
    const auto trainer = trained(config, 2);
    const FrozenBatch batch = frozen(7, 24, corpus_.vocabulary());
    const Evaluation all = trainer->evaluate(batch);
    std::vector<double> losses;
    for (int64_t s = 0; s < 7; ++s) losses.push_back(trainer->evaluate(sequence(batch, s)).loss);
    double mean = 0, variance = 0;
    for (double x : losses) mean += x / 7;
    for (double x : losses) variance += (x - mean) * (x - mean) / 6;
    QVERIFY(std::abs(all.loss - mean) < 1e-12);
    QVERIFY(variance > 1e-6);
    QVERIFY(std::abs(all.standard_error - std::sqrt(variance / 7)) < 1e-12);
    for (size_t s = 0; s < 7; ++s) QVERIFY(std::abs(all.by_sequence[s] - losses[s]) < 1e-12);
    QVERIFY(std::isnan(trainer->evaluate(sequence(batch, 0)).standard_error));
  }

  /// Sequences of several lengths: every target counts once, padding never.
  void padding_counts_for_nothing() {
    const auto trainer = trained(small_run(plain(), {}, "f64"), 2);
    FrozenBatch batch = frozen(7, 24, corpus_.vocabulary());
    const int64_t counts[] = {24, 1, 7, 24, 13, 20, 2};
    double sum = 0, all = 0, squares = 0;
    std::vector<double> losses;
    for (int64_t s = 0; s < 7; ++s) {
      FrozenBatch alone = sequence(batch, s);
      alone.length = counts[s];
      alone.tokens.resize(static_cast<size_t>(counts[s]));
      alone.targets.resize(static_cast<size_t>(counts[s]));
      losses.push_back(trainer->evaluate(alone).loss);
      sum += static_cast<double>(counts[s]) * losses.back();
      all += static_cast<double>(counts[s]);
      std::fill(batch.targets.begin() + s * 24 + counts[s], batch.targets.begin() + (s + 1) * 24, kNoTarget);
    }
    const Evaluation e = trainer->evaluate(batch);
    QVERIFY(std::abs(e.loss - sum / all) < 1e-12);
    for (size_t s = 0; s < 7; ++s) {
      QVERIFY(std::abs(e.by_sequence[s] - losses[s]) < 1e-12);
      squares += std::pow(static_cast<double>(counts[s]) * (losses[s] - sum / all), 2);
    }
    QVERIFY(std::abs(e.standard_error - std::sqrt(7.0 / 6 * squares) / all) < 1e-12);
    QCOMPARE(e.targets, std::vector<int64_t>(counts, counts + 7));
    QCOMPARE(e.targets_at[0], 7);
    QCOMPARE(e.targets_at[23], 2);
    const std::vector<PositionLoss> bins = loss_by_position(e.by_position, e.targets_at);
    double from_bins = 0;
    for (const PositionLoss& bin : bins) {
      int64_t targets = 0;
      for (int64_t t = bin.begin; t < bin.end; ++t) targets += e.targets_at[static_cast<size_t>(t)];
      from_bins += bin.loss * static_cast<double>(targets);
    }
    QVERIFY(std::abs(from_bins - sum) < 1e-10);
    batch.targets[24 * 2] = kNoTarget;  // a gap
    QVERIFY_THROWS_EXCEPTION(DataError, trainer->evaluate(batch));
  }

  void pieces_do_not_matter() {
    const RunConfig config = small_run(plain(), {}, "f64");
    const auto trainer = trained(config, 1);
    const auto model = weights_of(config, *trainer);
    const FrozenBatch batch = frozen(9, 24, corpus_.vocabulary());
    const Evaluation whole = pass_of(*model, 9 * 24).evaluate(batch);
    for (const int64_t tokens : {1, 30, 100, 1000}) {
      const Evaluation pieces = pass_of(*model, tokens).evaluate(batch);
      QVERIFY(std::abs(pieces.loss - whole.loss) < 1e-12 && pieces.by_sequence.size() == 9);
    }
  }

  /// The first of the likeliest tokens of every position.
  static std::vector<int32_t> likeliest(InferenceModel& model, const FrozenBatch& batch) {
    Tape tape(model.arena(), false);
    model.prepare(tape);
    const Tensor x = model.arena().allocate({batch.sequences, batch.length}, DType::i32);
    copy_from_host(x, batch.tokens.data());
    const std::vector<double> logits = to_doubles(model.model().logits(tape, x, nullptr));
    const auto vocabulary = static_cast<int64_t>(logits.size()) / x.size();
    std::vector<int32_t> tokens;
    for (auto row = logits.begin(); row != logits.end(); row += vocabulary)
      tokens.push_back(static_cast<int32_t>(std::max_element(row, row + vocabulary) - row));
    return tokens;
  }
  /// Answers are right where they are the likeliest token, in pieces of any size, and have the losses of text. They take one forward pass
  /// and the memory that is planned.
  void answers_are_right_where_they_are_likeliest() {
    const RunConfig config = small_run(plain(), {}, "f64");
    const auto trainer = trained(config, 5);
    const auto model = weights_of(config, *trainer);
    FrozenBatch batch = frozen(9, 24, corpus_.vocabulary());
    const std::vector<int32_t> found = likeliest(*model, batch);
    std::vector<bool> expected;
    for (size_t i = 0; i < found.size(); ++i) {
      expected.push_back(i % 5 == 0);
      batch.targets[i] = i % 5 == 0 ? found[i] : i % 5 == 1 ? (found[i] + 1) % 257 : kNoTarget;
    }
    batch.most_answers = 10;
    const Evaluation whole = pass_of(*model, 9 * 24).evaluate(batch);
    QCOMPARE(whole.right, expected);
    QCOMPARE(whole.accuracy, 44.0 / 87);
    for (const int64_t tokens : {1, 30, 100}) {
      const Evaluation pieces = pass_of(*model, tokens).evaluate(batch);
      QCOMPARE(pieces.right, expected);
      QCOMPARE(pieces.accuracy, whole.accuracy);
      QVERIFY(std::abs(pieces.loss - whole.loss) < 1e-12);
    }
    const TokenScores scores = pass_of(*model, 9 * 24).token_scores(batch.tokens.data(), batch.targets.data(), 9, 24, true);
    QCOMPARE(scores.right, expected);
    double sum = 0;
    for (const double loss : scores.losses) sum += loss / 87;
    QVERIFY(std::abs(sum - whole.loss) < 1e-12);

    InferenceModel plan(config.architecture, corpus_.vocabulary(), 24, Device::plan(), config.precision, uint64_t{77});
    model->arena().reset_peak();
    pass_of(*model, 96).evaluate(batch);
    plan.arena().reset_peak();
    pass_of(plan, 96).plan(24, 10);
    QCOMPARE(model->arena().peak_extent(), plan.arena().peak_extent());
    QCOMPARE(pass_of(plan, 96).plan(24, 24).cost.flops, pass_of(plan, 96).plan(24).cost.flops);
  }
  void answers_of_a_model_of_nan_are_wrong() {
    const RunConfig config = small_run(plain());
    const auto trainer = trained(config, 0);
    const auto model = weights_of(config, *trainer);
    for (const Parameter& p : model->model().parameters())
      from_doubles(p.value, std::vector<double>(static_cast<size_t>(p.value.size()), std::numeric_limits<double>::quiet_NaN()));
    FrozenBatch batch = frozen(3, 24, corpus_.vocabulary());
    std::fill(batch.targets.begin(), batch.targets.end(), 0);
    batch.most_answers = 24;
    const Evaluation e = pass_of(*model, 96).evaluate(batch);
    QVERIFY(std::isnan(e.loss));
    QCOMPARE(e.accuracy, 0.0);
  }

  void other_lengths_where_the_model_takes_them() {
    const auto loss = [&](const nlohmann::json& architecture, int64_t length) {
      const RunConfig config = small_run(architecture);
      const auto trainer = trained(config, 0);
      const auto model = weights_of(config, *trainer);
      return pass_of(*model, 96).evaluate(frozen(3, length, corpus_.vocabulary())).by_position.size();
    };
    QCOMPARE(loss(plain(), 100), size_t(100));
    QCOMPARE(loss(plain("gpt"), 10), size_t(10));
    QVERIFY_THROWS_EXCEPTION(UsageError, loss(plain("gpt"), 25));
    QVERIFY_THROWS_EXCEPTION(UsageError,
                             loss({{"host", "llama"}, {"mixer", "attention"}, {"heads", 2}, {"relation", "constant-keys"}}, 25));
    QVERIFY_THROWS_EXCEPTION(UsageError, planned_evaluation_bytes(small_run(plain("gpt")), 257, Engine::cpu, 25));
  }

  void wrong_batches_are_refused() {
    const RunConfig config = small_run(plain());
    const auto trainer = trained(config, 0);
    const auto model = weights_of(config, *trainer);
    EvaluationPass pass = pass_of(*model, 96);
    FrozenBatch batch = frozen(2, 24, corpus_.vocabulary());
    batch.targets[7] = static_cast<int32_t>(corpus_.vocabulary());
    QVERIFY_THROWS_EXCEPTION(DataError, pass.evaluate(batch));
    QVERIFY_THROWS_EXCEPTION(DataError, pass.evaluate({"none", {}, {}, 0, 24}));
  }

  void frozen_text_of_every_split() {
    CorpusWriter writer("splits");
    for (const auto& [split, word] : {std::pair(Split::validation, "validated "), std::pair(Split::test, "tested ")})
      for (int i = 0; i < 20; ++i) writer.add("held", split, std::string(word) + std::to_string(i) + " times, as often as it takes");
    writer.add("seen", Split::train, "text to train on");
    writer.finish({}, Existing::refuse);
    const Corpus corpus = Corpus::open("splits");
    const auto batch = [&](const std::string& domain, Split split, int64_t sequences) {
      return frozen_batch(corpus, domain, {split, 16, sequences}, *tokenizer_);
    };
    const FrozenBatch test = batch("held", Split::test, 4), more = batch("held", Split::test, 9);
    QCOMPARE(test.tokens.size(), size_t(4 * 16));
    QVERIFY(std::equal(test.tokens.begin(), test.tokens.end(), more.tokens.begin()));
    for (size_t i = 0; i + 1 < 16; ++i) QCOMPARE(test.targets[i], test.tokens[i + 1]);
    const auto text = [&](const FrozenBatch& b) { return tokenizer_->decode(b.tokens); };
    QVERIFY(text(more).find("tested") != std::string::npos && text(more).find("validated") == std::string::npos);
    QVERIFY(text(batch("held", Split::validation, 9)).find("validated") != std::string::npos);
    QVERIFY(batch("held", Split::test, 100000).sequences < 100);
    const auto message = [&](const std::string& domain, Split split) {
      try {
        batch(domain, split, 1);
      } catch (const DataError& error) {
        return QString(error.what());
      }
      return QString();
    };
    QCOMPARE(
        message("seen", Split::test),
        QString(
            "corpus \"splits\" has no test text of domain \"seen\", only train: import it with files that hold some, with more documents, "
            "or with --ignore-file-splits"));
    QVERIFY(message("nowhere", Split::test).contains("has no domain \"nowhere\""));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::EvaluationTest)
#include "evaluation_test.moc"
