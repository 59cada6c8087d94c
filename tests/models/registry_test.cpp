#include <QtTest>
#include <cmath>
#include <set>

#include "models/architectures/registry.h"
#include "models/plan.h"

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
    row(R"({"host": "gpt"})", "GPT");
    row(R"({"window": 64})", "Transformer++ window 64");
    row(R"({"relation": "constant-both", "position": "none"})", "Transformer++ constant-both position none");
    row(R"({"qk_norm": "l2", "temperature": 0.25, "activation": "silu"})", "Transformer++ qk-norm l2 temperature 0.25 SwiGLU");
    row(R"({"mixer": "top1_element"})", "Top-1 Element");
    row(R"({"mixer": "top1_chunk"})", "Top-1 Chunk exact");
    row(R"({"mixer": "top1_chunk", "selection": "approx", "top_k": 2, "share_selection": true})", "Top-1 Chunk approx top 2 shared");
    row(R"({"host": "gpt", "mixer": "top1_chunk", "biases": false})", "Top-1 Chunk exact without biases in GPT");
  }
  void titles() {
    QFETCH(QString, settings);
    QFETCH(QString, title);
    QCOMPARE(QString::fromStdString(architecture_title(resolve_architecture(nlohmann::json::parse(settings.toStdString()), 512))), title);
  }

  /// The papers' small models (BC, appendix A): V 32 000, sequences of 2 048.
  void parameters_of_the_papers() {
    const nlohmann::json small = {{"width", 768}, {"layers", 12}, {"heads", 12}};
    nlohmann::json transformer_pp = small, gpt = small;
    gpt["host"] = "gpt";
    QCOMPARE(parameters(transformer_pp, 32000, 2048), 109529856);  // 109.5 M
    QCOMPARE((parameters(transformer_pp, 32000, 2048) + 50000) / 100000, 1095);
    QCOMPARE(parameters(gpt, 32000, 2048), 111204864);  // ≈ 111 M
    transformer_pp["mixer"] = "top1_chunk";
    QCOMPARE(parameters(transformer_pp, 32000, 2048), 109529856 + 12 * 2 * 64);  // and the gains of qk-norm
  }

  void every_setting_is_declared_once_and_explained() {
    for (const Architecture* host : architectures()) {
      if (host->kind == Architecture::Kind::mixer) continue;
      for (const Architecture* mixer : architectures()) {
        if (mixer->kind != Architecture::Kind::mixer) continue;
        std::set<std::string> names;
        for (const Setting& s : settings_of(host->id, mixer->id)) {
          QVERIFY2(names.insert(s.name).second, (host->id + " " + mixer->id + " " + s.name).c_str());
          QVERIFY2(!s.help.empty() && s.help.find('\n') == std::string::npos, s.name.c_str());
          check_setting(s, s.default_value, s.name);
        }
      }
      QVERIFY(!host->title.empty() && !host->paper.empty());
    }
  }

  void hosts_choose_their_positions() {
    QCOMPARE(resolve_architecture({{"host", "gpt"}}, 512).at("position").get<std::string>(), std::string("absolute"));
    QCOMPARE(resolve_architecture({{"host", "llama"}}, 512).at("position").get<std::string>(), std::string("rotary"));
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
    try {
      architecture("top1_chnk");
      QFAIL("it exists");
    } catch (const UsageError& error) {
      QCOMPARE(QString(error.what()), "there is no architecture \"top1_chnk\"; did you mean \"top1_chunk\"?");
    }
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::RegistryTest)
#include "registry_test.moc"
