#include "analysis/tasks/stepwise_scoring.h"

#include <QtTest>
#include <cmath>
#include <numeric>

#include "analysis/tasks/task_run.h"
#include "models/training/training_step.h"
#include "tests/analysis/trained_run.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// Choices scored token by token by a model that looks ahead.
class StepwiseScoringTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_ = folder_.filePath("avey").toStdString();
    QCOMPARE(work_on(run_, tiny_config("avey")).state, RunState::finished);
  }

  /// Each token's probability is that of a forward over exactly what stands before it, whether that ends within a split or with it.
  void what_follows_is_not_seen() {
    LoadedModel loaded = load_model(run_);
    EvaluationPass pass(
        loaded.model->model(), loaded.model->arena(), [](Tape&) {}, micro_batch_tokens(loaded.config.training));
    std::vector<EncodedRequest> requests;
    for (const int64_t scored : {1, 5, 20, 40})
      requests.push_back({loaded.tokenizer->encode("for the moon, over the hill and the cat: (int i)"), scored});
    std::vector<double> found(requests.size(), NAN);
    std::vector<bool> greedy(requests.size());
    score_stepwise(*loaded.model, requests, std::vector<size_t>{2, 0, 1, 3}, true, [&](const std::vector<ScoredRequest>& batch) {
      for (const ScoredRequest& s : batch) found[s.request] = s.log_likelihood, greedy[s.request] = s.greedy;
      return true;
    });
    double apart = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const std::vector<int32_t>& tokens = requests[i].tokens;
      const auto all = static_cast<int64_t>(tokens.size());
      double expected = 0;
      bool likeliest = true;
      for (int64_t n = all - requests[i].scored; n < all; ++n) {
        const TokenScores scores = pass.token_scores(tokens.data(), tokens.data() + 1, 1, n, true);
        expected -= scores.losses.back(), likeliest &= scores.right.back();
      }
      QVERIFY2(std::abs(found[i] - expected) < 1e-4, qPrintable(QString("%1, expected %2").arg(found[i]).arg(expected)));
      QCOMPARE(greedy[i], likeliest);
      const std::vector<double> whole = pass.token_scores(tokens.data(), tokens.data() + 1, 1, all - 1, false).losses;
      apart = std::max(apart, std::abs(found[i] + std::accumulate(whole.end() - requests[i].scored, whole.end(), 0.0)));
    }
    QVERIFY(apart > 1e-5);  // one pass reads otherwise
  }

  /// Neither takes the other's place.
  void results_say_which_reading_they_are_of() {
    const fs::path data = folder_.filePath("arc-easy.jsonl").toStdString();
    std::ofstream file(data);
    for (int i = 0; i < 4; ++i)
      file << nlohmann::json{{"question", "What fell for " + std::to_string(i) + " days?"},
                             {"choices", {{"text", {"rain over the hill", "the cat"}}, {"label", {"A", "B"}}}},
                             {"answerKey", i % 2 ? "A" : "B"}}
                  .dump()
           << "\n";
    file.close();
    const std::atomic<bool> stop = false;
    TaskRunOptions options;
    options.data = data;
    const TaskResult one_pass = evaluate_task(run_, find_task("arc-easy"), options, {}, stop);
    options.reading = "stepwise";
    const TaskResult stepwise = evaluate_task(run_, find_task("arc-easy"), options, {}, stop);
    QVERIFY(one_pass.reading == "one_pass" && stepwise.reading == "stepwise" && !stepwise.cached);
    QVERIFY(one_pass.items[0].log_likelihoods != stepwise.items[0].log_likelihoods);
    QVERIFY(fs::exists(run_ / "tasks" / "arc-easy-step-12.json") && fs::exists(run_ / "tasks" / "arc-easy-step-12-stepwise.json"));
    QVERIFY(evaluate_task(run_, find_task("arc-easy"), options, {}, stop).cached);
  }

 private:
  QTemporaryDir folder_;
  TinyCorpus corpus_;
  fs::path run_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StepwiseScoringTest)
#include "stepwise_scoring_test.moc"
