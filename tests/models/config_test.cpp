#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "models/config/config.h"
#include "models/config/old_names.h"
#include "tests/support/message.h"

namespace saccade::test {

class ConfigTest : public QObject {
  Q_OBJECT

  static QString error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return message_of<UsageError>([&] { parse_config(text, "run.json", overrides); });
  }

 private Q_SLOTS:
  void an_empty_object_is_a_whole_config() {
    const RunConfig c = parse_config("{}", "run.json");
    QCOMPARE(c.name, std::string("transformerpp"));
    QCOMPARE(c.architecture.at("block").get<std::string>(), std::string("llama"));
    QCOMPARE(c.training.steps, 1000);
    QCOMPARE(c.training.max_logit_penalty, 0.0);
    QCOMPARE(c.device, std::string("auto"));
  }

  /// Time grows with a text's length, not with its square: 1.8 MB once took minutes.
  void many_objects_take_no_time() {
    std::string text = "{\"a\":[{}";
    for (int i = 0; i < 600'000; ++i) text += ",{}";
    QElapsedTimer timer;
    timer.start();
    QVERIFY(error_of(text + "]}").contains("the config has no setting \"a\""));
    QVERIFY2(timer.elapsed() < 30'000, qPrintable(QString::number(timer.elapsed())));
  }

  void the_resolved_form_reads_back_the_same() {
    const RunConfig c = parse_config(R"({"name": "n", "architecture": {"mixer": "top1_chunk", "chunk": 32, "heads": 8},
      "data": {"train": ["prose", "web"], "ood": ["c"], "sequence_length": 128}, "training": {"learning_rate": 2e-4, "steps": 2e3, "max_logit_penalty": 1e-4},
      "device": "cpu", "precision": "f64", "threads": 2})",
                                     "run.json");
    QCOMPARE(c.training.steps, 2000);
    QCOMPARE(c.training.capture_tokens, 128);
    QCOMPARE(c.training.max_logit_penalty, 1e-4);
    QCOMPARE(c.architecture.at("selection").get<std::string>(), std::string("exact"));
    QVERIFY(to_json(parse_config(to_json(c).dump(), "again")) == to_json(c));
  }

  void an_experiment_is_the_model_and_its_training() {
    const auto experiment = [](const std::vector<std::string>& overrides) {
      return experiment_of(to_json(parse_config(R"({"data": {"train": ["prose"], "sequence_length": 128}})", "run.json", overrides)));
    };
    const nlohmann::json usual = experiment({});
    for (const char* repeated : {"training.seed=2", "training.gradient_accumulation=2", "training.activation_checkpointing=true",
                                 "training.evaluate_every=3", "training.probe_every=3", "training.capture_every=3",
                                 "training.capture_tokens=3", "training.checkpoint_every=3", "device=cpu", "threads=3", "name=another"})
      QVERIFY2(experiment({repeated}) == usual, repeated);
    for (const char* changed : {"training.learning_rate=0.5", "training.warmup_steps=3", "training.batch_tokens=1280", "training.beta2=0.5",
                                "training.max_grad_norm=0.5", "training.steps=300", "precision=f64", "data.train=[\"code\"]",
                                "data.tokenizer=bpe:512", "data.sequence_length=256", "architecture.window=64", "architecture.layers=3"})
      QVERIFY2(experiment({changed}) != usual, changed);
  }

  /// Shares of domains by their names are the numbers in the domains' order; every training domain is named, and no other.
  void weights_by_the_domains_names() {
    const auto parse = [](const std::string& weights) {
      return parse_config(R"({"data": {"train": ["web", "code"], "weights": )" + weights + "}}", "run.json");
    };
    QCOMPARE(parse(R"({"code": 1, "web": 3.5})").data.weights, (std::vector<double>{3.5, 1}));
    QVERIFY(to_json(parse(R"({"code": 1, "web": 3})")) == to_json(parse("[3, 1]")));
    const nlohmann::json stored = to_json(parse("[3, 1]"));
    QCOMPARE(override_config(stored, "run.json", {R"(data.weights={"web":1,"code":2})"}).data.weights, (std::vector<double>{1, 2}));
    for (const auto& [weights, why] : {std::pair(R"({"web": 1})", "/data/weights has no number for \"code\" of /data/train"),
                                       {R"({"web": 1, "code": 1, "books": 1})", "/data/weights names \"books\", which is no domain"},
                                       {R"({"web": 1, "code": "x"})", "/data/weights"}}) {
      try {
        parse(weights);
        QFAIL(weights);
      } catch (const UsageError& error) {
        QVERIFY2(std::string(error.what()).find(why) != std::string::npos, error.what());
      }
    }
  }

  void optimizers_and_schedules_have_settings_of_their_own() {
    const auto parse = [](const std::string& training) { return parse_config(R"({"training": )" + training + "}", "run.json"); };
    const auto refused = [&](const std::string& training) {
      try {
        parse(training);
        return QString("taken");
      } catch (const UsageError& error) {
        return QString(error.what());
      }
    };
    const RunConfig c = parse(R"({"optimizer": "muon", "momentum": 0.9, "schedule": "wsd", "cooldown_form": "linear"})");
    QCOMPARE(c.training.optimizer_settings.at("momentum").get<double>(), 0.9);
    QCOMPARE(c.training.optimizer_settings.at("beta2").get<double>(), 0.95);
    QCOMPARE(c.training.min_lr_ratio, 0.0);  // wsd's default
    QCOMPARE(parse("{}").training.min_lr_ratio, 0.1);
    const nlohmann::json written = to_json(c);
    QCOMPARE(written["training"]["cooldown_form"].get<std::string>(), std::string("linear"));
    QVERIFY(to_json(parse_config(written.dump(), "again")) == written);
    QVERIFY(!to_json(parse("{}"))["training"].contains("momentum"));
    QVERIFY(refused(R"({"momentum": 0.9})")
                .contains("/training/momentum is a setting of the optimizer muon; /training/optimizer is \"adamw\""));
    QVERIFY(refused(R"({"cooldown_share": 0.9})").contains("is a setting of the schedule wsd"));
    QVERIFY(refused(R"({"optimizer": "moun"})").contains("did you mean \"muon\""));
    QVERIFY(refused(R"({"schedule": 3})").contains("/training/schedule is 3; expected constant, cosine, linear or wsd"));
    QVERIFY(refused(R"({"schedule": "wsd", "cooldown_share": 0.95})").contains("warm-up and cooldown take 1050 steps"));
    QVERIFY(refused(R"({"learning_rate_multipliers": ["embedding"]})").contains("expected a pattern of tensor names and a factor"));
    QVERIFY(refused(R"({"batch_warmup_steps": 5})").contains("/training/batch_warmup_tokens is 0; expected a divisor"));
    QVERIFY(refused(R"({"batch_warmup_steps": 5, "batch_warmup_tokens": 512})").contains("expected a multiple of the 8192 tokens"));
    QVERIFY(refused(R"({"keep_checkpoints": [1.5]})").contains("/training/keep_checkpoints holds 1.5; expected steps from 1 to 1000"));
    QVERIFY(refused(R"({"keep_checkpoints": ["a"]})").contains("expected a list of numbers"));
    QCOMPARE(steps_of({0.5, 500, 7}, 1000, "/x"), (std::vector<int64_t>{7, 500}));
  }

  /// A config from before there were optimizers and schedules to choose: what it means and what it is compared by stay.
  void configs_from_before_mean_the_same() {
    nlohmann::json now = to_json(parse_config(R"({"training": {"schedule": "linear", "beta2": 0.99}})", "run.json")), before = now;
    for (const char* added : {"optimizer", "learning_rate_multipliers", "warmup_share", "batch_warmup_steps", "batch_warmup_tokens",
                              "keep_checkpoints", "initialisation", "initial_deviation", "mup_base_width", "final_evaluation_tokens"})
      QVERIFY2(before["training"].erase(added) == 1, added);
    for (const char* added : {"weights", "min_document_tokens", "max_document_tokens", "packing"})
      QVERIFY2(before["data"].erase(added) == 1, added);
    QVERIFY(to_json(resolve_config(before, "run.json")) == now);
    QVERIFY(experiment_of(before) == experiment_of(now));
  }

  void old_names_and_old_defaults_make_no_other_experiment() {
    nlohmann::json run = to_json(parse_config(R"({"training": {"max_grad_norm": 0.5}, "architecture": {"block": "avey"}})", "run.json"));
    QCOMPARE(run["architecture"]["initialisation"].get<std::string>(), std::string("uniform"));
    nlohmann::json xavier = run, old = run;
    xavier["architecture"]["initialisation"] = "xavier";
    old["architecture"].erase("initialisation");
    old["architecture"].erase("block");
    old["architecture"]["host"] = "avey";
    old["training"].erase("max_grad_norm");
    old["training"]["clip"] = 0.5;
    QVERIFY(experiment_of(old) == experiment_of(xavier));
    QVERIFY(experiment_of(old) != experiment_of(run));
    old["training"]["clip"] = 0.25;
    QVERIFY(experiment_of(old) != experiment_of(xavier));
  }

  void old_defaults_are_filled_in_only_where_they_belong() {
    const auto filled = [](const char* text) {
      nlohmann::json config = nlohmann::json::parse(text);
      fill_old_defaults(config);
      return config;
    };
    QCOMPARE(filled(R"({"architecture": {"block": "avey"}})")["architecture"]["initialisation"].get<std::string>(), std::string("xavier"));
    QCOMPARE(filled(R"({"architecture": {"block": "rwkv", "mixer": "top1_element"}})")["architecture"]["mixer_inputs"].get<std::string>(),
             std::string("plain"));
    for (const char* kept :
         {R"({"architecture": {"block": "avey", "initialisation": "uniform"}})", R"({"architecture": {"block": "rwkv", "mixer": "rwkv7"}})",
          R"({"architecture": {"block": "rwkv", "mixer": 3}})", R"({"architecture": {"block": "llama"}})", R"({"architecture": {}})",
          R"({"architecture": 3})", "{}", "[]"})
      QVERIFY2(filled(kept) == nlohmann::json::parse(kept), kept);
  }

  void overrides_are_json_or_text() {
    const RunConfig c = parse_config(
        "{\"training\": {\"seed\": 1}}", "run.json",
        {"training.seed=2", "name=my run", "data.train=[\"a\",\"b\"]", "architecture.mixer=top1_chunk", "architecture.chunk=64"});
    QCOMPARE(c.training.seed, 2);
    QCOMPARE(c.name, std::string("my run"));
    QCOMPARE(c.data.train.size(), size_t(2));
    QCOMPARE(c.architecture.at("chunk").get<int>(), 64);
  }

  void wrong_overrides_are_refused() {
    QVERIFY(error_of("{}", {"training.seed"}).contains("expected section.key=value"));
    QVERIFY(error_of("{}", {"=3"}).contains("expected section.key=value"));
    QVERIFY(error_of("{}", {"training..seed=3"}).contains("a name is empty"));
    QVERIFY(error_of("{}", {"name.x=3", "name=5"}).contains("/name is 5"));
    QVERIFY(error_of("{}", {"name=a", "name.x=3"}).contains("inside a value"));
    QVERIFY(error_of("{}", {"training.sed=3"}).contains("did you mean \"seed\"?"));
    QVERIFY(error_of("{}", {"name=\xff"}).contains("expected section.key=value"));
    QVERIFY(error_of("{}", {"data={\"train\":[\"a\"],\"train\":[\"b\"]}"}).contains("given twice"));
  }

  void syntax_errors_say_line_and_column_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("place");
    QTest::newRow("missing comma") << "{\n  \"name\": \"a\"\n  \"device\": \"cpu\"\n}"
                                   << "run.json:3:10: not JSON: ";
    QTest::newRow("trailing comma") << "{\"name\": \"a\",}"
                                    << "run.json:1:14: not JSON: ";
    QTest::newRow("empty") << ""
                           << "run.json:1:1: not JSON: ";
    QTest::newRow("cut off") << "{\n\"training\": {"
                             << "run.json:2:14: not JSON: ";
    QTest::newRow("bare word") << "{\"name\": yes}"
                               << "run.json:1:10: not JSON: ";
    QTest::newRow("two values") << "{} {}"
                                << "run.json:1:4: not JSON: ";
    QTest::newRow("overflow") << "{\"threads\": 1e999}"
                              << "run.json: not JSON: ";
    QTest::newRow("bad utf-8") << QString::fromLatin1("{\"name\": \"\xff\"}") << "";
  }
  void syntax_errors_say_line_and_column() {
    QFETCH(QString, text);
    QFETCH(QString, place);
    const QString message = error_of(text.toLatin1().toStdString());
    QVERIFY2(message.startsWith(place) && !message.isEmpty(), qPrintable(message));
    QVERIFY(!message.contains('\n') && message.size() < 200);
  }

  void wrong_values_say_where_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    const auto row = [](const char* text, const char* message) { QTest::newRow(text) << text << message; };
    row(R"([1])", "the config is [1]; expected an object { … }");
    row(R"({"trainin": {}})", "the config has no setting \"trainin\"; did you mean \"training\"?");
    row(R"({"training": 3})", "/training is 3; expected an object { … }");
    row(R"({"training": {"step": 3}})", "/training has no setting \"step\"; did you mean \"steps\"?");
    row(R"({"training": {"steps": "many"}})", "/training/steps is \"many\"; expected an integer from 1 to 1000000000");
    row(R"({"training": {"seed": 1, "seed": 2}})", "/training/seed is given twice; expected once");
    row(R"({"training": {"max_logit_penalty": -1e-4}})", "/training/max_logit_penalty is -0.0001; expected a number from 0 to 100");
    row(R"({"training": {"schedule": "cosin"}})",
        "/training/schedule is \"cosin\"; expected constant, cosine, linear or wsd; did you mean \"cosine\"?");
    row(R"({"training": {"batch_tokens": 1000}})", "/training/batch_tokens is 1000; expected a multiple of /data/sequence_length, 512");
    row(R"({"training": {"gradient_accumulation": 3}})",
        "/training/gradient_accumulation is 3, which does not divide the 16 sequences of a step (batch_tokens / sequence_length)");
    row(R"({"training": {"steps": 50}})", "/training/warmup_steps is 100; expected at most /training/steps, 50");
    row(R"({"training": {"capture_tokens": 513}})", "/training/capture_tokens is 513; expected at most /data/sequence_length, 512");
    row(R"({"data": {"train": []}})", "/data/train is empty; expected at least one domain to train on");
    row(R"({"data": {"train": "prose"}})", "/data/train is \"prose\"; expected a list of texts, like [\"a\", \"b\"]");
    row(R"({"data": {"ood": ["prose"]}})", "/data/ood names the domain \"prose\", which /data names already");
    row(R"({"data": {"corpus": ""}})", "/data/corpus is empty; expected the name of a corpus");
    row(R"({"name": ""})", "/name is empty, longer than 200 bytes or holds control characters; expected a short line of text");
    row(R"({"device": "tpu"})", "/device is \"tpu\"; expected auto, cpu, cuda, cuda:N or cuda:N-M");
    row(R"({"device": "cuda:x"})", "/device is \"cuda:x\"; expected auto, cpu, cuda, cuda:N or cuda:N-M");
    row(R"({"device": "cpu", "precision": "bf16"})", "/precision is \"bf16\", which the CPU does not compute in; expected f32 or f64");
    row(R"({"threads": -1})", "/threads is -1; expected an integer from 0 to 1024");
    row(R"({"architecture": {"block": "lama"}})", "did you mean \"llama\"?");
    row(R"({"architecture": {"heads": 3}})", "/architecture/heads is 3, which does not divide the width 256");
    row(R"({"architecture": {"mixer": "top1_chunk", "chunk": 513}})",
        "/architecture/chunk is 513; expected at most the sequence length, 512");
    row(R"({"architecture": {"window": -1}})", "/architecture/window is -1; expected an integer from 0 to 1048576");
    row(R"({"architecture": {"chunk": 16}})", "/architecture has no setting \"chunk\"");
    row(R"({"architecture": {"width": 6, "heads": 2}})", "which needs heads of even width; width 6 in 2 heads makes them 3 wide");
  }
  void wrong_values_say_where() {
    QFETCH(QString, text);
    QFETCH(QString, message);
    const QString error = error_of(text.toStdString());
    QVERIFY2(error.startsWith("run.json: ") && error.contains(message), qPrintable(error));
    QVERIFY(!error.contains('\n'));
  }

  /// The presets as they were before settings were renamed.
  void old_presets_are_read() {
    std::ifstream file(qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString() + "/tests/fixtures/before-renaming/presets.json");
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const nlohmann::json old = nlohmann::json::parse(text);
    for (const auto& [from, to] : {std::pair("\"host\":", "\"block\":"), std::pair("\"recompute\":", "\"activation_checkpointing\":"),
                                   std::pair("\"clip\":", "\"max_grad_norm\":"), std::pair("\"accumulate\":", "\"gradient_accumulation\":"),
                                   std::pair("\"final_learning_rate\":", "\"min_lr_ratio\":")})
      text = QString::fromStdString(text).replace(from, to).toStdString();
    const nlohmann::json renamed = nlohmann::json::parse(text);
    QCOMPARE(old.size(), size_t(68));
    for (const auto& [name, preset] : old.items()) {
      std::string note;
      QVERIFY2(to_json(resolve_config(preset, name, &note)) == to_json(resolve_config(renamed.at(name), name)), name.c_str());
      QVERIFY2(note.starts_with(name + ": architecture.host is now architecture.block"), note.c_str());
    }
  }

  void old_names_are_converted_and_noted() {
    const auto tokens = [](const char* config) { return parse_config(config, "run.json").training.evaluation_tokens; };
    QCOMPARE(tokens("{}"), 16384);
    QCOMPARE(tokens(R"({"training": {"evaluation_batches": 4}})"), 16384);
    QCOMPARE(tokens(R"({"training": {"evaluation_batches": 1, "batch_tokens": 9600}, "data": {"sequence_length": 48}})"), 85 * 48);
    QCOMPARE(tokens(R"({"training": {"evaluation_batches": 3, "batch_tokens": 10000}, "data": {"sequence_length": 5000}})"), 3 * 5000);
    std::string note = "before";
    parse_config(R"({"training": {"max_grad_norm": 2}})", "run.json", {}, &note);
    QCOMPARE(note, std::string());
    const RunConfig c = parse_config(R"({"training": {"max_grad_norm": 2, "accumulate": 2}})", "run.json",
                                     {"training.clip=3", "training.gradient_accumulation=4"}, &note);
    QCOMPARE(c.training.max_grad_norm, 3.0);
    QCOMPARE(c.training.gradient_accumulation, 4);
    QCOMPARE(note, std::string("run.json: training.clip is now training.max_grad_norm"));
  }

  void a_setting_under_both_names_is_refused() {
    const QString both = "run.json: /training/clip is the old name of /training/max_grad_norm; both are given, expected one";
    QCOMPARE(error_of(R"({"training": {"clip": 1, "max_grad_norm": 1}})"), both);
    QCOMPARE(error_of(R"({"training": {"clip": 1, "max_grad_norm": 1}})", {"training.clip=2"}), both);
    QVERIFY(error_of("{}", {"training.clip=1", "training.max_grad_norm=1"}).startsWith("--set: /training/clip is the old name of"));
    QVERIFY(error_of(R"({"training": {"clip": -1}})").contains("/training/max_grad_norm is -1; expected a number from 0"));
    QVERIFY(error_of(R"({"training": {"evaluation_batches": "many"}})").contains("/training/evaluation_tokens is \"many\""));
    QVERIFY(error_of(R"({"training": {"evaluation_batches": 0}})").contains("/training/evaluation_tokens is 0; expected"));
  }

  void missing_files_are_named() {
    QVERIFY(message_of<UsageError>([] { load_config("/nowhere/run.json"); }).startsWith("/nowhere/run.json cannot be read"));
    QTemporaryDir folder;
    QVERIFY_THROWS_EXCEPTION(UsageError, load_config(folder.path().toStdString()));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::ConfigTest)
#include "config_test.moc"
