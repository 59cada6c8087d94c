#include "models/optimizers/registry.h"

#include <QtTest>
#include <cmath>

#include "models/training/plan.h"
#include "tests/models/model_fixture.h"

namespace saccade::test {

class OptimizersTest : public QObject {
  Q_OBJECT

  LinesCorpus corpus_;

  static nlohmann::json untied() { return {{"block", "llama"}, {"mixer", "attention"}, {"heads", 2}, {"tied", false}}; }
  std::unique_ptr<Trainer> trainer(const RunConfig& config) const {
    return std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config));
  }
  static std::vector<std::string> names(const TensorGroup& group) {
    std::vector<std::string> all;
    for (const NamedTensor& t : group.tensors) all.push_back(t.name);
    return all;
  }
  /// Largest change of each tensor in one step.
  std::map<std::string, double> changes(const nlohmann::json& training) const {
    const auto t = trainer(small_run(untied(), training));
    Arena arena(Device::cpu());
    const TrainingState before = copy_of(t->state(), arena);
    t->step();
    const TrainingState after = t->state();
    std::map<std::string, double> largest;
    for (size_t i = 0; i < before.weights.size(); ++i)
      for (int64_t j = 0; j < before.weights[i].tensor.size(); ++j)
        largest[before.weights[i].name] =
            std::max(largest[before.weights[i].name],
                     std::abs(static_cast<double>(before.weights[i].tensor.data<float>()[j] - after.weights[i].tensor.data<float>()[j])));
    return largest;
  }

 private Q_SLOTS:
  void every_one_learns_and_is_planned_data() {
    QTest::addColumn<QString>("id");
    for (const OptimizerEntry* entry : optimizers()) QTest::newRow(entry->id.c_str()) << QString::fromStdString(entry->id);
  }
  void every_one_learns_and_is_planned() {
    QFETCH(QString, id);
    const RunConfig config = small_run(untied(), {{"optimizer", id.toStdString()}});
    const Plan plan = make_plan(config, corpus_.vocabulary());
    const auto t = trainer(config);
    int64_t kept = 0;
    for (const TensorGroup& group : t->state().optimizer)
      for (const NamedTensor& named : group.tensors) kept += named.tensor.bytes();
    QCOMPARE(plan.optimizer_bytes, kept);
    const StepRecord first = t->step();
    StepRecord last;
    while (!t->finished()) last = t->step();
    QVERIFY2(last.loss < first.loss - 1, qPrintable(QString("%1 after %2").arg(last.loss).arg(first.loss)));
    QCOMPARE(plan.peak_bytes, t->arena().peak_extent());
  }

  void muon_takes_the_inner_matrices() {
    const auto t = trainer(small_run(untied(), {{"optimizer", "muon"}}));
    TrainingState state = t->state();
    QCOMPARE(names(state.group("momentum")),
             (std::vector<std::string>{"layer0.query", "layer0.key", "layer0.value", "layer0.output", "layer0.gate", "layer0.up",
                                       "layer0.down", "layer1.query", "layer1.key", "layer1.value", "layer1.output", "layer1.gate",
                                       "layer1.up", "layer1.down"}));
    for (const char* name : {"embedding", "output", "final_norm", "layer0.mlp_norm"}) {
      const auto all = names(state.group("second_moments"));
      QVERIFY2(std::find(all.begin(), all.end(), name) != all.end(), name);
    }
    const auto less = trainer(small_run(untied(), {{"optimizer", "muon"}, {"adamw_tensors", {"embedding", "layer0.*"}}}));
    QCOMPARE(less->state().group("momentum").tensors.size(), size_t{7});
  }

  void multipliers_reach_their_tensors() {
    const nlohmann::json plain{{"weight_decay", 0}},
        scaled{{"weight_decay", 0}, {"learning_rate_multipliers", {"layer1.*=0", "*.query=2", "*=1"}}};
    for (const char* id : {"adamw", "muon"}) {
      nlohmann::json a = plain, b = scaled;
      a["optimizer"] = b["optimizer"] = id;
      const auto one = changes(a), other = changes(b);
      QCOMPARE(other.at("layer1.query"), 0.0);
      QVERIFY(one.at("layer1.query") > 0);
      QVERIFY(std::abs(other.at("layer0.query") / one.at("layer0.query") - 2) < 1e-2);
      QCOMPARE(other.at("layer0.key"), one.at("layer0.key"));
    }
    try {
      trainer(small_run(untied(), {{"learning_rate_multipliers", {"layer0.qeury=2"}}}));
      QFAIL("no such tensor");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).contains("layer0.query"), error.what());
    }
  }

  void patterns() {
    QVERIFY(fits_pattern("layer12.key", "layer*.key") && fits_pattern("layer12.key", "*") && fits_pattern("a", "?") &&
            fits_pattern("", "*"));
    QVERIFY(!fits_pattern("layer12.key_gain", "layer*.key") && !fits_pattern("ab", "?") && !fits_pattern("a", ""));
    QVERIFY(fits_pattern("aXbXc", "a*X*c") && !fits_pattern("aXbX", "a*X*c"));
    QCOMPARE(parse_multipliers({"a=b=0.5"}, "/x").at(0).pattern, std::string("a=b"));
    for (const char* wrong : {"a", "=1", "a=", "a=-1", "a=nan", "a=1x"})
      QVERIFY_THROWS_EXCEPTION(UsageError, parse_multipliers({wrong}, "/x"));
  }

  /// A step of a warm-up is what a step of so small a batch is.
  void a_growing_batch_counts_its_tokens() {
    const nlohmann::json growing{{"gradient_accumulation", 4}, {"batch_warmup_tokens", 24}, {"batch_warmup_steps", 4}, {"steps", 6}};
    const RunConfig config = small_run(untied(), growing, "f64"), small = small_run(untied(), {{"batch_tokens", 24}, {"steps", 6}}, "f64");
    const auto t = trainer(config), alone = trainer(small);
    const StepRecord first = t->step(), first_alone = alone->step();
    QCOMPARE(first.loss, first_alone.loss);
    QCOMPARE(first.gradient_norm, first_alone.gradient_norm);
    QCOMPARE(first.tokens, int64_t{24});
    StepRecord last;
    while (!t->finished()) last = t->step();
    QCOMPARE(last.tokens, int64_t{24 * (1 + 1 + 2 + 3 + 4 + 4)});
    const Plan plan = make_plan(config, corpus_.vocabulary());
    QCOMPARE(plan.tokens, last.tokens);
    QVERIFY(std::abs(plan.total_flops() / last.flops - 1) < 1e-12);
    QVERIFY(plan.total_flops() < 6 * plan.flops_per_step);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::OptimizersTest)
#include "optimizers_test.moc"
