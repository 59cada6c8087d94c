#include "models/architectures/stack.h"

#include <QtTest>
#include <set>

#include "models/architectures/registry.h"
#include "models/config/config.h"
#include "models/training/plan.h"
#include "tests/models/architecture_rows.h"
#include "tests/support/message.h"

namespace saccade::test {

using Json = nlohmann::json;

/// Hybrid stacks as configs: forms, defaults, what is refused and where, names, and what crosses layers.
class StackTest : public QObject {
  Q_OBJECT

  static Json parsed(const char* text) { return Json::parse(text); }
  static Json resolved(const Json& config, int64_t length = 64) { return resolve_architecture(config, length); }
  static std::set<std::string> parameters(const Json& config) {
    Arena arena(Device::cpu());
    std::set<std::string> names;
    const auto model = make_model(resolved(config), 7, 64, arena, DType::f32, 1, false);
    for (const Parameter& p : model->parameters()) names.insert(p.name);
    return names;
  }

 private Q_SLOTS:
  void short_and_long_form_are_one() {
    const Json groups = parsed(R"([{"repeat": 3, "mixer": "gated_deltanet"}, {"repeat": 1, "mixer": "attention", "window": 64}])");
    const Json text = "3 gated_deltanet, 1 attention(window=64)";
    QVERIFY(resolved({{"layers", groups}, {"depth", 8}}) == resolved({{"layers", text}, {"depth", 8}}));
    const Json once = resolved({{"layers", text}});
    QCOMPARE(once.at("depth").get<int>(), 4);
    QCOMPARE(once.at("layers")[1].at("window").get<int>(), 64);
    QCOMPARE(once.at("layers")[1].at("norm_epsilon").get<double>(), 1e-5);
    QCOMPARE(once.at("layers")[0].at("norm_epsilon").get<double>(), 1e-6);
    QVERIFY(!once.at("layers")[0].contains("position") && !once.at("layers")[0].contains("tied"));
    QVERIFY(once.at("tied").get<bool>());
  }

  void window_0_is_full_attention() {
    const Json full =
        resolved(parsed(R"({"layers": [{"repeat": 3, "mixer": "gated_deltanet"}, {"repeat": 1, "mixer": "attention", "window": 0}]})"));
    QVERIFY(full == resolved({{"layers", "3 gated_deltanet, attention"}}));
    QCOMPARE(architecture_title(full), std::string("3 Gated DeltaNet : 1 Attention"));
  }

  void an_integer_is_the_depth_as_before() {
    const Json plain = resolved({{"layers", 6}});
    QCOMPARE(plain.at("layers").get<int>(), 6);
    QVERIFY(!plain.contains("depth"));
    QCOMPARE(layers_of(plain).size(), size_t{6});
    QVERIFY(layer_titles(plain).empty());
    QVERIFY(message_of<UsageError>([] { resolved({{"layers", 6}, {"depth", 6}}); }).startsWith("/architecture has no setting \"depth\""));
  }

  void one_group_is_a_plain_architecture() {
    QVERIFY(resolved({{"layers", "4 attention(window=9)"}, {"tied", false}}) == resolved({{"layers", 4}, {"window", 9}, {"tied", false}}));
    QVERIFY(resolved({{"layers", "2 mamba2"}, {"depth", 5}}) == resolved({{"layers", 5}, {"mixer", "mamba2"}}));
  }

  void groups_repeat_to_the_depth() {
    const Json config = resolved({{"layers", "2 mamba1, 1 attention"}, {"depth", 8}});
    std::string order;
    for (const Json& values : layers_of(config)) order += values.at("mixer") == "attention" ? 'a' : 'm';
    QCOMPARE(order, std::string("mmammamm"));
    QCOMPARE(layer_titles(config).at(2), std::string("Attention"));
  }

  void settings_of_the_architecture_hold_in_groups_that_have_them() {
    const Json config =
        resolved({{"heads", 8}, {"window", 9}, {"mlp_width", 40}, {"layers", "gated_deltanet, attention, attention(window=5, heads=2)"}});
    const Json& groups = config.at("layers");
    QVERIFY(groups[0].at("heads") == 8 && groups[1].at("heads") == 8 && groups[2].at("heads") == 2);
    QVERIFY(groups[1].at("window") == 9 && groups[2].at("window") == 5);
    QVERIFY(groups[0].at("mlp_width") == 40 && groups[2].at("mlp_width") == 40);
    QVERIFY(!config.contains("heads") && !config.contains("window"));
  }

  void blocks_come_from_group_architecture_or_mixer() {
    const Json usual = resolved({{"layers", "mamba2, attention, rwkv7"}});
    QCOMPARE(usual.at("block").get<std::string>(), std::string("mamba"));
    QCOMPARE(usual.at("layers")[1].at("block").get<std::string>(), std::string("llama"));
    QCOMPARE(usual.at("layers")[2].at("block").get<std::string>(), std::string("rwkv"));
    const Json chosen = resolved({{"block", "rwkv"}, {"layers", "mamba2, attention(block=gpt, position=alibi)"}});
    QCOMPARE(chosen.at("layers")[0].at("block").get<std::string>(), std::string("rwkv"));
    QCOMPARE(chosen.at("layers")[1].at("block").get<std::string>(), std::string("gpt"));
    const auto names = parameters({{"layers", "mamba2, attention, rwkv7"}, {"width", 16}, {"heads", 2}});
    for (const char* name :
         {"embedding", "layer0.norm", "layer1.attention_norm", "layer1.gate", "layer2.mixer_norm", "layer2.channel_key", "final_norm"})
      QVERIFY2(names.contains(name), name);
    QVERIFY(!names.contains("embedding_norm") && !names.contains("output"));  // the stem is the Mamba block's
  }

  /// RWKV-7's values residual: the first RWKV-7 layer of a stack hands its values on, wherever it stands.
  void the_first_rwkv7_layer_hands_its_values_on() {
    const auto blends = [](const Json& layers) {
      std::set<std::string> found;
      for (const std::string& name : parameters({{"layers", layers}, {"width", 16}, {"heads", 2}, {"depth", 6}}))
        if (name.find("value_blend_up") != std::string::npos) found.insert(name.substr(0, name.rfind('.')));
      return found;
    };
    QCOMPARE(blends("attention, rwkv7, rwkv7"), (std::set<std::string>{"layer2", "layer4", "layer5"}));
    QCOMPARE(blends("rwkv7, attention, mamba2"), (std::set<std::string>{"layer3"}));
    QCOMPARE(blends("attention, parallel(first=rwkv7, second=rwkv7), rwkv7"),
             (std::set<std::string>{"layer1.second", "layer2", "layer4.first", "layer4.second", "layer5"}));
  }

  void layouts_of_based_count_its_own_layers() {
    const auto names =
        parameters({{"layers", "based(layout=[\"conv\", \"window\"]), attention"}, {"depth", 4}, {"width", 16}, {"heads", 2}});
    QVERIFY(names.contains("layer0.in_proj") && names.contains("layer2.query_key_value"));
  }

  void absolute_positions_are_the_stems() {
    QVERIFY(parameters({{"layers", "mamba2(block=llama), attention(block=gpt)"}, {"width", 16}, {"heads", 2}}).contains("position"));
    QVERIFY(!parameters({{"layers", "mamba2, attention"}, {"width", 16}, {"heads", 2}}).contains("position"));
  }

  void round_trip_data() {
    QTest::addColumn<QString>("settings");
    for (const auto& [name, settings] : random_stacks(64)) QTest::newRow(name.c_str()) << QString::fromStdString(settings.dump());
  }
  /// Resolved, as text and as a whole run: everywhere the same.
  void round_trip() {
    QFETCH(QString, settings);
    const Json given = Json::parse(settings.toStdString()), full = resolved(given);
    QVERIFY(resolved(full) == full);
    for (const Json& config : {given, full}) {
      Json as_text = config;
      as_text["layers"] = stack_text(config);
      QVERIFY2(resolved(as_text) == full, stack_text(config).c_str());
    }
    const RunConfig run = resolve_config({{"architecture", given}, {"data", {{"sequence_length", 64}}}}, "test");
    QVERIFY(to_json(parse_config(to_json(run).dump(), "again")) == to_json(run));
    QVERIFY(layer_titles(full).size() == full.at("depth").get<size_t>());
    QVERIFY(stack_text(full).size() < 4000);
  }

  void titles_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("title");
    const auto row = [](const char* settings, const char* title) { QTest::newRow(settings) << settings << title; };
    row(R"({"layers": "3 gated_deltanet, 1 attention"})", "3 Gated DeltaNet : 1 Attention");
    row(R"({"layers": "3 gated_deltanet, 1 attention(window=64) ", "depth": 8})", "3 Gated DeltaNet : 1 Attention window 64");
    row(R"({"layers": "7 mamba2, 1 attention"})", "7 Mamba-2 : 1 Attention");
    row(R"({"block": "llama", "layers": "7 mamba2, 1 attention"})", "7 Mamba-2 in Transformer++ : 1 Attention");
    row(R"({"layers": "mamba2, attention", "block": "rwkv"})", "1 Mamba-2 in RWKV block : 1 Attention in RWKV block");
    row(R"({"layers": "2 deltanet, attention(position=none) ", "tied": false})",
        "2 DeltaNet : 1 Attention position none own output matrix");
    row(R"({"layers": "attention, mamba2", "block": "llama", "activation": "silu"})", "1 Attention : 1 Mamba-2 in Transformer++ SwiGLU");
    row(R"({"layers": "mamba2, attention(block=rwkv) "})", "1 Mamba-2 : 1 Attention in RWKV block");
    row(R"({"mixer": "parallel"})", "Parallel Attention with Mamba-2");
    row(R"({"mixer": "parallel", "first": "attention(window=16) ", "second": "gated_deltanet"})",
        "Parallel Attention window 16 with Gated DeltaNet");
    row(R"({"layers": "2 parallel(second=rwkv7), attention"})", "2 Parallel Attention with RWKV-7 : 1 Attention");
  }
  void titles() {
    QFETCH(QString, settings);
    QFETCH(QString, title);
    QCOMPARE(QString::fromStdString(architecture_title(resolved(Json::parse(settings.toStdString())))), title);
  }

  void names_say_the_ratio() {
    const RunConfig run = resolve_config({{"architecture", {{"layers", "3 gated_deltanet, 1 attention"}}}}, "test");
    QCOMPARE(run.name, std::string("3-gated-deltanet-1-attention"));
  }

  void refused_data() {
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* settings, const char* says) { QTest::newRow(settings) << settings << says; };
    row(R"({"layers": []})", "/architecture/layers is empty");
    row(R"({"layers": [3]})", "/architecture/layers/0 is 3; expected an object");
    row(R"({"layers": true})", "/architecture/layers is true; expected an integer from 1 to 1024, or groups of layers");
    row(R"({"layers": [{"repeat": 2}]})", "/architecture/layers/0 names no mixer; expected \"mixer\": attention, based");
    row(R"({"layers": [{"mixer": "atention"}, {"mixer": "mamba2"}]})", "/architecture/layers/0/mixer is \"atention\"");
    row(R"({"layers": [{"mixer": "attention"}, {"mixer": "mamba2", "widow": 3}]})", "/architecture/layers/1 has no setting \"widow\"");
    row(R"({"layers": [{"mixer": "attention"}, {"mixer": "mamba2", "state": "x"}]})",
        "/architecture/layers/1/state is \"x\"; expected an integer");
    row(R"({"layers": [{"mixer": "attention", "repeat": 0}, {"mixer": "mamba2"}]})",
        "/architecture/layers/0/repeat is 0; expected an integer from 1");
    row(R"({"layers": [{"mixer": "attention", "width": 8}, {"mixer": "mamba2"}]})",
        "/architecture/layers/0/width is a setting of the whole model; expected it at /architecture/width");
    row(R"({"layers": [{"mixer": "attention", "tied": true}, {"mixer": "mamba2"}]})",
        "/architecture/layers/0/tied is a setting of the whole model");
    row(R"({"layers": [{"mixer": "attention", "heads": 3}, {"mixer": "mamba2"}]})",
        "/architecture/layers/0/heads is 3, which does not divide");
    row(R"({"layers": [{"mixer": "attention"}, {"mixer": "top1_chunk", "chunk": 65}]})", "/architecture/layers/1/chunk is 65");
    row(R"({"layers": [{"mixer": "attention", "block": "avey"}, {"mixer": "mamba2"}]})",
        "/architecture/layers/0/block is \"avey\", a whole architecture");
    row(R"({"block": "avey", "layers": "2 attention, mamba2"})", "/architecture/block is \"avey\", a whole architecture");
    row(R"({"layers": "2 attention, mamba2", "depth": 2})",
        "/architecture/depth is 2, which leaves no layer for /architecture/layers/1 (mamba2); expected at least 3");
    row(R"({"layers": "1000 attention, 30 mamba2"})", "/architecture/layers are 1030 layers; expected at most 1024");
    row(R"({"layers": "2 attention, mamba2", "chunk": 5})", "/architecture has no setting \"chunk\"");
    row(R"({"layers": "attention, mamba2", "block": "rwkv", "position": "absolute"})", "/architecture/layers/0/position is \"absolute\"");
    row(R"({"layers": "rwkv7, attention(block=gpt) "})", "/architecture/layers/1/position is \"absolute\"");
    row(R"({"layers": "2 attention mamba2"})", "which has \"m\" at character 13; expected \",\" or the end");
    row(R"({"layers": "attention(window) "})", "which has \")\" at character 17; expected \"=\" and a value");
    row("{\"layers\": \"attention(window=3\"}", "which has its end at character 19; expected \",\" or \")\"");
    row(R"({"layers": "attention(window=3, window=4) "})", "at character 21; expected each setting once");
    row(R"({"layers": ""})", "which has its end at character 1; expected the name of a mixer");
    row(R"({"layers": "99999 attention"})", "a number of layers up to 1024");
    row(R"({"mixer": "parallel", "first": "parallel"})", "/architecture/first/mixer is \"parallel\", which holds mixers itself");
    row(R"({"mixer": "parallel", "first": 3})", "/architecture/first is 3; expected a mixer");
    row(R"({"mixer": "parallel", "second": {"window": 3}})", "/architecture/second names no mixer");
    row(R"({"mixer": "parallel", "second": "mamba2(window=3) "})", "/architecture/second has no setting \"window\"");
    row(R"({"mixer": "parallel", "first": {"mixer": "attention", "heads": 5}})", "/architecture/first/heads is 5, which does not divide");
    row(R"({"mixer": "parallel", "first": "attention(position=absolute) "})", "/architecture/first/position is \"absolute\"");
    row(R"({"layers": "attention, parallel(second=top1_chunk(chunk=99)) "})", "/architecture/layers/1/second/chunk is 99");
  }
  void refused() {
    QFETCH(QString, settings);
    QFETCH(QString, says);
    const QString said = message_of<UsageError>([&] { resolved(Json::parse(settings.toStdString())); });
    QVERIFY2(said.contains(says), qPrintable(said));
  }

  void plans_show_each_layer() {
    const RunConfig run = small_run({{"layers", "2 mamba2, attention"}, {"heads", 2}, {"depth", 5}});
    const Plan plan = make_plan(run, 257);
    QCOMPARE(plan.layers.size(), size_t{3});
    QVERIFY(plan.layers[0].first == 0 && plan.layers[0].last == 1 && plan.layers[0].mixer == "Mamba-2");
    QVERIFY(plan.layers[1].first == 2 && plan.layers[1].last == 2 && plan.layers[1].mixer == "Attention");
    QVERIFY(plan.layers[2].first == 3 && plan.layers[2].last == 4);
    int64_t sum = 257 * 16 + 16, state = 0;  // embedding and final norm
    for (const PlannedLayers& l : plan.layers) {
      sum += (l.last - l.first + 1) * l.parameters;
      state += (l.last - l.first + 1) * l.state_bytes_per_token;
    }
    QCOMPARE(sum, plan.parameters);
    QVERIFY(std::abs(state - plan.state_bytes_per_token) <= 3);
    QCOMPARE(to_json(plan).at("layers").size(), size_t{3});
    QVERIFY(make_plan(small_run({{"heads", 2}}), 257).layers.empty());
  }

  /// Both parts and both gains: the sum is what the parts give on their own.
  void parallel_is_the_sum_of_its_parts() {
    const Json parallel{{"mixer", "parallel"}, {"first", "attention(window=5)"}, {"second", "gated_deltanet"}, {"width", 16}, {"layers", 1},
                        {"heads", 2}};
    Arena arena(Device::cpu());
    const Json values = resolved(parallel);
    ParameterMaker make(arena, DType::f64, 3, false);
    const ModelShape shape = shape_of(values, 7, 64);
    const auto both = architecture("parallel").make_mixer(shape, values, make, 0);
    std::unique_ptr<Mixer> parts[2];
    for (int i = 0; i < 2; ++i) {
      const char* name = i == 0 ? "first" : "second";
      ParameterMaker alone(arena, DType::f64, 3, false);
      const ParameterMaker::Part named(alone, name);  // so that the initial values are the same
      const Json& part = values.at(name);
      parts[i] = architecture(part.at("mixer")).make_mixer(shape_of_part(shape, part), part, alone, 0);
    }
    std::vector<double> gains[2];
    for (const Parameter& p : make.take())
      for (int i = 0; i < 2; ++i)
        if (p.name == (i == 0 ? "layer0.first_gain" : "layer0.second_gain")) {
          QCOMPARE(p.value.data<double>()[3], 0.5);
          for (int64_t c = 0; c < 16; ++c)
            gains[i].push_back(p.value.data<double>()[c] = 0.1 * static_cast<double>(c + 1) * (i == 0 ? 1 : -2));
        }
    Tape tape(arena, false);
    const Tensor x = arena.allocate({2, 9, 16}, DType::f64);
    const Random random(1, "x");
    for (int64_t i = 0; i < x.size(); ++i) x.data<double>()[i] = random.normal(static_cast<uint64_t>(i));
    Pass pass;
    const Array sum = to_array(both->forward(tape, x, pass)), a = to_array(parts[0]->forward(tape, x, pass)),
                b = to_array(parts[1]->forward(tape, x, pass));
    for (size_t i = 0; i < sum.values.size(); ++i) {
      const double expected = gains[0][i % 16] * a.values[i] + gains[1][i % 16] * b.values[i];
      QVERIFY(std::abs(sum.values[i] - expected) <= 1e-12 * std::max(1.0, std::abs(expected)));
    }
    QVERIFY(std::abs(both->state_values_per_token() - parts[0]->state_values_per_token() - parts[1]->state_values_per_token()) < 1e-9);
  }

  /// The heads of the first part, then those of the second; what a part does not report is marked so.
  void parallel_reports_the_heads_of_both() {
    const Row row{{{"mixer", "parallel"},
                   {"first", "attention(heads=4)"},
                   {"second", "top1_chunk(chunk=5)"},
                   {"width", 16},
                   {"layers", 1},
                   {"heads", 2}},
                  "cpu",
                  "auto"};
    const Built built(row, DType::f32, false);
    Tape tape(built.arena, false);
    ProbeRecord record;
    record.maps_wanted = true;
    built.model->hidden(tape, built.tokens(random_tokens(kLength, "tokens")), &record);
    const auto map = [&](MapKind kind) {
      return *std::find_if(record.maps.begin(), record.maps.end(), [&](const CapturedMap& m) { return m.kind == kind; });
    };
    QCOMPARE(map(MapKind::weights).shape, (std::vector<int64_t>{6, kLength, kLength}));
    QCOMPARE(map(MapKind::selected).shape, (std::vector<int64_t>{6, kLength, 1}));
    for (int64_t i = 0; i < 4 * kLength; ++i) QCOMPARE(map(MapKind::selected).values[static_cast<size_t>(i)], -1.0F);
    QVERIFY(map(MapKind::selected).values.back() >= 0);
    QVERIFY(record.selections.at(0) == (Selection{Selection::Unit::chunk, 5}));
    for (const HeadStatistic& s : record.statistics) {
      QCOMPARE(s.heads.size(), size_t{6});
      if (s.name == "captured_mass") QVERIFY(std::isnan(s.heads[0]) && !std::isnan(s.heads[5]));
      if (s.name == "entropy") QVERIFY(!std::isnan(s.heads[0]) && !std::isnan(s.heads[5]));
    }
    QCOMPARE(std::count_if(record.statistics.begin(), record.statistics.end(), [](const HeadStatistic& s) { return s.name == "entropy"; }),
             1);
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StackTest)
#include "stack_test.moc"
