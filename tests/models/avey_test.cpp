#include <QtTest>
#include <cmath>

#include "models/architectures/registry.h"
#include "tests/support/compare.h"
#include "tests/support/message.h"

namespace saccade::test {

using nlohmann::json;

namespace {

constexpr int64_t kVocabulary = 31;

json avey(json changes = json::object()) {
  json config{{"block", "avey"}, {"width", 12}, {"layers", 2}, {"split", 4}, {"top_k", 2}};
  config.update(changes);
  return config;
}

Array random_tokens(int64_t B, int64_t T, uint64_t seed) {
  Array tokens = random_array({B, T}, seed);
  tokens.integer = true;
  for (double& t : tokens.values) t = static_cast<double>(static_cast<int64_t>(std::abs(t) * 1e6) % kVocabulary);
  return tokens;
}

struct Built {
  Arena arena;
  std::unique_ptr<Model> model;
  Built(const json& config, int64_t sequence_length, Device device = Device::cpu(), bool training = true, DType dtype = DType::f64)
      : arena(device),
        model(make_model(resolve_architecture(config, sequence_length), kVocabulary, sequence_length, arena, dtype, 5, training)) {}
};

Array logits(const Built& built, const Array& tokens) {
  Arena arena(Device::cpu());
  Tape tape(arena, false);
  return to_array(built.model->logits(tape, to_tensor(tokens, DType::f64, arena)));
}

/// First position whose logits differ when everything from token `changed` on is replaced; T when none.
int64_t first_difference(const Built& built, const Array& tokens, int64_t changed) {
  const int64_t T = tokens.shape[1];
  Array other = tokens;
  for (int64_t t = changed; t < T; ++t)
    other.values[static_cast<size_t>(t)] =
        static_cast<double>((static_cast<int64_t>(tokens.values[static_cast<size_t>(t)]) + 7) % kVocabulary);
  const Array a = logits(built, tokens), b = logits(built, other);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t v = 0; v < kVocabulary; ++v)
      if (std::abs(a.values[static_cast<size_t>(t * kVocabulary + v)] - b.values[static_cast<size_t>(t * kVocabulary + v)]) > 1e-12)
        return t;
  return T;
}

int64_t count(const json& config, int64_t vocabulary, int64_t sequence_length) {
  Arena arena(Device::plan());
  return make_model(resolve_architecture(config, sequence_length), vocabulary, sequence_length, arena, DType::f32, 1, false)
      ->parameter_count();
}

struct Step {
  int64_t peak = 0;
  Cost cost;
};

/// One loss and its gradients.
Step step(const json& config, Device device, int64_t B, int64_t T) {
  Built built(config, 64, device, true, DType::f32);
  built.arena.reset_peak();
  const Tensor tokens =
      device.is_plan() ? built.arena.allocate({B, T}, DType::i32) : to_tensor(random_tokens(B, T, 3), DType::f32, built.arena);
  Tape tape(built.arena, true);
  built.model->bind_gradients(tape);
  tape.backward(built.model->loss(tape, tokens, tokens));
  return {built.arena.peak_extent(), tape.cost()};
}

const std::vector<std::pair<const char*, json>>& variants() {
  static const std::vector<std::pair<const char*, json>> list{
      {"published", json::object()},
      {"causal ranker", {{"ranker_query", "causal"}}},
      {"first", {{"weight_reference", "first"}}},
      {"no weighting", {{"weighting", false}}},
      {"no ranker", {{"ranker", false}}},
      {"masked", {{"mask_padding", true}}},
      {"no bypass", {{"bypass", false}}},
      {"static", {{"dynamic", false}}},
      {"expansion 1", {{"expansion", 1}}},
      {"small tail", {{"tail", 0.1}}},
      {"layer norm", {{"norm", "layer"}}},
      {"gelu, silu", {{"enricher_activation", "gelu"}, {"contextualizer_activation", "silu"}}},
      {"attention", {{"processor", "attention"}}},
      {"attention, rotary, masked", {{"processor", "attention"}, {"position", "rotary"}, {"mask_padding", true}, {"heads", 3}}},
      {"attention, alibi, no ranker", {{"processor", "attention"}, {"position", "alibi"}, {"ranker", false}}},
      {"one layer", {{"layers", 1}}},
  };
  return list;
}

void add_variants() {
  QTest::addColumn<int>("index");
  for (size_t i = 0; i < variants().size(); ++i) QTest::newRow(variants()[i].first) << static_cast<int>(i);
}

json variant(int index) { return variants()[static_cast<size_t>(index)].second; }

}  // namespace

class AveyTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// arXiv:2506.11305, appendix A, small: 152.92 M. The other two sizes of the paper fix width and depth too.
  void parameter_count_of_the_papers_presets() {
    const json small{{"block", "avey"}, {"width", 768}, {"layers", 26}, {"split", 64}, {"top_k", 7}};
    QCOMPARE(count(small, 50304, 512), 152'917'760);
    json medium = small, large = small;
    medium["layers"] = 104, large["layers"] = 48, large["width"] = 2048;
    QCOMPARE(count(medium, 50304, 512) / 1'000'000, 495);
    QCOMPARE(count(large, 50304, 512) / 10'000'000, 152);
  }

  void gradients_data() { add_variants(); }
  /// The whole model against finite differences along a random direction of all parameters.
  void gradients() {
    QFETCH(int, index);
    Built built(avey(variant(index)), 24);
    const Array tokens = random_tokens(2, 18, 1), targets = random_tokens(2, 18, 2);
    const auto loss = [&] {
      Arena arena(Device::cpu());
      Tape tape(arena, false);
      return to_array(built.model->loss(tape, to_tensor(tokens, DType::f64, arena), to_tensor(targets, DType::f64, arena))).values[0];
    };
    const auto move = [&](double by) {
      uint64_t seed = 100;
      for (const Parameter& p : built.model->parameters()) {
        const Array direction = random_array(p.value.shape(), seed++);
        for (size_t i = 0; i < direction.values.size(); ++i) p.value.data<double>()[i] += by * direction.values[i];
      }
    };
    move(0.1);  // away from zero biases, where the norm of the zero padding has a scale of 1e-5
    double slope = 0;
    {
      Arena::set_poison(true);
      Arena arena(Device::cpu());
      Tape tape(arena, true);
      built.model->bind_gradients(tape);
      tape.backward(built.model->loss(tape, to_tensor(tokens, DType::f64, arena), to_tensor(targets, DType::f64, arena)));
      Arena::set_poison(false);
    }
    uint64_t seed = 100;
    for (const Parameter& p : built.model->parameters()) {
      const Array direction = random_array(p.value.shape(), seed++), grad = to_array(p.grad);
      for (size_t i = 0; i < direction.values.size(); ++i) slope += direction.values[i] * grad.values[i];
    }
    constexpr double h = 1e-6;
    move(h);
    const double up = loss();
    move(-2 * h);
    const double down = loss();
    QVERIFY2(std::abs(slope - (up - down) / (2 * h)) < 1e-5 * (1 + std::abs(slope)),
             qPrintable(QString("%1 and %2").arg(slope).arg((up - down) / (2 * h))));
  }

  void causality_data() { add_variants(); }
  void causality() {
    QFETCH(int, index);
    const json resolved = resolve_architecture(avey(variant(index)), 24);
    const bool sees_ahead = !architecture("avey").looks_ahead(resolved).empty();
    Built built(resolved, 24);
    int64_t split = resolved.at("split"), seen = 0;
    for (uint64_t seed = 1; seed <= 6; ++seed)
      for (int64_t changed = 1; changed < 22; ++changed) {
        const int64_t first = first_difference(built, random_tokens(1, 22, seed), changed);
        QVERIFY(first <= changed);  // the changed token itself is read
        if (!sees_ahead) QCOMPARE(first, changed);
        QVERIFY(first >= changed / split * split);  // never before the token's own split
        seen += first < changed;
      }
    QCOMPARE(seen > 0, sees_ahead);
  }

  void plan_data() { add_variants(); }
  void plan() {
    QFETCH(int, index);
    for (int64_t T : {1, 3, 22, 64}) {
      const Step real = step(avey(variant(index)), Device::cpu(), 2, T), planned = step(avey(variant(index)), Device::plan(), 2, T);
      QCOMPARE(planned.peak, real.peak);
      QCOMPARE(planned.cost.flops, real.cost.flops);
      QVERIFY(planned.cost.flops > 0);
    }
  }

  void probes_data() { add_variants(); }
  void probes() {
    QFETCH(int, index);
    const json resolved = resolve_architecture(avey(variant(index)), 24);
    Built built(resolved, 24, Device::cpu(), false);
    Arena arena(Device::cpu());
    Tape tape(arena, false);
    ProbeRecord record;
    record.maps_wanted = true;
    const int64_t T = 22, N = 6, H = resolved.at("processor") == "attention" ? resolved.at("heads").get<int64_t>() : 1;
    built.model->hidden(tape, to_tensor(random_tokens(2, T, 4), DType::f64, arena), &record);
    int64_t layers = 0, rows_that_read = 0;
    for (const CapturedMap& map : record.maps) {
      if (map.kind == MapKind::maxsim) QCOMPARE(map.shape, (std::vector<int64_t>{N, N}));
      if (map.kind == MapKind::chosen || map.kind == MapKind::split_weights) QCOMPARE(map.shape, (std::vector<int64_t>{N, 2}));
      if (map.kind != MapKind::weights) continue;
      QCOMPARE(map.layer, layers++);
      QCOMPARE(map.shape, (std::vector<int64_t>{H, T, T}));
      for (int64_t row = 0; row < H * T; ++row) {
        double sum = 0;
        for (int64_t j = 0; j < T; ++j) {
          const float w = map.values[static_cast<size_t>(row * T + j)];
          QVERIFY(j <= row % T ? w >= 0 : w == 0);
          sum += static_cast<double>(w);
        }
        QVERIFY(std::abs(sum - 1) < 1e-5 || sum == 0);  // nothing is read where relu leaves nothing of Z_r
        rows_that_read += sum > 0;
      }
    }
    QCOMPARE(layers, resolved.at("layers").get<int64_t>());
    QVERIFY(rows_that_read > layers * H * T / 2);
    QCOMPARE(record.maps.size(), static_cast<size_t>(layers) + (resolved.at("ranker").get<bool>() ? 3 : 0));
    int entropies = 0, margins = 0;
    for (const HeadStatistic& s : record.statistics) {
      entropies += s.name == "entropy" && s.heads.size() == static_cast<size_t>(H) && s.heads[0] > 0;
      margins += s.name == "margin" && s.layer == -1 && s.heads[0] >= 0;
    }
    QCOMPARE(entropies, static_cast<int>(layers));
    QCOMPARE(margins, resolved.at("ranker").get<bool>() ? 1 : 0);
  }

  void impossible_data() {
    QTest::addColumn<QString>("changes");
    QTest::addColumn<QString>("message");
    QTest::newRow("split") << R"({"split": 65})"
                           << "/architecture/split is 65; expected at most the sequence length, 64";
    QTest::newRow("tail") << R"({"tail": 0.0})"
                          << "/architecture/tail is 0.0, which leaves nothing to contextualize of 48 features";
    QTest::newRow("position") << R"({"position": "alibi"})"
                              << "/architecture/position is \"alibi\"; the contextualizer knows";
    QTest::newRow("heads") << R"({"processor": "attention", "heads": 6, "tail": 0.4})"
                           << "/architecture/heads is 6, which does not divide the 10 features";
    QTest::newRow("dynamic") << R"({"processor": "attention", "dynamic": false})"
                             << "/architecture/dynamic is false";
    QTest::newRow("absolute") << R"({"processor": "attention", "position": "absolute"})"
                              << "/architecture/position is \"absolute\"";
    QTest::newRow("odd heads") << R"({"processor": "attention", "position": "rotary", "tail": 1.0, "expansion": 1, "heads": 2})"
                               << "/architecture/position is \"rotary\", which needs heads of even width; they are 3 wide";
    QTest::newRow("range") << R"({"top_k": 0})"
                           << "/architecture/top_k";
    QTest::newRow("word") << R"({"ranker_query": "past"})"
                          << "/architecture/ranker_query";
  }
  void impossible() {
    QFETCH(QString, changes);
    QFETCH(QString, message);
    const QString said = message_of<UsageError>([&] { resolve_architecture(avey(json::parse(changes.toStdString())), 64); });
    QVERIFY2(said.startsWith(message), qPrintable(said));
  }

  void longer_than_the_context_without_a_ranker() {
    Built built(avey({{"ranker", false}}), 8);
    QVERIFY_THROWS_EXCEPTION(UsageError, logits(built, random_tokens(1, 9, 1)));
    QCOMPARE(logits(built, random_tokens(1, 8, 1)).shape[1], 8);
  }

  void titles() {
    QCOMPARE(architecture_title(resolve_architecture(avey(), 64)), std::string("Avey"));
    QCOMPARE(architecture_title(resolve_architecture(avey({{"ranker_query", "causal"}, {"bypass", false}}), 64)),
             std::string("Avey causal ranker without bypass"));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::AveyTest)
#include "avey_test.moc"
