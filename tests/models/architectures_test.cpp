#include <QDirIterator>
#include <QtTest>
#include <cmath>
#include <set>

#include "models/training/plan.h"
#include "models/training/probe_plan.h"
#include "models/training/training_step.h"
#include "tests/models/architecture_rows.h"

namespace saccade::test {

/// Asks the same of everything in the registry: every block with every mixer and every whole architecture, plain and with
/// each choice of each setting; on the CPU, and on a GPU in f32 and bf16.
class ArchitecturesTest : public QObject {
  Q_OBJECT

  LinesCorpus corpus_;

  /// What a logit may change by without having seen anything: on a GPU a query may be computed beside others.
  static double rounding(DType dtype) { return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 5e-2; }

  /// The first position whose logits change; kLength when none does.
  static int64_t first_change(const Array& a, const Array& b, double rounding) {
    for (int64_t t = 0; t < kLength; ++t)
      for (int64_t v = 0; v < kVocabulary; ++v)
        if (const auto i = static_cast<size_t>(t * kVocabulary + v); std::abs(a.values[i] - b.values[i]) > rounding) return t;
    return kLength;
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  /// Every one that a source registers was linked, under a name of its own.
  void registry_is_complete() {
    int registered = 0;
    QDirIterator sources(qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/models/architectures", {"*.cpp"});
    while (sources.hasNext()) {
      QFile source(sources.next());
      QVERIFY(source.open(QFile::ReadOnly));
      registered += static_cast<int>(source.readAll().count("const RegisterArchitecture"));
    }
    std::set<std::string> ids;
    for (const Architecture* a : architectures()) ids.insert(a->id);
    QVERIFY2(registered >= 17, qPrintable(QString::number(registered)));
    QCOMPARE(static_cast<int>(architectures().size()), registered);
    QCOMPARE(static_cast<int>(ids.size()), registered);
  }

  void shapes_data() { add_all(); }
  void shapes() {
    with_row([](const Row& row) {
      const Built built(row, row.dtype(), false);
      const Array y = built.logits(random_tokens(2 * kLength, "tokens"));
      QCOMPARE(y.shape, (Shape{2, kLength, kVocabulary}));
      QVERIFY(std::all_of(y.values.begin(), y.values.end(), [](double v) { return std::isfinite(v); }));
      QVERIFY(built.model->state_values_per_token() >= 0);
      QVERIFY(!architecture_title(built.resolved).empty());
      for (int64_t length : {int64_t{1}, int64_t{2}, kLength - 1})  // shorter sequences work as well
        QCOMPARE(built.logits(std::vector<int32_t>(static_cast<size_t>(length), 1)).shape, (Shape{1, length, kVocabulary}));
    });
  }

  void loss_falls_and_saved_is_loaded_data() { add_all(); }
  void loss_falls_and_saved_is_loaded() {
    with_row([this](const Row& row) {
      const RunConfig config = row.run({{"schedule", "constant"}});
      const auto make = [&] { return std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config)); };
      const auto first = make(), second = make();
      const FrozenBatch batch = frozen(4, kLength, corpus_.vocabulary());
      const double start = first->step().loss;
      double end = start;
      for (int i = 0; i < 14; ++i) end = first->step().loss;
      QVERIFY2(end < start - 0.2, qPrintable(QString("%1 after %2").arg(end).arg(start)));
      QVERIFY(second->evaluate(batch).loss != first->evaluate(batch).loss);
      second->restore(first->state());
      QCOMPARE(second->evaluate(batch).loss, first->evaluate(batch).loss);
      QCOMPARE(second->step().loss, first->step().loss);
    });
  }

  /// A run that stops and goes on has the same bytes as one that does not.
  void stacks_resume_byte_for_byte_data() {
    QTest::addColumn<QString>("settings");
    for (const auto& [name, settings] : random_stacks(kLength)) QTest::newRow(name.c_str()) << QString::fromStdString(settings.dump());
  }
  void stacks_resume_byte_for_byte() {
    QFETCH(QString, settings);
    const RunConfig config = small_run(nlohmann::json::parse(settings.toStdString()));
    const auto make = [&] { return std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config)); };
    const auto first = make(), second = make();
    for (int i = 0; i < 2; ++i) first->step();
    Arena arena(Device::cpu());
    second->restore(copy_of(first->state(), arena));
    for (int i = 0; i < 2; ++i) QCOMPARE(first->step().loss, second->step().loss);
    QVERIFY(bytes_of(first->state()) == bytes_of(second->state()));
  }

  void stacks_report_every_layer_data() { stacks_resume_byte_for_byte_data(); }
  /// Statistics and maps carry the layer they are of; only Based's convolutions have none.
  void stacks_report_every_layer() {
    QFETCH(QString, settings);
    const Built built(Row{nlohmann::json::parse(settings.toStdString()), "cpu", "auto"}, DType::f32, false);
    Tape tape(built.arena, false);
    ProbeRecord record;
    record.maps_wanted = true;
    built.model->hidden(tape, built.tokens(random_tokens(kLength, "tokens")), &record);
    const auto mixers = mixers_by_layer(built.resolved);
    QCOMPARE(layer_titles(built.resolved).size(), mixers.size());
    for (size_t l = 0; l < mixers.size(); ++l) {
      int64_t maps = 0, statistics = 0, heads = 0;
      for (const CapturedMap& map : record.maps)
        if (map.kind == MapKind::weights && map.layer == static_cast<int64_t>(l)) ++maps, heads = map.shape[0];
      for (const HeadStatistic& s : record.statistics)
        if (s.name == "entropy" && s.layer == static_cast<int64_t>(l)) {
          ++statistics;
          QCOMPARE(static_cast<int64_t>(s.heads.size()), heads);
        }
      const bool silent = std::all_of(mixers[l].begin(), mixers[l].end(), [](const std::string& id) { return id == "based"; });
      QVERIFY2(maps == 1 || (silent && maps == 0), qPrintable(QString("layer %1 has %2 maps").arg(l).arg(maps)));
      QCOMPARE(statistics, maps);
    }
  }

  void causality_data() { add_all(); }
  void causality() {
    with_row([](const Row& row) {
      const Built built(row, row.exact(), false);
      built.enliven();
      const Architecture& block = architecture(built.resolved.at("block"));
      const bool looks_ahead = block.looks_ahead && !block.looks_ahead(built.resolved).empty();
      const int64_t split = built.resolved.value("split", kLength);
      const std::vector<int32_t> before = random_tokens(kLength, "tokens");
      const Array expected = built.logits(before);
      int64_t seen = 0, futures = 0;
      for (int64_t t = 0; t + 1 < kLength; ++t) {
        std::vector<int32_t> after = before;
        for (int64_t i = t + 1; i < kLength; ++i)
          after[static_cast<size_t>(i)] = static_cast<int32_t>((after[static_cast<size_t>(i)] + 1 + i) % kVocabulary);
        const int64_t changed = first_change(expected, built.logits(after), rounding(row.exact()));
        QVERIFY2(looks_ahead || changed > t, qPrintable(QString("position %1 sees tokens from %2 on").arg(changed).arg(t + 1)));
        QVERIFY2(!looks_ahead || changed >= (t + 1) / split * split, "it looks ahead into a later split");
        if (changed <= t + 1) ++seen;
        if (changed <= t) ++futures;
      }
      QVERIFY2(seen > kLength / 2, "changed tokens hardly change their own logits: the check checks nothing");
      QVERIFY2(!looks_ahead || futures > 0, "the registry says that it looks ahead, but it does not");
    });
  }

  void gradients_data() { add_all(); }
  /// On the CPU in double against differences; on a GPU against the CPU.
  void gradients() {
    with_row([](const Row& row) {
      const Built built(row, row.exact(), true);
      built.enliven();
      built.differentiate();
      if (row.on_gpu())
        gradients_are_those_of_the_cpu(row, built);
      else
        gradients_are_differences(built);
    });
  }

  void recomputed_gradients_are_the_same_data() { add_all(true); }
  void recomputed_gradients_are_the_same() {
    with_row([](const Row& row) {
      const Built built(row, row.dtype(), true);
      built.enliven();
      built.differentiate();
      std::vector<std::vector<double>> kept;
      for (const Parameter& p : built.model->parameters()) kept.push_back(to_doubles(p.grad));
      built.differentiate(true);
      for (size_t i = 0; i < kept.size(); ++i) {
        const Parameter& p = built.model->parameters()[i];
        QVERIFY2(to_doubles(p.grad) == kept[i], p.name.c_str());
      }
    });
  }

  void plan_is_the_run_data() { add_all(); }
  void plan_is_the_run() {
    with_row([this](const Row& row) { compare_with_plan(row, row.run({{"gradient_accumulation", 2}})); });
  }
  void plan_of_a_recomputing_run_data() { add_all(true); }
  void plan_of_a_recomputing_run() {
    with_row([this](const Row& row) { compare_with_plan(row, row.run({{"activation_checkpointing", true}})); });
  }

 private:
  /// A pass of statistics and a capture, as a run takes them.
  void look_as_planned(const RunConfig& config, const Plan& plan, Trainer& trainer) const {
    const auto look = [&](int64_t sequences, int64_t length, bool maps) {
      const std::vector<int32_t> tokens(static_cast<size_t>(sequences * length), 1);
      ProbeRecord probe;
      probe.statistics_wanted = !maps;
      probe.maps_wanted = maps;
      trainer.probe({"a", tokens, tokens, sequences, length}, probe);
      return probe;
    };
    const int64_t length = config.data.sequence_length, frozen = evaluation_sequences(config.training, length);
    trainer.arena().reset_peak();
    look(sequences_in_a_probe(config.training, frozen, length), length, false);
    const ProbeRecord capture = look(1, config.training.capture_tokens, true);
    QCOMPARE(plan.probe_bytes, trainer.arena().peak_extent());
    int64_t bytes = 0;
    for (const CapturedMap& map : capture.maps) {
      QCOMPARE(map.bytes(), static_cast<int64_t>(map.values.size() * sizeof(float)));
      bytes += map.bytes();
    }
    QCOMPARE(plan.capture_bytes, bytes * static_cast<int64_t>(1 + config.data.ood.size()));
  }

  void compare_with_plan(const Row& row, const RunConfig& config) const {
    const Plan plan = make_plan(config, corpus_.vocabulary());
    Trainer trainer(config, corpus_.vocabulary(), corpus_.source(config));
    for (int i = 0; i < 3; ++i) trainer.step();
    QCOMPARE(plan.parameters, trainer.model().parameter_count());
    QCOMPARE(plan.peak_bytes, trainer.arena().peak_extent());
    look_as_planned(config, plan, trainer);
    if (row.dtype() == DType::f32) QCOMPARE(plan.weight_bytes, 4 * plan.parameters);
    QCOMPARE(plan.optimizer_bytes, 8 * plan.parameters);
    QVERIFY(plan.activation_bytes > 0 && plan.flops_per_step > 6.0 * static_cast<double>(plan.tokens_per_step));

    TrainingStep step(config, corpus_.vocabulary(), parse_device(row.device));
    std::fill(step.tokens().begin(), step.tokens().end(), 1);
    std::fill(step.targets().begin(), step.targets().end(), 2);
    step.begin();
    for (int64_t i = 0; i < config.training.gradient_accumulation; ++i) step.forward_backward();
    step.gradient_norm();
    step.update(1e-3, 1);
    QCOMPARE(plan.flops_per_step, step.tape().cost().flops);
    QCOMPARE(plan.bytes_per_step, step.tape().cost().bytes);
  }

  /// Central differences of some elements of every parameter, in double. The straight-through gradient of Top-1 Element is
  /// no derivative: there only what comes after the last layer with it is compared, and of that layer what comes after the selection.
  static void gradients_are_differences(const Built& built) {
    const Tensor x = built.tokens(random_tokens(2 * kLength, "tokens")), y = built.tokens(random_tokens(2 * kLength, "targets"));
    const auto loss = [&] {
      Tape plain(built.arena, false);
      return *built.model->loss(plain, x, y).data<double>();
    };
    const double largest = largest_gradient(built);
    QVERIFY(largest > 0);
    const int64_t straight_through = last_layer_with(built.resolved, "top1_element");
    for (const Parameter& p : built.model->parameters()) {
      if (straight_through >= 0 && !after_last_selection(p.name, straight_through)) continue;
      const std::vector<double> grads = to_array(p.grad).values;
      double scale = 1e-3 * largest;
      for (double g : grads) scale = std::max(scale, std::abs(g));
      const Random pick(11, p.name);
      for (uint64_t n = 0; n < 3; ++n) {
        const auto i = static_cast<size_t>(pick.below(static_cast<uint64_t>(p.value.size()), n));
        double& element = p.value.data<double>()[i];
        const double kept = element, h = 1e-6;
        element = kept + h;
        const double up = loss();
        element = kept - h;
        const double down = loss();
        element = kept;
        const double difference = (up - down) / (2 * h);
        QVERIFY2(std::abs(difference - grads[i]) <= 1e-5 * scale, qPrintable(QString("%1[%2]: gradient %3, difference %4")
                                                                                 .arg(p.name.c_str())
                                                                                 .arg(i)
                                                                                 .arg(grads[i], 0, 'g', 12)
                                                                                 .arg(difference, 0, 'g', 12)));
      }
    }
  }

  /// In f32 every element; in bf16 all of them together. Where a query reads from one place alone, one that another place is
  /// chosen for by rounding moves them far.
  static void gradients_are_those_of_the_cpu(const Row& row, const Built& built) {
    const Built truth(Row{row.settings, "cpu", "auto"}, DType::f64, true);
    truth.enliven();
    truth.differentiate();
    const double largest = largest_gradient(truth);
    QVERIFY(largest > 0);
    double squares = 0, squared_error = 0;
    for (size_t i = 0; i < truth.model->parameters().size(); ++i) {
      const Parameter &ours = built.model->parameters()[i], &theirs = truth.model->parameters()[i];
      const std::vector<double> got = to_doubles(ours.grad), expected = to_doubles(theirs.grad);
      double scale = 2e-2 * largest, worst = 0;  // a bias of keys has no gradient but rounding
      for (size_t j = 0; j < got.size(); ++j) {
        const double error = got[j] - expected[j];
        QVERIFY2(std::isfinite(error), ours.name.c_str());
        scale = std::max(scale, std::abs(expected[j]));
        worst = std::max(worst, std::abs(error));
        squares += expected[j] * expected[j];
        squared_error += error * error;
      }
      QVERIFY2(row.dtype() == DType::bf16 || worst <= 2e-5 * scale,
               qPrintable(QString("gradient of %1 is off by %2 of its largest element").arg(ours.name.c_str()).arg(worst / scale)));
    }
    const double error = std::sqrt(squared_error / squares);
    const bool selects = last_layer_with(built.resolved, "top1") >= 0;
    QVERIFY2(error <= (selects ? 0.5 : 0.1), qPrintable(QString("the gradient is off by %1 of its length").arg(error)));
    if (qEnvironmentVariableIsSet("SACCADE_TEST_VERBOSE")) qInfo("gradient off by %.2e of its length", error);
  }

  static double largest_gradient(const Built& built) {
    double largest = 0;
    for (const Parameter& p : built.model->parameters())
      for (double g : to_doubles(p.grad)) largest = std::max(largest, std::abs(g));
    return largest;
  }

  static bool after_last_selection(const std::string& name, int64_t layer) {
    if (name == "final_norm" || name == "final_norm_bias" || name == "output") return true;
    if (name.rfind("layer", 0) != 0) return false;
    const int64_t own = std::stoll(name.substr(5));
    const std::string part = name.substr(name.find('.') + 1);
    if (own != layer) return own > layer;
    for (const char* after : {"value", "output", "mlp", "gate", "up", "down", "channel"})
      if (part.rfind(after, 0) == 0) return true;
    return false;
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ArchitecturesTest)
#include "architectures_test.moc"
