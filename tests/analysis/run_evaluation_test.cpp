#include "analysis/evaluation/run_evaluation.h"

#include <QtTest>
#include <cmath>

#include "models/training/plan.h"
#include "models/training/training_step.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// A run's checkpoint evaluated afterwards: as it was while training, and on other text.
class RunEvaluationTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_ = folder_.filePath("run").toStdString();
    const int64_t before = plans_made();
    QCOMPARE(work_on(run_, tiny_config()).state, RunState::finished);
    plans_of_a_start_ = plans_made() - before;
    CorpusWriter writer("held");
    for (int i = 0; i < 30; ++i) {
      writer.add("prose", Split::test, "a text that nobody has seen, number " + std::to_string(i) + ", of a mat, a moon and a hill");
      writer.add("verse", Split::test, "the moon, the hill, the mat: " + std::to_string(i * i));
    }
    writer.finish({}, Existing::refuse);
  }

  /// Memory, costs and the device come from one plan, made on the device that the config names; `auto` needs a second one only
  /// where a GPU's engine refuses an op.
  void a_training_start_plans_once() {
    QCOMPARE(plans_of_a_start_, int64_t{1});
    RunConfig config = tiny_config();
    config.device = "auto";
    const fs::path directory = folder_.filePath("auto").toStdString();
    const int64_t before = plans_made();
    work_on(directory, config, 6);
    QCOMPARE(plans_made() - before, int64_t{1});
    QCOMPARE(work_on(directory, config).state, RunState::finished);
    QCOMPARE(plans_made() - before, int64_t{2});
  }

  void defaults_repeat_the_last_evaluation_of_the_run() {
    const RunEvaluation e = evaluate_run(run_, {});
    QCOMPARE(e.step, int64_t{12});
    QCOMPARE(e.length, int64_t{64});
    QCOMPARE(e.domains.size(), size_t{2});
    const Run run(run_);
    for (const DomainEvaluation& d : e.domains) {
      const Series* series = run.find((d.ood ? "ood/loss/" : "validation/loss/") + d.domain);
      QVERIFY(series);
      QCOMPARE(d.result.loss, series->value.back());
      QCOMPARE(d.result.standard_error, series->error.back());
      QVERIFY(d.result.standard_error > 0 && d.result.standard_error < d.result.loss);
      QCOMPARE(d.sequences, int64_t{64});
      QCOMPARE(d.tokens, int64_t{4096});
    }
  }

  /// Nor made: with the tokens of the training split gone they stay so.
  void no_training_text_is_opened() {
    int removed = 0;
    const auto training_tokens = [](auto&& visit) {
      const fs::path cache = qEnvironmentVariable("SACCADE_CACHE").toStdString();
      for (const auto& entry : fs::recursive_directory_iterator(cache))
        if (entry.path().filename().string().find(".train.") != std::string::npos) visit(entry.path());
    };
    training_tokens([&](const fs::path& path) { removed += fs::remove(path) ? 1 : 0; });
    QCOMPARE(removed, 1);
    evaluate_run(run_, {});
    evaluate_run(run_, {.split = Split::test, .corpus = "held"});
    training_tokens([&](const fs::path& path) { QFAIL(path.c_str()); });
  }

  /// The error of a difference is that of the differences sequence by sequence, and is brought down by more text.
  void pairs_on_the_same_sequences() {
    const fs::path other = folder_.filePath("other").toStdString();
    RunConfig config = tiny_config();
    config.training.seed = 2;
    QCOMPARE(work_on(other, config).state, RunState::finished);
    const PairedEvaluation few = evaluate_pairs({run_, other}, {.tokens = 256}, 1e9);
    QCOMPARE(few.tokens, int64_t{256});
    QVERIFY(!few.whole_split);
    const LossAndError d = paired_difference(few.losses[1], few.losses[0], false);
    const Evaluation &a = few.runs[1].domains[0].result, &b = few.runs[0].domains[0].result;
    QCOMPARE(a.by_sequence.size(), size_t{4});
    double mean = 0, squares = 0;
    for (size_t s = 0; s < 4; ++s) mean += (a.by_sequence[s] - b.by_sequence[s]) / 4;
    for (size_t s = 0; s < 4; ++s) squares += std::pow(a.by_sequence[s] - b.by_sequence[s] - mean, 2);
    QVERIFY(std::abs(d.loss - mean) < 1e-12);
    QVERIFY(std::abs(d.error - std::sqrt(squares / 12)) < 1e-12);
    const LossAndError ood = paired_difference(few.losses[1], few.losses[0], true);
    const double wanted = 0.6 * std::max(d.error, ood.error);
    const PairedEvaluation more = evaluate_pairs({run_, other}, {.tokens = 256}, wanted);
    QVERIFY(more.tokens > 256 && !more.whole_split);
    for (const bool outside : {false, true}) QVERIFY(paired_difference(more.losses[1], more.losses[0], outside).error <= wanted);
    const PairedEvaluation all = evaluate_pairs({run_, other}, {.tokens = 4096}, 1e-12);
    QVERIFY(all.whole_split && all.tokens > 4096);
    const RunEvaluation test = evaluate_run(run_, {.split = Split::test, .corpus = "held"});
    QVERIFY_THROWS_EXCEPTION(DataError, paired_difference(sequence_losses(test), few.losses[0], false));
  }

  void the_end_is_evaluated_on_more_text_where_that_is_asked_for() {
    const fs::path run = folder_.filePath("final").toStdString();
    RunConfig config = tiny_config();
    config.training.evaluation_tokens = 256;
    config.training.final_evaluation_tokens = 1000;
    QCOMPARE(work_on(run, config).state, RunState::finished);
    const auto kept = nlohmann::json::parse(read_text(run / "evaluations" / "step-12.validation.json"));
    const RunEvaluation again = evaluate_run(run, {.tokens = 1024});
    QCOMPARE(kept["domains"].size(), size_t{2});
    for (size_t i = 0; i < 2; ++i) {
      QCOMPARE(kept["domains"][i]["loss"].get<double>(), again.domains[i].result.loss);
      QCOMPARE(kept["domains"][i]["by_sequence"].get<std::vector<double>>(), again.domains[i].result.by_sequence);
    }
    QVERIFY(!fs::exists(run_ / "evaluations"));  // 12 steps do not pay for more than was evaluated
  }

  /// By default on what the evaluations on the way leave of 2.5 % of a run's own steps: here of 40 of 256 tokens, of a branch of 20.
  void the_end_of_a_run_and_of_its_branches_is_evaluated_on_more_text() {
    const fs::path run = folder_.filePath("paid").toStdString();
    RunConfig config = tiny_config();
    config.training.steps = 40, config.training.batch_tokens = 256;
    config.training.evaluate_every = 40, config.training.evaluation_tokens = 64;
    config.training.schedule = "wsd";
    config.training.schedule_settings = {{"cooldown_share", 0.5}, {"cooldown_at", {20}}};
    QCOMPARE(work_on(run, resolve_config(to_json(config), "test")).state, RunState::finished);
    const auto sequences = [](const fs::path& directory) {
      const auto kept = nlohmann::json::parse(read_text(directory / "evaluations" / "step-40.validation.json"));
      return kept["domains"][0]["by_sequence"].size();
    };
    QCOMPARE(sequences(run), static_cast<size_t>(final_evaluation_sequences(config, 40)));
    QCOMPARE(sequences(run / "branches" / "step-20"), static_cast<size_t>(final_evaluation_sequences(config, 20)));
    QVERIFY(sequences(run) > sequences(run / "branches" / "step-20"));
  }

  /// A causal model loses the same in both readings; Avey, whose ranker sees a whole split in one pass, what decoding gives the targets.
  void token_by_token() {
    const BothReadings causal = evaluate_readings(run_, {.tokens = 256});
    QCOMPARE(causal.stepwise.size(), size_t{2});
    for (size_t i = 0; i < 2; ++i) {
      QVERIFY(std::abs(causal.stepwise[i].price) < 1e-5);
      QCOMPARE(causal.stepwise[i].price, causal.stepwise[i].loss - causal.one_pass.domains[i].result.loss);
    }
    const fs::path directory = folder_.filePath("avey").toStdString();
    QCOMPARE(work_on(directory, tiny_config("avey")).state, RunState::finished);
    const BothReadings both = evaluate_readings(directory, {.domains = {"prose"}, .tokens = 128});
    QCOMPARE(both.one_pass.domains[0].result.loss, evaluate_run(directory, {.domains = {"prose"}, .tokens = 128}).domains[0].result.loss);
    LoadedModel loaded = load_model(directory);
    const FrozenBatch batch = frozen_batch(Corpus::open("tiny"), "prose", {Split::validation, 64, 2}, *loaded.tokenizer);
    double sum = 0;
    for (size_t s = 0; s < 2; ++s) {
      Decoder decoder(*loaded.model, 64);
      for (size_t t = 64 * s; t < 64 * (s + 1); ++t) {
        decoder.feed({&batch.tokens[t], 1});
        const std::vector<double> logits = decoder.logits();
        double total = 0;
        for (const double logit : logits) total += std::exp(logit);
        sum += std::log(total) - logits[static_cast<size_t>(batch.targets[t])];
      }
    }
    QVERIFY(std::abs(both.stepwise[0].loss - sum / 128) < 1e-5);
    QVERIFY(std::abs(both.stepwise[0].price) > 1e-6 && both.stepwise[0].price_error > 0);
  }

  void an_earlier_checkpoint() {
    const RunEvaluation e = evaluate_run(run_, {.checkpoint = 8});
    QCOMPARE(e.step, int64_t{8});
    QVERIFY(e.domains[0].result.loss != evaluate_run(run_, {}).domains[0].result.loss);
    QVERIFY_THROWS_EXCEPTION(DataError, evaluate_run(run_, {.checkpoint = 5}));
  }

  /// A corpus of test files alone, in the run's own and in a domain it never saw.
  void test_text_of_another_corpus() {
    const RunEvaluation e = evaluate_run(run_, {.split = Split::test, .corpus = "held"});
    QCOMPARE(e.corpus, std::string("held"));
    QCOMPARE(e.domains.size(), size_t{2});
    QVERIFY(!e.domains[0].ood && e.domains[1].ood && e.domains[1].domain == "verse");
    LoadedModel loaded = load_model(run_);
    EvaluationPass pass(
        loaded.model->model(), loaded.model->arena(), [](Tape&) {}, micro_batch_tokens(loaded.config.training));
    const FrozenBatch verse = frozen_batch(Corpus::open("held"), "verse", {Split::test, 64, 64}, *loaded.tokenizer);
    QCOMPARE(e.domains[1].result.loss, pass.evaluate(verse).loss);
    QCOMPARE(e.domains[1].sequences, verse.sequences);
    QVERIFY(verse.sequences < 64);  // it has no more

    const RunEvaluation one = evaluate_run(run_, {.split = Split::test, .corpus = "held", .domains = {"verse"}});
    QCOMPARE(one.domains.size(), size_t{1});
    QCOMPARE(one.domains[0].result.loss, e.domains[1].result.loss);
    QVERIFY_THROWS_EXCEPTION(DataError, evaluate_run(run_, {.corpus = "held"}));
    QVERIFY_THROWS_EXCEPTION(DataError, evaluate_run(run_, {.split = Split::test}));
    QVERIFY_THROWS_EXCEPTION(DataError, evaluate_run(run_, {.corpus = "nowhere"}));
    QVERIFY_THROWS_EXCEPTION(UsageError, evaluate_run(run_, {.corpus = "held", .domains = {"code"}}));
  }

  void other_lengths_and_amounts() {
    const RunEvaluation e = evaluate_run(run_, {.length = 200, .tokens = 1000});
    for (const DomainEvaluation& d : e.domains) {
      QCOMPARE(d.sequences, int64_t{5});
      QCOMPARE(d.tokens, int64_t{1000});
      QCOMPARE(d.result.by_position.size(), size_t{200});
    }
    const RunEvaluation single = evaluate_run(run_, {.tokens = 100});
    QCOMPARE(single.domains[0].sequences, int64_t{1});
    QVERIFY(std::isnan(single.domains[0].result.standard_error));
    QVERIFY_THROWS_EXCEPTION(UsageError, evaluate_run(run_, {.tokens = 63}));
  }

  /// Numbers of another text would pass for the run's own.
  void a_changed_corpus_is_an_error_unless_it_is_named() {
    const fs::path stored = fs::path(qEnvironmentVariable("SACCADE_DATA").toStdString()) / "corpora" / "tiny",
                   aside = stored.string() + "-";
    fs::rename(stored, aside);
    CorpusWriter writer("tiny");
    for (const char* domain : {"prose", "code"})
      for (int i = 0; i < 30; ++i) writer.add(domain, Split::validation, "something else altogether, number " + std::to_string(i));
    writer.finish({}, Existing::refuse);
    QVERIFY_THROWS_EXCEPTION(DataError, evaluate_run(run_, {}));
    QCOMPARE(evaluate_run(run_, {.corpus = "tiny"}).domains.size(), size_t{2});
    fs::remove_all(stored);
    fs::rename(aside, stored);
    QCOMPARE(evaluate_run(run_, {}).domains.size(), size_t{2});
  }

 private:
  QTemporaryDir folder_;
  TinyCorpus corpus_;
  fs::path run_;
  int64_t plans_of_a_start_ = 0;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RunEvaluationTest)
#include "run_evaluation_test.moc"
