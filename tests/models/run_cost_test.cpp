#include "models/training/run_cost.h"

#include <QTest>

#include "models/corpus/vocabulary.h"

namespace saccade::test {

using Json = nlohmann::json;

class RunCostTest : public QObject {
  Q_OBJECT

  static RunConfig config(Json more = Json::object()) {
    Json json{{"architecture", {{"width", 16}, {"layers", 2}, {"heads", 2}}},
              {"data", {{"tokenizer", "bytes"}, {"sequence_length", 64}, {"train", {"prose"}}, {"ood", {"code"}}}},
              {"training", {{"steps", 100}, {"batch_tokens", 128}, {"evaluate_every", 10}, {"evaluation_tokens", 640}}},
              {"device", "cpu"}};
    json.merge_patch(more);
    return resolve_config(json, "test");
  }

 private Q_SLOTS:
  /// Two domains of ten sequences, of which the first is probed; maps of one sequence of each.
  void work_is_counted_by_what_is_done() {
    const Json rarely = {{"training", {{"probe_every", 50}, {"checkpoint_every", 30}, {"final_evaluation_tokens", 0}}}};
    const RunConfig often = config(rarely),
                    once = config({{"training", {{"evaluate_every", 1000}, {"probe_every", 1000}, {"final_evaluation_tokens", 0}}}});
    const Plan plan = make_plan(often, vocabulary_of("bytes"));
    const RunWork work = run_work(often, plan);
    QCOMPARE(work.steps, 100.0);
    QCOMPARE(work.evaluated_sequences, int64_t{10 * 2 * 10});
    QCOMPARE(work.probed_sequences, int64_t{2 * 10});
    QCOMPARE(work.captured_samples, int64_t{4 * 2});                      // 30, 60, 90 and the end
    QCOMPARE(run_work(once, plan).evaluated_sequences, int64_t{2 * 10});  // at the end all the same
    QCOMPARE(run_work(once, plan).probed_sequences, int64_t{10});
    QVERIFY(std::abs(run_seconds(often, plan, {.step = 0.5, .evaluated_sequence = 0.25, .probed_sequence = 2, .captured_sample = 4}) -
                     (50 + 50 + 40 + 32)) < 1e-9);
  }

  void start_end_branches_and_smaller_batches_count() {
    const RunConfig plain = config({{"training", {{"final_evaluation_tokens", 0}}}}),
                    started = config({{"training", {{"evaluate_at_start", true}, {"final_evaluation_tokens", 6400}}}});
    const Plan plan = make_plan(plain, vocabulary_of("bytes"));
    const RunWork work = run_work(plain, plan), more = run_work(started, plan);
    QCOMPARE(more.evaluated_sequences - work.evaluated_sequences, int64_t{2 * 10 + 2 * 100});
    QCOMPARE(more.probed_sequences - work.probed_sequences, int64_t{10});
    QCOMPARE(more.captured_samples - work.captured_samples, int64_t{2});
    const RunConfig branched =
        config({{"training", {{"schedule", "wsd"}, {"warmup_steps", 5}, {"cooldown_at", {45}}, {"final_evaluation_tokens", 0}}}});
    const int64_t cooldown = branch_steps(branched.training);
    QVERIFY(cooldown > 0);
    const RunWork with_branch = run_work(branched, plan);
    QCOMPARE(with_branch.steps, 100.0 + static_cast<double>(cooldown));
    const int64_t tens = (45 + cooldown) / 10 - 4 + ((45 + cooldown) % 10 != 0 ? 1 : 0);  // and at its end
    QCOMPARE(with_branch.evaluated_sequences - work.evaluated_sequences, tens * 2 * 10);
    const RunConfig growing = config(
        {{"training", {{"batch_tokens", 512}, {"gradient_accumulation", 4}, {"batch_warmup_tokens", 128}, {"batch_warmup_steps", 40}}}});
    const double steps = run_work(growing, make_plan(growing, vocabulary_of("bytes"))).steps;
    QVERIFY2(steps > 70 && steps < 95, std::to_string(steps).c_str());  // forty steps of 1, 2, 3 and 4 quarters
  }

  /// 262 144 tokens where they and the evaluations on the way take no more than 2.5 % of the steps, a pass forward being a third of a step;
  /// as told, or none, where told.
  void the_end_is_evaluated_on_what_is_left_of_a_share_of_the_steps() {
    const Json rarely = {{"training", {{"evaluate_every", 50}, {"evaluation_tokens", 64}}}};
    const RunConfig small = config(rarely), told = config({{"training", {{"final_evaluation_tokens", 65}}}});
    QCOMPARE(small.training.final_evaluation_tokens, int64_t{-1});
    QCOMPARE(final_evaluation_sequences(small, 100), int64_t{5});  // 0.025 · 3 · 100 · 128 tokens / 2 domains − 2 · 64, of 64 each
    QCOMPARE(final_evaluation_sequences(small, 60), int64_t{2});   // evaluated twice on the way, too
    QCOMPARE(final_evaluation_sequences(small, 20), int64_t{0});   // less than the one sequence that was evaluated
    QCOMPARE(final_evaluation_sequences(small, 1000000), int64_t{262144 / 64});
    QCOMPARE(final_evaluation_sequences(config(), 1000000), int64_t{0});  // the evaluations on the way take more than that share
    QCOMPARE(final_evaluation_sequences(told, 1), int64_t{2});
    QCOMPARE(final_evaluation_sequences(config({{"training", {{"final_evaluation_tokens", 0}}}}), 1000000), int64_t{0});
    const Plan plan = make_plan(small, vocabulary_of("bytes"));
    RunConfig none = small;
    none.training.final_evaluation_tokens = 0;
    QCOMPARE(run_work(small, plan).evaluated_sequences - run_work(none, plan).evaluated_sequences, int64_t{2 * 5});
  }

  void embeddings_are_the_tables_alone() {
    const auto vocabulary = vocabulary_of("bytes");
    QCOMPARE(count_embedding_parameters(config()), vocabulary * 16);
    QCOMPARE(count_embedding_parameters(config({{"architecture", {{"tied", false}}}})), vocabulary * 16);
    QCOMPARE(count_embedding_parameters(config({{"architecture", {{"position", "absolute"}}}})), vocabulary * 16 + 64 * 16);
    QCOMPARE(count_embedding_parameters(config({{"architecture", {{"block", "avey"}, {"heads", nullptr}, {"split", 16}}}})),
             vocabulary * 16);
  }

  void no_more_checkpoints_are_kept_than_written() {
    const auto kept = [](Json training) { return checkpoints_kept(config({{"training", std::move(training)}}).training); };
    QCOMPARE(kept({{"checkpoint_every", 10}}), int64_t{3});
    QCOMPARE(kept({{"checkpoint_every", 60}}), int64_t{2});  // 60 and the end
    QCOMPARE(kept({{"checkpoint_every", 100}}), int64_t{1});
    QCOMPARE(kept({{"checkpoint_every", 100}, {"evaluate_at_start", true}}), int64_t{2});
  }

  void captures_come_with_checkpoints_and_at_the_end() {
    QCOMPARE(captures_kept(config({{"training", {{"checkpoint_every", 30}}}}).training), int64_t{4});  // 30, 60, 90 and the end
    QCOMPARE(captures_kept(config({{"training", {{"checkpoint_every", 50}}}}).training), int64_t{2});
    QCOMPARE(captures_kept(config({{"training", {{"capture_every", 10}, {"evaluate_at_start", true}}}}).training), int64_t{11});
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::RunCostTest)
#include "run_cost_test.moc"
