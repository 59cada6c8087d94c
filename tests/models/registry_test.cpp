#include <QtTest>
#include <algorithm>
#include <cmath>
#include <set>

#include "models/architectures/registry.h"
#include "models/orthogonal.h"
#include "models/training/plan.h"
#include "tests/support/message.h"

namespace saccade::test {

class RegistryTest : public QObject {
  Q_OBJECT

  static int64_t parameters(const nlohmann::json& architecture, int64_t vocabulary, int64_t length) {
    Arena arena(Device::plan());
    return make_model(resolve_architecture(architecture, length), vocabulary, length, arena, DType::f32, 1, false)->parameter_count();
  }

 private Q_SLOTS:
  void titles_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("title");
    const auto row = [](const char* settings, const char* title) { QTest::newRow(title) << settings << title; };
    row(R"({})", "Transformer++");
    row(R"({"block": "gpt"})", "GPT");
    row(R"({"window": 64})", "Transformer++ window 64");
    row(R"({"relation": "constant-both", "position": "none"})", "Transformer++ constant-both position none");
    row(R"({"qk_norm": "l2", "temperature": 0.25, "activation": "silu"})", "Transformer++ qk-norm l2 temperature 0.25 SwiGLU");
    row(R"({"mixer": "top1_element"})", "Top-1 Element");
    row(R"({"mixer": "top1_chunk"})", "Top-1 Chunk exact");
    row(R"({"mixer": "top1_chunk", "selection": "approx", "top_k": 2, "share_selection": true})", "Top-1 Chunk approx top 2 shared");
    row(R"({"block": "mamba", "mixer": "mamba1"})", "Mamba");
    row(R"({"block": "mamba", "mixer": "mamba1", "decay": "one", "convolution": false})", "Mamba decay one without convolution");
    row(R"({"block": "mamba", "mixer": "mamba2", "norm": false, "tied": false})", "Mamba-2 without norm own output matrix");
    row(R"({"block": "llama", "mixer": "mamba2"})", "Mamba-2 in Transformer++");
    row(R"({"mixer": "mamba2"})", "Mamba-2");
    row(R"({"mixer": "deltanet"})", "DeltaNet");
    row(R"({"mixer": "gated_deltanet", "tied": false})", "Gated DeltaNet own output matrix");
    row(R"({"block": "mamba", "mixer": "based"})", "Based in Mamba block");
    row(R"({"block": "mamba"})", "Attention in Mamba block");
    row(R"({"mixer": "rwkv7"})", "RWKV-7");
    row(R"({"mixer": "deltanet", "activation": "gelu"})", "DeltaNet GeGLU");
    row(R"({"block": "rwkv", "mixer": "rwkv6"})", "RWKV-6");
    row(R"({"block": "rwkv", "mixer": "rwkv6", "channel_mix": "7"})", "RWKV-6 channel mix 7");
    row(R"({"mixer": "rwkv5", "channel_mix": "7"})", "RWKV-5 channel mix 7");
    row(R"({"block": "llama", "mixer": "rwkv6"})", "RWKV-6 in Transformer++");
    row(R"({"block": "rwkv", "mixer": "attention", "window": 64})", "Attention window 64 in RWKV block");
    row(R"({"block": "rwkv", "mixer": "top1_chunk", "selection": "approx"})", "Top-1 Chunk approx in RWKV block");
    row(R"({"block": "rwkv", "mixer": "top1_element", "mixer_inputs": "full"})", "Top-1 Element full time mix in RWKV block");
    row(R"({"block": "rwkv", "mixer": "attention", "mixer_inputs": "shifted"})", "Attention token shift in RWKV block");
    row(R"({"block": "gpt", "mixer": "top1_chunk", "biases": false})", "Top-1 Chunk exact without biases in GPT");
  }
  void titles() {
    QFETCH(QString, settings);
    QFETCH(QString, title);
    QCOMPARE(QString::fromStdString(architecture_title(resolve_architecture(nlohmann::json::parse(settings.toStdString()), 512))), title);
  }

  /// The papers' small models (arXiv:2505.18522, appendix A): V 32 000, sequences of 2 048.
  void parameters_of_the_papers() {
    const nlohmann::json small = {{"width", 768}, {"layers", 12}, {"heads", 12}};
    nlohmann::json transformer_pp = small, gpt = small;
    gpt["block"] = "gpt";
    QCOMPARE(parameters(transformer_pp, 32000, 2048), 109529856);  // 109.5 M
    QCOMPARE((parameters(transformer_pp, 32000, 2048) + 50000) / 100000, 1095);
    QCOMPARE(parameters(gpt, 32000, 2048), 111204864);  // ≈ 111 M
    transformer_pp["mixer"] = "top1_chunk";
    QCOMPARE(parameters(transformer_pp, 32000, 2048), 109529856 + 12 * 2 * 64);  // and the gains of qk-norm
  }

  /// Mamba, DeltaNet and Based as in arXiv:2505.18522, appendix A, with the ablations of its section 3.1.1, and smaller ones; sequences of
  /// 2 048.
  void parameters_of_the_recurrences_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int64_t>("vocabulary");
    QTest::addColumn<int64_t>("expected");
    const auto row = [](const char* settings, int64_t vocabulary, int64_t expected) {
      QTest::newRow(settings) << settings << vocabulary << expected;
    };
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 768, "layers": 24})", 32000, 115096320);
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 768, "layers": 24, "tied": false})", 32000, 139672320);
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 768, "layers": 24, "decay": "one"})", 32000, 89930928 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 768, "layers": 24, "decay": "none"})", 32000, 89929728 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 768, "layers": 24, "decay": "none", "convolution": false})", 32000,
        89745408 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 2048, "layers": 48})", 32000, 1334740992);
    row(R"({"block": "mamba", "mixer": "mamba1", "width": 128, "layers": 12})", 4096, 1923712);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24})", 32000, 114944448);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24, "tied": false})", 32000, 139520448);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24, "decay": "one"})", 32000, 90385584 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24, "decay": "none"})", 32000, 90367104 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24, "decay": "none", "convolution": false})", 32000,
        90152064 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 768, "layers": 24, "heads": 24, "norm": false})", 32000, 90330816 + 24576768);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 2048, "layers": 48, "heads": 64})", 32000, 1306303488);
    row(R"({"block": "mamba", "mixer": "mamba2", "width": 128, "layers": 12, "heads": 8, "state": 64})", 4096, 1940896);
    row(R"({"mixer": "deltanet", "width": 768, "layers": 12, "heads": 8})", 32000, 109715328);
    row(R"({"mixer": "deltanet", "width": 768, "layers": 12, "heads": 8, "tied": false})", 32000, 134291328);
    row(R"({"mixer": "deltanet", "width": 128, "layers": 6, "heads": 4})", 4096, 1816384);
    row(R"({"mixer": "gated_deltanet", "width": 768, "layers": 12, "heads": 6})", 32000, 123909264);
    row(R"({"mixer": "gated_deltanet", "width": 768, "layers": 12, "heads": 6, "tied": false})", 32000, 148485264);
    row(R"({"mixer": "gated_deltanet", "width": 128, "layers": 6, "heads": 3})", 4096, 2014756);
    row(R"({"mixer": "based", "width": 768, "layers": 15, "heads": 12, "mlp_width": 1536})", 32000, 121112064);
    row(R"({"mixer": "based", "width": 768, "layers": 15, "heads": 12, "mlp_width": 1536, "tied": false})", 32000, 145688064);
    row(R"({"mixer": "based", "width": 128, "layers": 10, "heads": 4, "mlp_width": 256, "window": 33})", 4096, 2337664);
  }
  void parameters_of_the_recurrences() {
    QFETCH(QString, settings);
    QFETCH(int64_t, vocabulary);
    QFETCH(int64_t, expected);
    QCOMPARE(parameters(nlohmann::json::parse(settings.toStdString()), vocabulary, 2048), expected);
  }

  /// Initial values of the recurrences: decays and step sizes in their ranges.
  void initial_decays_and_steps() {
    Arena arena(Device::cpu());
    const auto range = [&](const nlohmann::json& settings, const char* name) {
      const auto model = make_model(resolve_architecture(settings, 64), 16, 64, arena, DType::f64, 1, false);
      const Tensor values = model->parameter(name).value;
      const auto [low, high] = std::minmax_element(values.data<double>(), values.data<double>() + values.size());
      return std::pair(*low, *high);
    };
    const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
    const nlohmann::json mamba1 = {{"block", "mamba"}, {"mixer", "mamba1"}, {"width", 256}, {"layers", 1}},
                         mamba2 = {{"block", "mamba"}, {"mixer", "mamba2"}, {"width", 256}, {"layers", 1}, {"heads", 128}},
                         gated = {{"mixer", "gated_deltanet"}, {"width", 256}, {"layers", 1}, {"heads", 64}};
    QCOMPARE(range(mamba1, "layer0.a_log"), std::pair(0.0, std::log(16.0)));
    for (const auto& [settings, name] : {std::pair(mamba1, "layer0.dt_bias"), {mamba2, "layer0.dt_bias"}, {gated, "layer0.decay_bias"}}) {
      const auto [low, high] = range(settings, name);
      QVERIFY(softplus(low) >= 0.000999 && softplus(low) < 0.002 && softplus(high) > 0.05 && softplus(high) <= 0.1001);
    }
    const auto [slow, fast] = range(mamba2, "layer0.a_log");
    QVERIFY(slow >= 0 && slow < 0.5 && fast > 2.5 && fast <= std::log(16.0));
    QVERIFY(range(gated, "layer0.a_log").first >= std::log(1e-3) && range(gated, "layer0.a_log").second <= std::log(16.0));
    const auto bound = range(mamba1, "layer0.conv");
    QVERIFY(bound.first >= -0.5 && bound.first < -0.45 && bound.second <= 0.5 && bound.second > 0.45);
  }

  /// The divisor of what writes to the residual stream reaches the mixer's matrix too, and leaves both where it is off.
  void residual_scaling_is_of_mixer_and_mlp() {
    for (const char* mixer : {"attention", "top1_element", "top1_chunk", "based"})
      for (const bool scaled : {true, false}) {
        Arena arena(Device::cpu());
        nlohmann::json settings = {{"mixer", mixer}, {"width", 128}, {"layers", 8}, {"scaled_residual", scaled}};
        if (std::string(mixer) == "based") settings["layout"] = {"linear"};
        if (std::string(mixer) == "top1_chunk") settings["chunk"] = 16;
        const auto model = make_model(resolve_architecture(settings, 64), 16, 64, arena, DType::f64, 1, false);
        for (const char* name : {"layer3.output", "layer3.down"}) {
          const Tensor values = model->parameter(name).value;
          double squares = 0;
          for (int64_t i = 0; i < values.size(); ++i) squares += values.data<double>()[i] * values.data<double>()[i];
          const double deviation = std::sqrt(squares / static_cast<double>(values.size())), expected = scaled ? 0.02 / 4 : 0.02;
          QVERIFY2(std::abs(deviation / expected - 1) < 0.03, qPrintable(QString("%1 of %2: %3").arg(name, mixer).arg(deviation)));
        }
      }
  }

  /// Specification 1.1 and 1.2: V 32 000 and 4 096.
  void parameters_of_rwkv_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<int>("small");
    QTest::addColumn<int>("tied");
    QTest::addColumn<int>("tiny");
    QTest::newRow("RWKV-5") << R"({"mixer": "rwkv5"})" << 141296640 << 116720640 << 2337792;
    QTest::newRow("RWKV-6") << R"({"mixer": "rwkv6"})" << 145443840 << 120867840 << 2486784;
    QTest::newRow("RWKV-7") << R"({"mixer": "rwkv7"})" << 139523328 << 114947328 << 2361984;
  }
  void parameters_of_rwkv() {
    QFETCH(QString, settings);
    QFETCH(int, small);
    QFETCH(int, tied);
    QFETCH(int, tiny);
    const nlohmann::json mixer = nlohmann::json::parse(settings.toStdString());
    nlohmann::json a = mixer;
    a.update({{"width", 768}, {"layers", 12}, {"heads", 12}});
    QCOMPARE(parameters(a, 32000, 2048), small);
    a["tied"] = true;
    QCOMPARE(parameters(a, 32000, 2048), tied);
    nlohmann::json b = mixer;
    b.update({{"width", 128}, {"layers", 6}, {"heads", 4}});
    if (mixer.at("mixer") == "rwkv6") b.update({{"mix_rank", 16}, {"decay_rank", 16}});
    if (mixer.at("mixer") == "rwkv7") b.update({{"decay_rank", 16}, {"rate_rank", 16}, {"value_rank", 16}, {"gate_rank", 32}});
    QCOMPARE(parameters(b, 4096, 512), tiny);
  }

  /// arXiv:2505.18522, section 5.3: other mixers in the RWKV-7 block, 134.1 M, and what its time mix has around the recurrence: 137.1 M.
  void parameters_of_the_rwkv_block_with_attention() {
    const auto count = [](const char* inputs) {
      return parameters({{"block", "rwkv"}, {"mixer_inputs", inputs}, {"width", 768}, {"layers", 12}, {"heads", 12}}, 32000, 2048);
    };
    const int64_t shift = 768, gate = 2 * 768 * 128, values = 2 * 768 * 32 + 768, group = 2 * 768;
    QCOMPARE(count("plain"), 134135808);
    QCOMPARE(count("shifted"), 134135808 + 12 * 3 * shift);
    QCOMPARE(count("full"), 134135808 + 12 * (4 * shift + gate + group) + 11 * values);
    QCOMPARE((count("full") + 50000) / 100000, 1371);
    QVERIFY(!resolve_architecture({{"mixer", "rwkv7"}}, 64).contains("mixer_inputs"));
    QVERIFY_THROWS_EXCEPTION(UsageError, resolve_architecture({{"block", "rwkv"}, {"mixer", "mamba2"}, {"mixer_inputs", "full"}}, 64));
    QVERIFY_THROWS_EXCEPTION(
        UsageError,
        resolve_architecture({{"block", "rwkv"}, {"mixer", "attention"}, {"relation", "constant-keys"}, {"mixer_inputs", "full"}}, 64));
  }

  void mixers_know_their_usual_host() {
    const nlohmann::json five = resolve_architecture({{"mixer", "rwkv5"}}, 512),
                         other = resolve_architecture({{"mixer", "attention"}}, 512);
    QCOMPARE(five.at("block").get<std::string>(), std::string("rwkv"));
    QCOMPARE(five.at("channel_mix").get<std::string>(), std::string("5"));
    QVERIFY(!five.contains("position") && !five.contains("rotary_base"));
    QCOMPARE(other.at("block").get<std::string>(), std::string("llama"));
    QCOMPARE(resolve_architecture({{"block", "gpt"}, {"mixer", "rwkv7"}}, 512).at("block").get<std::string>(), std::string("gpt"));
    for (const nlohmann::json& wrong : {nlohmann::json{{"mixer", "rwkv7"}, {"position", "rotary"}},
                                        nlohmann::json{{"block", "rwkv"}, {"mixer", "attention"}, {"position", "absolute"}}})
      QVERIFY_THROWS_EXCEPTION(UsageError, resolve_architecture(wrong, 512));
  }

  void orthogonal_matrices_are_orthogonal() {
    for (const auto& shape : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 3}, {3, 5}, {70, 70}, {131, 64}, {40, 97}}) {
      const auto rows = shape.first, columns = shape.second;
      const std::vector<double> q = orthogonal_matrix(Random(3, "test"), rows, columns);
      const int64_t vectors = std::min(rows, columns), length = std::max(rows, columns), step = columns > rows ? 1 : columns;
      const auto vector = [&](int64_t v) { return q.data() + (columns > rows ? v * columns : v); };
      for (int64_t a = 0; a < vectors; ++a)
        for (int64_t b = 0; b < vectors; ++b) {
          double product = 0;
          for (int64_t i = 0; i < length; ++i) product += vector(a)[i * step] * vector(b)[i * step];
          QVERIFY(std::abs(product - (a == b)) < 1e-13);
        }
    }
  }

  /// Qᵀ times the matrix of normals is upper triangular with a positive diagonal: that makes Q unique.
  void orthogonal_matrices_come_from_the_normals() {
    constexpr int64_t kRows = 75, kColumns = 67;
    const Random random(3, "test");
    const std::vector<double> q = orthogonal_matrix(random, kRows, kColumns);
    for (int64_t a = 0; a < kColumns; ++a)
      for (int64_t b = 0; b <= a; ++b) {
        double r = 0;
        for (int64_t i = 0; i < kRows; ++i)
          r += q[static_cast<size_t>(i * kColumns + a)] * random.normal(static_cast<uint64_t>(b * kRows + i));
        QVERIFY(a == b ? r > 0 : std::abs(r) < 1e-12);
      }
  }

  void every_setting_is_declared_once_and_explained() {
    for (const Architecture* block : architectures()) {
      if (block->kind == Architecture::Kind::mixer) continue;
      for (const Architecture* mixer : architectures()) {
        if (mixer->kind != Architecture::Kind::mixer) continue;
        std::set<std::string> names;
        for (const Setting& s : settings_of(block->id, mixer->id)) {
          QVERIFY2(names.insert(s.name).second, (block->id + " " + mixer->id + " " + s.name).c_str());
          QVERIFY2(!s.help.empty() && s.help.find('\n') == std::string::npos, s.name.c_str());
          check_setting(s, s.default_value, s.name);
        }
      }
      QVERIFY(!block->title.empty() && !block->paper.empty());
    }
  }

  void hosts_choose_their_positions() {
    QCOMPARE(resolve_architecture({{"block", "gpt"}}, 512).at("position").get<std::string>(), std::string("absolute"));
    QCOMPARE(resolve_architecture({{"block", "llama"}}, 512).at("position").get<std::string>(), std::string("rotary"));
  }

  void values_depend_on_seed_and_name_only() {
    Arena arena(Device::cpu());
    const auto model = [&](const char* mixer, uint64_t seed, DType dtype) {
      return make_model(resolve_architecture({{"width", 32}, {"layers", 1}, {"heads", 2}, {"mixer", mixer}}, 512), 64, 512, arena, dtype,
                        seed, false);
    };
    const auto a = model("attention", 1, DType::f32), b = model("top1_element", 1, DType::f32), c = model("attention", 2, DType::f32);
    const auto d = model("attention", 1, DType::f64);
    const auto first = [](const auto& m) { return m->parameter("layer0.gate").value.template data<float>()[7]; };
    QCOMPARE(first(a), first(b));
    QVERIFY(first(a) != first(c));
    QCOMPARE(first(a), static_cast<float>(d->parameter("layer0.gate").value.data<double>()[7]));
    QVERIFY(a->parameter("embedding").decay && !a->parameter("final_norm").decay);
    double squares = 0;
    const Tensor table = a->parameter("embedding").value;
    for (int64_t i = 0; i < table.size(); ++i) squares += std::pow(static_cast<double>(table.data<float>()[i]), 2);
    QVERIFY(std::abs(std::sqrt(squares / static_cast<double>(table.size())) - 0.02) < 0.001);
  }

  void unknown_names_get_a_suggestion() {
    QCOMPARE(message_of<UsageError>([] { architecture("top1_chnk"); }),
             "there is no architecture \"top1_chnk\"; did you mean \"top1_chunk\"?");
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RegistryTest)
#include "registry_test.moc"
