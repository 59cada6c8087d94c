#include "analysis/tasks/stepwise_scoring.h"

#include <QtTest>
#include <cmath>
#include <numeric>

#include "analysis/tasks/task_run.h"
#include "kernels/engine/transfer.h"
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

  /// One pass is the log-softmax of a plain forward over the request alone, whatever stands beside it; token by token is what decoding says
  /// before each token.
  void readings_are_the_forward_and_decoding() {
    LoadedModel loaded = load_model(run_);
    InferenceModel& model = *loaded.model;
    const auto V = static_cast<size_t>(loaded.rows());
    std::vector<EncodedRequest> requests;
    for (const char* text : {"for the moon, over the hill", "for the moon, over the hull", "int main(int argc) { return", "the cat"})
      for (const int64_t scored : {1, 4, 6}) requests.push_back({loaded.tokenizer->encode(text), scored});
    std::vector<size_t> all(requests.size());
    std::iota(all.begin(), all.end(), size_t{0});
    std::vector<double> one_pass(all.size(), NAN), stepwise(all.size(), NAN);
    const auto into = [](std::vector<double>& found) {
      return [&found](const std::vector<ScoredRequest>& batch) {
        for (const ScoredRequest& s : batch) found[s.request] = s.log_likelihood;
        return true;
      };
    };
    EvaluationPass pass(
        model.model(), model.arena(), [](Tape&) {}, 400);
    score_requests(pass, requests, all, {.batching = Batching::equal}, into(one_pass));
    score_stepwise(model, requests, all, false, into(stepwise));
    const auto log_probability = [&](const double* logits, int32_t token) {
      const double most = *std::max_element(logits, logits + V);
      double sum = 0;
      for (size_t v = 0; v < V; ++v) sum += std::exp(logits[v] - most);
      return logits[token] - most - std::log(sum);
    };
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<int32_t>& text = requests[i].tokens;
      const size_t read = text.size() - 1, first = read - static_cast<size_t>(requests[i].scored);
      double forward = 0, decoded = 0;
      {
        Tape tape(model.arena(), false);
        const Tensor tokens = model.arena().allocate({1, static_cast<int64_t>(read)}, DType::i32);
        copy_from_host(tokens, text.data());
        const std::vector<double> logits = to_doubles(model.model().logits(tape, tokens));
        for (size_t t = first; t < read; ++t) forward += log_probability(logits.data() + t * V, text[t + 1]);
      }
      Decoder decoder(model, static_cast<int64_t>(read));
      for (size_t t = 0; t < read; ++t) {
        decoder.feed(std::span(text).subspan(t, 1));
        if (t >= first) decoded += log_probability(decoder.logits().data(), text[t + 1]);
      }
      const double tolerance = 1e-6 * static_cast<double>(requests[i].scored);
      QVERIFY2(std::abs(one_pass[i] - forward) <= tolerance, qPrintable(QString("%1, the forward says %2").arg(one_pass[i]).arg(forward)));
      QVERIFY2(std::abs(stepwise[i] - decoded) <= tolerance, qPrintable(QString("%1, decoding says %2").arg(stepwise[i]).arg(decoded)));
    }
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
