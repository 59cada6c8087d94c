#include "analysis/evaluation/length_evaluation.h"

#include <QtTest>
#include <cmath>

#include "analysis/figures/length_figure.h"
#include "analysis/runs/sealed_json.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Losses of the same documents at the trained length, 64, and beyond.
class LengthEvaluationTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_ = folder_.filePath("run").toStdString();
    QCOMPARE(work_on(run_, tiny_config()).state, RunState::finished);
    CorpusWriter writer("long");
    for (int i = 0; i < 12; ++i) {
      std::string text = "document " + std::to_string(i) + ": ";
      while (text.size() < (i < 5 ? 256u : 255u)) text += static_cast<char>('a' + (i * 7 + text.size() * text.size()) % 26);
      writer.add("prose", Split::test, text);
      writer.add("short", Split::test, "nothing much, number " + std::to_string(i));
    }
    writer.finish({}, Existing::refuse);
  }

  /// Only the five documents of 256 tokens; their whole loss is that of the first tokens, and the last 32 targets are the same.
  void the_same_documents_and_targets() {
    const LengthLosses e = evaluate_lengths(run_, on_long(), {.lengths = {256, 64, 128}});
    QVERIFY(e.trained_length == 64 && e.greatest == 256 && e.least_tokens == 256 && e.not_read.empty());
    QCOMPARE(e.without_documents, std::vector<std::string>{"short"});
    QCOMPARE(e.domains.size(), size_t{1});
    QCOMPARE(e.domains[0].lengths.size(), size_t{3});
    std::vector<double> expected_loss, expected_last;
    by_hand(expected_loss, expected_last);
    for (size_t i = 0; i < 3; ++i) {
      const LengthLosses::At& at = e.domains[0].lengths[i];
      QCOMPARE(at.length, int64_t{64} << i);
      QCOMPARE(at.by_document.size(), size_t{5});
      QVERIFY(std::abs(at.loss - expected_loss[i]) < 1e-6);
      QVERIFY(std::abs(at.last - expected_last[i]) < 1e-6);
      QVERIFY(at.error > 0 && at.last_error > 0);
      QVERIFY(std::abs(at.change - (at.last - e.domains[0].lengths[0].last)) < 1e-12);
      QCOMPARE(at.by_position.back().end, at.length);
    }
    QVERIFY(e.domains[0].lengths[0].change_error == 0 && e.domains[0].lengths[2].change_error > 0);
  }

  void longer_documents_alone() {
    QVERIFY_THROWS_EXCEPTION(UsageError, evaluate_lengths(run_, on_long(), {.lengths = {64, 128}, .least_tokens = 100}));
    QVERIFY_THROWS_EXCEPTION(UsageError, evaluate_lengths(run_, on_long(), {.lengths = {16, 128}}));
    QVERIFY_THROWS_EXCEPTION(DataError, evaluate_lengths(run_, on_long(), {.lengths = {64}, .least_tokens = 257}));
    QCOMPARE(evaluate_lengths(run_, on_long(), {.lengths = {64}, .least_tokens = 255}).domains[0].lengths[0].by_document.size(),
             size_t{12});
    RunEvaluationOptions two = on_long();
    two.tokens = 2 * 64;
    QCOMPARE(evaluate_lengths(run_, two, {.lengths = {64}}).domains[0].lengths[0].by_document.size(), size_t{2});
  }

  /// Learned positions end at the trained length: the others are told, and the documents are those of any run.
  void positions_that_end_at_the_trained_length() {
    const fs::path directory = folder_.filePath("gpt").toStdString();
    RunConfig config = tiny_config();
    nlohmann::json object = tiny_run("tiny");
    object["architecture"] = {{"block", "gpt"}, {"mixer", "attention"}, {"width", 16}, {"layers", 2}, {"heads", 2}};
    config.architecture = resolve_config(object, "tiny").architecture;
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    const LengthLosses e = evaluate_lengths(directory, on_long(), {.lengths = {64, 128, 256}});
    QCOMPARE(e.not_read, (std::vector<int64_t>{128, 256}));
    QVERIFY(e.domains[0].lengths.size() == 1 && e.domains[0].lengths[0].by_document.size() == 5);
    QCOMPARE(evaluate_lengths(directory, on_long(), {.lengths = {256}}).domains[0].lengths[0].length, int64_t{64});
  }

  void kept_with_the_run_and_drawn() {
    const LengthLosses e = evaluate_lengths(run_, on_long(), {.lengths = {64, 128, 256}});
    const fs::path file = length_losses_file(run_, e);
    QCOMPARE(to_json(parse_length_losses(read_sealed_json(file), file)), to_json(e));
    QCOMPARE(to_json(*newest_length_losses(run_)), to_json(e));
    const Run run(run_);
    for (const bool last : {false, true}) {
      const Figure figure = length_figure(each_run({&run}), "", last);
      QVERIFY(figure.vertical_line == 64.0 && figure.x.logarithmic);
      QCOMPARE(figure.curves.size(), size_t{1});
      QCOMPARE(figure.curves[0].x.size(), size_t{3});
      for (size_t i = 0; i < 3; ++i) {
        const LengthLosses::At& at = e.domains[0].lengths[i];
        QCOMPARE(figure.curves[0].x[i], static_cast<double>(at.length));
        QCOMPARE(figure.curves[0].y[i], last ? at.last : at.loss);
        QVERIFY(std::abs(figure.curves[0].high[i] - figure.curves[0].y[i] - (last ? at.last_error : at.error)) < 1e-12);
      }
    }
    flip_byte(file, 0.5);
    QVERIFY_THROWS_EXCEPTION(DataError, newest_length_losses(run_));
    fs::remove(file);
    QVERIFY(!newest_length_losses(run_));
    QVERIFY(length_figure(each_run({&run}), "", false).curves.empty());
  }

  /// A ranker that sees the whole split loses more, or less, than what decoding sees; the file keeps both readings.
  void the_price_of_looking_ahead_at_each_length() {
    const fs::path directory = folder_.filePath("avey").toStdString();
    RunConfig config = tiny_config();
    nlohmann::json object = tiny_run("tiny");
    object["architecture"] = {{"block", "avey"}, {"width", 16}, {"layers", 2}, {"split", 8}, {"top_k", 2}};
    config.architecture = resolve_config(object, "tiny").architecture;
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    const LengthLosses e = evaluate_lengths(directory, on_long(), {.lengths = {64, 128}, .stepwise = true});
    QVERIFY(!e.looks_ahead.empty());
    QCOMPARE(e.domains[0].lengths.size(), size_t{2});
    for (const LengthLosses::At& at : e.domains[0].lengths) {
      QVERIFY(at.stepwise && std::abs(at.stepwise->price) > 1e-6 && at.stepwise->price_error > 0);
      QVERIFY(std::abs(at.stepwise->price - (at.stepwise->loss - at.loss)) < 1e-9);
      QVERIFY(std::abs(at.stepwise->last_price - (at.stepwise->last - at.last)) < 1e-9);
    }
    QCOMPARE(to_json(*newest_length_losses(directory)), to_json(e));
    QVERIFY(!evaluate_lengths(directory, on_long(), {.lengths = {64}}).domains[0].lengths[0].stepwise);
  }

  /// What is compared is of one text: of that which most runs have, though a run has newer losses of another; which it is, is told.
  void runs_are_compared_on_the_text_they_have_in_common() {
    const fs::path other = folder_.filePath("other").toStdString(), lone = folder_.filePath("lone").toStdString();
    RunConfig config = tiny_config();
    config.training.seed = 2;
    QCOMPARE(work_on(other, config).state, RunState::finished);
    const auto evaluate = [&](const fs::path& run, Split split) {
      RunEvaluationOptions options{.split = split, .corpus = split == Split::test ? "long" : ""};
      return evaluate_lengths(run, options, {.lengths = {64}});
    };
    evaluate(run_, Split::test), evaluate(other, Split::test), evaluate(run_, Split::validation);
    QCOMPARE(newest_length_losses(run_)->split, std::string("validation"));
    const auto both = comparable_length_losses({run_, other});
    QVERIFY(both[0]->split == "test" && both[1]->split == "test" && both[0]->corpus == "long");
    const Run first(run_), second(other);
    const Figure figure = length_figure(each_run({&first, &second}), "", false);
    QCOMPARE(figure.curves.size(), size_t{2});
    QCOMPARE(figure.notes, std::vector<std::string>{"Losses over length of the test text of long, on which most runs were evaluated."});
    fs::remove(length_losses_file(other, *both[1]));
    evaluate(other, Split::validation);
    QVERIFY(length_figure(each_run({&second}), "", false).notes.empty());  // it has no other
    fs::copy(run_, lone, fs::copy_options::recursive);
    fs::remove(length_losses_file(lone, *newest_length_losses(other)));  // of the validation text
    const Run third(lone);
    const Figure mixed = length_figure(each_run({&first, &second, &third}), "", false);
    QCOMPARE(mixed.curves.size(), size_t{3});
    QCOMPARE(mixed.notes.size(), size_t{2});
    QVERIFY2(mixed.notes[0].find("was evaluated on other text") == std::string::npos, mixed.notes[0].c_str());
    QVERIFY2(mixed.notes[1].find(" was evaluated on other text: the ") != std::string::npos, mixed.notes[1].c_str());
  }

 private:
  RunEvaluationOptions on_long() const {
    RunEvaluationOptions options{.split = Split::test, .corpus = "long"};
    options.tokens = 1 << 14;
    return options;
  }

  /// From the stored text: bytes are tokens.
  void by_hand(std::vector<double>& losses, std::vector<double>& last) const {
    LoadedModel loaded = load_model(run_);
    EvaluationPass pass(
        loaded.model->model(), loaded.model->arena(), [](Tape&) {}, micro_batch_tokens(loaded.config.training));
    const auto store = TokenStore::open(Corpus::open("long"), "prose", Split::test, *loaded.tokenizer);
    for (const int64_t length : {64, 128, 256}) {
      double sum = 0, last_sum = 0;
      for (size_t i = 0; i < 12; ++i) {
        const int64_t begin = i == 0 ? 0 : store->document_ends()[i - 1];
        if (store->document_ends()[i] - begin != 257) continue;
        std::vector<int32_t> row{store->end_of_text()};
        row.resize(257);
        store->read(begin, std::span(row).subspan(1));
        const auto of = [&](size_t from) { return pass.token_scores(row.data() + from, row.data() + from + 1, 1, length, false).losses; };
        const std::vector<double> whole = of(0), end = of(static_cast<size_t>(256 - length));
        for (int64_t t = 0; t < length; ++t) sum += whole[static_cast<size_t>(t)] / static_cast<double>(5 * length);
        for (int64_t t = length - 32; t < length; ++t) last_sum += end[static_cast<size_t>(t)] / (5 * 32);
      }
      losses.push_back(sum), last.push_back(last_sum);
    }
  }

  QTemporaryDir folder_;
  TinyCorpus corpus_;
  fs::path run_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::LengthEvaluationTest)
#include "length_evaluation_test.moc"
