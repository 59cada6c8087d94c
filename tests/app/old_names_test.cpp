#include <map>

#include "analysis/runs/files.h"
#include "analysis/runs/run.h"
#include "program.h"

namespace saccade::test {

/// Configs and a run directory from before settings were renamed (tests/fixtures/before-renaming, written by the program of
/// commit 40b8ac3): they are read, resumed, evaluated and compared as if they had today's names.
class OldNamesTest : public QObject {
  Q_OBJECT

  /// Old name → today's.
  static const std::map<std::string, std::string>& names() {
    static const std::map<std::string, std::string> all{{"architecture.host", "architecture.block"},
                                                        {"training.accumulate", "training.gradient_accumulation"},
                                                        {"training.recompute", "training.activation_checkpointing"},
                                                        {"training.clip", "training.max_grad_norm"},
                                                        {"training.final_learning_rate", "training.min_lr_ratio"},
                                                        {"training.evaluation_batches", "training.evaluation_tokens"}};
    return all;
  }

  static bool has(const nlohmann::json& config, const std::string& name) {
    const size_t dot = name.find('.');
    return config.at(name.substr(0, dot)).contains(name.substr(dot + 1));
  }

  static QString fixture(const QString& name) {
    return qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/tests/fixtures/before-renaming/" + name;
  }

  static nlohmann::json read_json(const std::string& path) { return nlohmann::json::parse(read_text(path)); }

  QString copy_of_run(const QString& name) const {
    std::filesystem::copy(fixture("run").toStdString(), program_.path(name).toStdString(), std::filesystem::copy_options::recursive);
    return program_.path(name);
  }

  /// What is said on standard error of old names: one line, empty when nothing.
  static QString note_of(const Program::Result& result) {
    QStringList notes;
    for (const QString& line : result.err.split('\n'))
      if (line.contains(" is now ") || line.contains("old names")) notes << line;
    return notes.size() == 1 ? notes.front() : notes.join(" | and | ");
  }

  void verify_names_in_run(const QString& run) const {
    const nlohmann::json config = read_json(program_.path(run + "/run.json").toStdString()).at("config");
    for (const auto& [old_name, name] : names()) {
      QVERIFY2(!has(config, old_name), old_name.c_str());
      QVERIFY2(has(config, name), name.c_str());
    }
    QCOMPARE(config["training"]["evaluation_tokens"].get<int>(), 4080);  // 85 whole sequences of 48, of a batch of 4096 tokens
    QCOMPARE(config["training"]["max_grad_norm"].get<double>(), 0.5);
  }

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  void a_config_of_old_names_is_read_with_one_note() {
    const auto result = program_.run({"--json", "plan", fixture("every-old-name.json")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    const QString note = note_of(result);
    QVERIFY2(!note.contains("| and |"), qPrintable(note));
    for (const auto& [old_name, name] : names())
      QVERIFY2(note.contains(QString::fromStdString(old_name + " is now " + name)), qPrintable(note));
    QVERIFY2(note.contains("(1 reads as 4080)"), qPrintable(note));
    QVERIFY(note_of(program_.run({"-q", "plan", fixture("every-old-name.json")})).isEmpty());
  }

  void overrides_may_use_either_name() {
    const QString config = fixture("every-old-name.json");
    const auto flops = [&](const QStringList& overrides) {
      QStringList arguments{"-q", "--json", "plan", config};
      for (const QString& o : overrides) arguments << "--set" << o;
      const auto result = program_.run(arguments);
      if (result.code != 0) qWarning("%s", qPrintable(result.err));
      return result.json()["flops_per_evaluation"].get<double>();
    };
    const double as_given = flops({});
    QCOMPARE(flops({"training.evaluation_batches=2"}), 2 * as_given);
    QCOMPARE(flops({"training.evaluation_tokens=8160"}), 2 * as_given);
    const auto both =
        program_.run({"-q", "plan", config, "--set", "training.evaluation_batches=2", "--set", "training.evaluation_tokens=9"});
    QVERIFY2(both.code == 2 && is_one_error(both) && both.err.contains("both are given"), qPrintable(both.err));
  }

  void an_old_run_resumes_as_it_would_have() {
    copy_of_run("old");
    const auto result = program_.run({"resume", program_.path("old")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QVERIFY2(note_of(result).contains("training.clip is now training.max_grad_norm"), qPrintable(result.err));
    QVERIFY(QString::fromStdString(read_text(program_.path("old/log.txt").toStdString())).contains("is now training.max_grad_norm"));
    verify_names_in_run("old");
    const Run run(program_.path("old").toStdString());
    QVERIFY(run.info().state == RunState::finished && run.info().old_names.empty());
    const Series *id = run.find("validation/loss/prose"), *ood = run.find("ood/loss/code");
    QVERIFY(id && ood);
    QFile whole(fixture("whole-run-evaluations.jsonl"));
    QVERIFY(whole.open(QIODevice::ReadOnly));
    size_t i = 0;
    for (QByteArray line = whole.readLine(); !line.isEmpty(); line = whole.readLine(), ++i) {
      const nlohmann::json record = nlohmann::json::parse(line.toStdString());
      QCOMPARE(id->step[i], record["step"].get<double>());
      for (const auto& [series, loss] : {std::pair(id, record["losses"][0]["loss"]), std::pair(ood, record["losses"][1]["loss"])}) {
        const double difference = std::abs(series->value[i] - loss.get<double>());
        QVERIFY2(difference < 1e-3, qPrintable(QString("step %1: off by %2").arg(id->step[i]).arg(difference)));
      }
    }
    QCOMPARE(i, size_t(15));
  }

  void an_old_run_is_evaluated_and_inspected() {
    const QString run = copy_of_run("untouched");
    const auto result = program_.run({"--json", "evaluate", run});
    QVERIFY2(result.code == 0, qPrintable(result.err));
    QVERIFY2(note_of(result).contains("training.clip is now training.max_grad_norm"), qPrintable(result.err));
    const nlohmann::json expected = read_json(fixture("evaluation.json").toStdString());
    for (size_t i = 0; i < 2; ++i) {
      QCOMPARE(result.json()["losses"][i]["domain"].get<std::string>(), expected["losses"][i]["domain"].get<std::string>());
      QVERIFY(std::abs(result.json()["losses"][i]["loss"].get<double>() - expected["losses"][i]["loss"].get<double>()) < 1e-5);
    }
    const auto reads = program_.run({"--json", "inspect", run, "--query", "10"});
    QVERIFY2(reads.code == 0 && reads.json()["step"] == 20, qPrintable(reads.err));
    const auto text = program_.run({"--json", "generate", run, "--tokens", "2"});
    QVERIFY2(text.code == 0 && note_of(text).contains("is now"), qPrintable(text.err));
  }

  /// An old run and one that was configured with today's names are seeds of one setting.
  void old_and_new_runs_are_one_setting() {
    nlohmann::json config = read_json(fixture("every-old-name.json").toStdString());
    auto &training = config["training"], &architecture = config["architecture"];
    architecture.erase("host");
    for (const char* key : {"accumulate", "recompute", "clip", "final_learning_rate", "evaluation_batches"}) training.erase(key);
    architecture["block"] = "llama";
    training.update({{"gradient_accumulation", 2},
                     {"activation_checkpointing", true},
                     {"max_grad_norm", 0.5},
                     {"min_lr_ratio", 0.2},
                     {"evaluation_tokens", 4080}});
    program_.write("new.json", QByteArray::fromStdString(config.dump()));
    const auto first = program_.run({"train", program_.path("new.json"), "--out", program_.path("new")});
    QVERIFY2(first.code == 0 && note_of(first).isEmpty(), qPrintable(first.err));
    verify_names_in_run("new");
    const auto second = program_.run({"-q", "train", fixture("every-old-name.json"), "--out", program_.path("seed2"), "--set",
                                      "training.seed=2", "--set", "name=another"});
    QVERIFY2(second.code == 0, qPrintable(second.err));
    verify_names_in_run("seed2");

    const Run old(fixture("run").toStdString()), fresh(program_.path("new").toStdString());
    QVERIFY(!old.info().old_names.empty() && fresh.info().old_names.empty());
    QCOMPARE(old.setting(), fresh.setting());
    QCOMPARE(old.info().provenance["config_hash"].get<std::string>(), fresh.info().provenance["config_hash"].get<std::string>());

    const auto compared = program_.run({"--json", "compare", copy_of_run("compared"), program_.path("new"), program_.path("seed2")});
    QVERIFY2(compared.code == 0, qPrintable(compared.err));
    QCOMPARE(compared.json()["rows"].size(), size_t(1));
    QCOMPARE(compared.json()["rows"][0]["runs"].size(), size_t(3));
    const auto warnings = compared.json()["warnings"];
    QVERIFY2(warnings.size() == 2, warnings.dump().c_str());  // that the old one is not finished, and that one seed stands twice
    QVERIFY2(warnings.dump().find("the same seed (1)") != std::string::npos, warnings.dump().c_str());
    QVERIFY2(note_of(compared).contains("1 of these runs has settings under old names"), qPrintable(compared.err));
  }

 private:
  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::OldNamesTest)
#include "old_names_test.moc"
