#include <QtTest>
#include <cmath>

#include "kernels/random.h"
#include "models/plan.h"
#include "models/training/training_step.h"
#include "tests/models/model_fixture.h"
#include "tests/support/compare.h"

namespace saccade::test {

constexpr int64_t kLength = 24, kVocabulary = 29;

/// Asks the same of everything in the registry: every host with every mixer and every whole architecture, plain and with
/// each choice of each setting.
class ArchitecturesTest : public QObject {
  Q_OBJECT

  LinesCorpus corpus_;

  /// Sizes that fit kLength; only those that the architecture has are used.
  static nlohmann::json small_sizes() {
    return {{"width", 16}, {"layers", 2}, {"heads", 2}, {"mlp_width", 24}, {"chunk", 5}, {"split", 4}, {"top_k", 2}, {"state", 6}};
  }
  /// Values beside the default of settings that are no choice.
  static std::vector<nlohmann::json> other_values(const Setting& s) {
    std::vector<nlohmann::json> values;
    if (s.kind == Setting::Kind::boolean) values.push_back(!s.default_value.get<bool>());
    for (const std::string& choice : s.choices) values.push_back(choice);
    if (s.name == "window") values.push_back(7);
    if (s.name == "temperature") values.push_back(0.25);
    if (s.name == "top_k") values.push_back(1);
    return values;
  }

  static bool accepted(const nlohmann::json& settings) {
    try {
      resolve_architecture(settings, kLength);
      return true;
    } catch (const UsageError&) {
      return false;
    }
  }
  /// A value may need another choice beside it (Avey's positions need its processor "attention"): the first one that helps.
  /// What is refused beside all of them is returned as it is.
  static nlohmann::json completed(const nlohmann::json& varied, const std::vector<Setting>& settings) {
    if (accepted(varied)) return varied;
    for (const Setting& s : settings)
      for (const nlohmann::json& value : other_values(s)) {
        nlohmann::json both = varied;
        if (s.name == "host" || s.name == "mixer" || both.contains(s.name)) continue;
        both[s.name] = value;
        if (accepted(both)) return both;
      }
    return varied;
  }

  static void add_row(const std::string& name, const nlohmann::json& settings) {
    QTest::newRow(name.c_str()) << QString::fromStdString(settings.dump());
  }
  static void add_rows(const std::string& host, const std::string& mixer) {
    const std::vector<Setting> settings = settings_of(host, mixer);
    nlohmann::json base = {{"host", host}};
    if (!mixer.empty()) base["mixer"] = mixer;
    const nlohmann::json sizes = small_sizes();
    for (const Setting& s : settings)
      if (sizes.contains(s.name)) base[s.name] = sizes.at(s.name);
    const std::string name = host + (mixer.empty() ? "" : " " + mixer);
    add_row(name, base);
    for (const Setting& s : settings) {
      if (s.name == "host" || s.name == "mixer") continue;
      for (const nlohmann::json& value : other_values(s)) {
        if (value == s.default_value) continue;
        nlohmann::json varied = base;
        varied[s.name] = value;
        varied = completed(varied, settings);
        if (accepted(varied)) add_row(name + " " + s.name + "=" + value.dump(), varied);
      }
    }
  }

  static void add_all() {
    QTest::addColumn<QString>("settings");
    for (const Architecture* host : architectures()) {
      if (host->kind == Architecture::Kind::whole) add_rows(host->id, "");
      if (host->kind != Architecture::Kind::host) continue;
      for (const Architecture* mixer : architectures())
        if (mixer->kind == Architecture::Kind::mixer) add_rows(host->id, mixer->id);
    }
  }

  static nlohmann::json fetched() {
    QFETCH(QString, settings);
    return nlohmann::json::parse(settings.toStdString());
  }

  struct Built {
    nlohmann::json resolved;
    Arena arena{Device::cpu()};
    std::unique_ptr<Model> model;
    explicit Built(const nlohmann::json& settings, DType dtype, bool training)
        : resolved(resolve_architecture(settings, kLength)), model(make_model(resolved, kVocabulary, kLength, arena, dtype, 3, training)) {}
  };

  static Tensor tokens(Arena& arena, const std::vector<int32_t>& values) {
    const Tensor x = arena.allocate({static_cast<int64_t>(values.size()) / kLength, kLength}, DType::i32);
    std::copy(values.begin(), values.end(), x.data<int32_t>());
    return x;
  }
  static std::vector<int32_t> random_tokens(int64_t count, const char* stream) {
    const Random random(5, stream);
    std::vector<int32_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(random.below(kVocabulary, static_cast<uint64_t>(i))));
    return values;
  }
  static Array logits(const Built& built, Arena& arena, const std::vector<int32_t>& values) {
    Tape tape(arena, false);
    return to_array(built.model->logits(tape, tokens(arena, values)));
  }

  /// Enlarges every weight so that what a test looks for is not lost in the small numbers of the initial state.
  static void enliven(const Model& model) {
    for (const Parameter& p : model.parameters()) {
      const Random random(9, p.name);
      for (int64_t i = 0; i < p.value.size(); ++i)
        p.value.data<double>()[i] += (p.decay ? 0.25 : 0.1) * random.normal(static_cast<uint64_t>(i));
    }
  }

  /// The first position whose logits change when the tokens from `from` on change; kLength when none does.
  static int64_t first_change(const Array& a, const Array& b) {
    for (int64_t t = 0; t < kLength; ++t)
      for (int64_t v = 0; v < kVocabulary; ++v)
        if (const auto i = static_cast<size_t>(t * kVocabulary + v); std::abs(a.values[i] - b.values[i]) > 1e-12) return t;
    return kLength;
  }

 private Q_SLOTS:
  void init() { Arena::set_poison(true); }
  void cleanup() { Arena::set_poison(false); }

  void registry_is_complete() {
    std::vector<std::string> ids;
    for (const Architecture* a : architectures()) ids.push_back(a->id);
    for (const char* id : {"gpt", "llama", "mamba", "rwkv", "attention", "top1_element", "top1_chunk", "mamba1", "mamba2", "deltanet",
                           "gated_deltanet", "based", "rwkv5", "rwkv6", "rwkv7"})
      QVERIFY2(std::find(ids.begin(), ids.end(), id) != ids.end(), id);
  }

  void shapes_data() { add_all(); }
  void shapes() {
    const Built built(fetched(), DType::f32, false);
    Arena arena(Device::cpu());
    const Array y = logits(built, arena, random_tokens(2 * kLength, "tokens"));
    QCOMPARE(y.shape, (Shape{2, kLength, kVocabulary}));
    QVERIFY(std::all_of(y.values.begin(), y.values.end(), [](double v) { return std::isfinite(v); }));
    QVERIFY(built.model->state_values_per_token() >= 0);
    QVERIFY(!architecture_title(built.resolved).empty());
    Tape tape(arena, false);
    for (int64_t length : {int64_t{1}, int64_t{2}, kLength - 1}) {  // shorter sequences work as well
      const Tensor x = arena.allocate({1, length}, DType::i32);
      std::fill(x.data<int32_t>(), x.data<int32_t>() + length, 1);
      QCOMPARE(built.model->logits(tape, x).shape(), (Shape{1, length, kVocabulary}));
    }
  }

  void loss_falls_and_saved_is_loaded_data() { add_all(); }
  void loss_falls_and_saved_is_loaded() {
    const RunConfig config = small_run(fetched(), {{"schedule", "constant"}});
    const auto make = [&] { return std::make_unique<Trainer>(config, corpus_.vocabulary(), corpus_.source(config)); };
    const auto first = make(), second = make();
    const Trainer::Frozen batch = frozen(4, kLength, corpus_.vocabulary());
    const double start = first->step().loss;
    double end = start;
    for (int i = 0; i < 14; ++i) end = first->step().loss;
    QVERIFY2(end < start - 0.2, qPrintable(QString("%1 after %2").arg(end).arg(start)));
    QVERIFY(second->evaluate(batch).loss != first->evaluate(batch).loss);
    second->restore(first->state());
    QCOMPARE(second->evaluate(batch).loss, first->evaluate(batch).loss);
    QCOMPARE(second->step().loss, first->step().loss);
  }

  void causality_data() { add_all(); }
  void causality() {
    const nlohmann::json settings = fetched();
    const Built built(settings, DType::f64, false);
    enliven(*built.model);
    const Architecture& host = architecture(built.resolved.at("host"));
    const bool looks_ahead = host.looks_ahead && !host.looks_ahead(built.resolved).empty();
    const int64_t split = built.resolved.value("split", kLength);
    Arena arena(Device::cpu());
    const std::vector<int32_t> before = random_tokens(kLength, "tokens");
    const Array expected = logits(built, arena, before);
    int64_t seen = 0, futures = 0;
    for (int64_t t = 0; t + 1 < kLength; ++t) {
      std::vector<int32_t> after = before;
      for (int64_t i = t + 1; i < kLength; ++i)
        after[static_cast<size_t>(i)] = static_cast<int32_t>((after[static_cast<size_t>(i)] + 1 + i) % kVocabulary);
      const int64_t changed = first_change(expected, logits(built, arena, after));
      QVERIFY2(looks_ahead || changed > t, qPrintable(QString("position %1 sees tokens from %2 on").arg(changed).arg(t + 1)));
      QVERIFY2(!looks_ahead || changed >= (t + 1) / split * split, "it looks ahead into a later split");
      if (changed <= t + 1) ++seen;
      if (changed <= t) ++futures;
    }
    QVERIFY2(seen > kLength / 2, "changed tokens hardly change their own logits: the check checks nothing");
    QVERIFY2(!looks_ahead || futures > 0, "the registry says that it looks ahead, but it does not");
  }

  void gradients_data() { add_all(); }
  /// Central differences of some elements of every parameter, in double. The straight-through gradient of Top-1 Element is
  /// no derivative: there only what comes after the last selection is compared.
  void gradients() {
    const nlohmann::json settings = fetched();
    const Built built(settings, DType::f64, true);
    enliven(*built.model);
    Arena arena(Device::cpu());
    const Tensor x = tokens(arena, random_tokens(2 * kLength, "tokens")), y = tokens(arena, random_tokens(2 * kLength, "targets"));
    Tape tape(arena, true);
    built.model->bind_gradients(tape);
    tape.backward(built.model->loss(tape, x, y));
    const auto loss = [&] {
      Tape plain(arena, false);
      return *built.model->loss(plain, x, y).data<double>();
    };
    double largest = 0;
    for (const Parameter& p : built.model->parameters())
      for (double g : to_array(p.grad).values) largest = std::max(largest, std::abs(g));
    QVERIFY(largest > 0);
    const bool straight_through = built.resolved.value("mixer", "") == "top1_element";
    for (const Parameter& p : built.model->parameters()) {
      if (straight_through && !after_last_selection(p.name)) continue;
      const std::vector<double> grads = to_array(p.grad).values;
      double scale = 1e-3 * largest;
      for (double g : grads) scale = std::max(scale, std::abs(g));
      const Random pick(11, p.name);
      for (uint64_t n = 0; n < 3; ++n) {
        const auto i = static_cast<size_t>(pick.below(static_cast<uint64_t>(p.value.size()), n));
        double& element = p.value.data<double>()[i];
        const double kept = element, h = 1e-5;
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

  void plan_is_the_run_data() { add_all(); }
  void plan_is_the_run() {
    const RunConfig config = small_run(fetched(), {{"accumulate", 2}});
    const Plan plan = make_plan(config, corpus_.vocabulary());
    Trainer trainer(config, corpus_.vocabulary(), corpus_.source(config));
    trainer.step();
    trainer.step();
    QCOMPARE(plan.parameters, trainer.model().parameter_count());
    QCOMPARE(plan.peak_bytes, trainer.arena().peak_extent());
    QCOMPARE(plan.weight_bytes, 4 * plan.parameters);
    QCOMPARE(plan.optimizer_bytes, 8 * plan.parameters);
    QVERIFY(plan.activation_bytes > 0 && plan.flops_per_step > 6.0 * static_cast<double>(plan.tokens_per_step));

    TrainingStep step(config, corpus_.vocabulary(), Device::cpu());
    std::fill(step.tokens().begin(), step.tokens().end(), 1);
    std::fill(step.targets().begin(), step.targets().end(), 2);
    step.begin();
    for (int i = 0; i < 2; ++i) step.forward_backward();
    step.gradient_norm();
    step.update(1e-3, 1);
    QCOMPARE(plan.flops_per_step, step.tape().cost().flops);
    QCOMPARE(plan.bytes_per_step, step.tape().cost().bytes);
  }

 private:
  static bool after_last_selection(const std::string& name) {
    for (const char* part : {"layer1.value", "layer1.output", "layer1.mlp", "layer1.gate", "layer1.up", "layer1.down", "layer1.channel",
                             "final_norm", "output"})
      if (name.rfind(part, 0) == 0) return true;
    return false;
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ArchitecturesTest)
#include "architectures_test.moc"
