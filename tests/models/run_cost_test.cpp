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
  /// Two domains of 640 tokens forward alone, ten times, beside 100 steps of 128 tokens forward and backward.
  void evaluations_take_their_share() {
    const RunConfig often = config(), once = config({{"training", {{"evaluate_every", 1000}}}});
    const Plan plan = make_plan(often, vocabulary_of("bytes"));
    const double share = plan.flops_per_evaluation / plan.flops_per_step;
    QVERIFY(share > 2 && share < 6);  // 10 times the tokens at a third of the work
    QVERIFY(std::abs(run_seconds(often, plan, 0.5) - 0.5 * (100 + 10 * share)) < 1e-9);
    QVERIFY(std::abs(run_seconds(once, plan, 0.5) - 0.5 * (100 + share)) < 1e-9);  // at the end all the same
  }

  void embeddings_are_the_tables_alone() {
    const auto vocabulary = vocabulary_of("bytes");
    QCOMPARE(count_embedding_parameters(config()), vocabulary * 16);
    QCOMPARE(count_embedding_parameters(config({{"architecture", {{"tied", false}}}})), vocabulary * 16);
    QCOMPARE(count_embedding_parameters(config({{"architecture", {{"position", "absolute"}}}})), vocabulary * 16 + 64 * 16);
    QCOMPARE(count_embedding_parameters(config({{"architecture", {{"block", "avey"}, {"heads", nullptr}, {"split", 16}}}})),
             vocabulary * 16);
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
