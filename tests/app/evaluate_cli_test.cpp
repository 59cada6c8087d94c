#include "program.h"

namespace saccade::test {

/// `saccade evaluate` as a person calls it: other text, other lengths, and what goes wrong.
class EvaluateCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.train("run");
    // Text that was kept apart as test files, as data sets come.
    QDir().mkpath(program_.path("held"));
    QByteArray web;
    for (int i = 0; i < 60; ++i) {
      const nlohmann::json line{
          {"text", "Page " + std::to_string(i) + " of the road over the hills to the sea, which nobody has read yet."}};
      web += QByteArray::fromStdString(line.dump()) + "\n";
    }
    program_.write("held/web.test.jsonl", web);
    const auto result = program_.run({"-q", "corpus", "import", "held", program_.path("held")});
    QVERIFY2(result.code == 0, qPrintable(result.err));
  }

  void says_what_it_did() {
    const auto text = program_.run({"-q", "evaluate", program_.path("run")});
    QVERIFY2(text.code == 0, qPrintable(text.err));
    QVERIFY2(text.out.contains("at step 12, validation text of mine, sequences of 64 tokens"), qPrintable(text.out));
    QVERIFY(text.out.contains("± standard error") && text.out.contains("training domain") && text.out.contains("OOD"));
    const nlohmann::json json = evaluate({}).json();
    QCOMPARE(json["split"].get<std::string>(), "validation");
    QCOMPARE(json["corpus"].get<std::string>(), "mine");
    QCOMPARE(json["sequence_length"].get<int>(), 64);
    QCOMPARE(json["losses"].size(), size_t(2));
    for (const auto& loss : json["losses"]) {
      QCOMPARE(loss["tokens"].get<int>(), 64 * loss["sequences"].get<int>());
      QVERIFY(loss["standard_error"].get<double>() > 0 && loss["by_position"].size() == 64);
      // With bytes as tokens they are the loss in bits, but for ends of text, which are no bytes.
      const double bits = loss["loss"].get<double>() / std::numbers::ln2, per_byte = loss["bits_per_byte"].get<double>();
      QVERIFY2(per_byte >= bits && per_byte < 1.1 * bits, qPrintable(QString("%1 of %2").arg(per_byte).arg(bits)));
    }
    QCOMPARE(evaluate({"--step", "8"}).json()["step"].get<int>(), 8);  // the word before --checkpoint
  }

  void several_runs_are_paired() {
    const auto text = program_.run({"-q", "evaluate", program_.path("run"), program_.path("run"), "--tokens", "640"});
    QVERIFY2(text.code == 0, qPrintable(text.err));
    QVERIFY2(text.out.contains("on the same sequences, 640 tokens of a domain"), qPrintable(text.out));
    const auto again = program_.run({"-q", "--json", "evaluate", program_.path("run"), program_.path("run"), "--checkpoint", "8"});
    const nlohmann::json json = again.json();
    QCOMPARE(json["runs"].size(), size_t(2));
    QCOMPARE(json["differences"].size(), size_t(2));
    for (const auto& difference : json["differences"]) QVERIFY(difference["difference"] == 0 && difference["standard_error"] == 0);
  }

  void coordinates_over_widths() {
    program_.write("config.json", QByteArray::fromStdString(program_.config().dump()));
    const QStringList call{"-q", "--json", "coordinates", program_.path("config.json"), "--widths", "8,16,32", "--steps", "2"};
    const nlohmann::json json =
        program_.run(call + QStringList{"--set", "training.initialisation=mup", "--set", "training.mup_base_width=8"}).json();
    QCOMPARE(json["initialisation"].get<std::string>(), "mup");
    QCOMPARE(json["activations"].size(), size_t(6));  // two layers and the logits, each with its change
    for (const auto& activation : json["activations"]) QCOMPARE(activation["root_mean_square"].size(), size_t(3));
    QCOMPARE(program_.run(call + QStringList{"--out", program_.path("coordinates.csv")}).code, 0);
    QFile file(program_.path("coordinates.csv"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray figure = file.readAll();
    QVERIFY2(figure.contains("change after 2 steps") && figure.count("layer 1,") == 3 && figure.count("logits,") == 3, figure.constData());
    const auto refused = program_.run(call + QStringList{"--set", "training.initialisation=mup"});
    QCOMPARE(refused.code, 2);
    QVERIFY2(refused.err.contains("expected /training/mup_base_width above 0"), qPrintable(refused.err));
  }

  void one_document_a_sequence() {
    const nlohmann::json packed = evaluate({"--corpus", "held", "--split", "test", "--length", "64"}).json();
    const nlohmann::json json = evaluate({"--corpus", "held", "--split", "test", "--length", "64", "--packing", "document"}).json();
    QCOMPARE(json["packing"].get<std::string>(), "document");
    const nlohmann::json& web = json["losses"][0];
    QCOMPARE(web["sequences"].get<int>(), 60);  // as many as there are documents, each cut to 64 tokens
    QCOMPARE(web["tokens"].get<int>(), 60 * 64);
    QVERIFY(web["loss"] != packed["losses"][0]["loss"]);
    const nlohmann::json whole =
        evaluate({"--corpus", "held", "--split", "test", "--length", "512", "--tokens", "30720", "--packing", "document"}).json();
    const int tokens = whole["losses"][0]["tokens"];
    QVERIFY2(tokens < 60 * 100 && tokens > 60 * 64, qPrintable(QString::number(tokens)));  // whole documents, none as long as the sequence
  }

  void over_lengths() {
    program_.train("lengths");
    const QStringList call{"evaluate", program_.path("lengths"), "--corpus", "held", "--split", "test", "--lengths", "32,64"};
    const nlohmann::json json = program_.run(QStringList{"-q", "--json"} + call + QStringList{"--tokens", "1280"}).json();
    const nlohmann::json& run = json["runs"][0];
    QVERIFY(run["trained_length"] == 64 && run["packing"] == "document" && run["domains"][0]["lengths"].size() == 2);
    QCOMPARE(run["domains"][0]["lengths"][0]["by_document"].size(), size_t{20});
    QVERIFY(QFile::exists(QString::fromStdString(run["file"].get<std::string>())));
    const auto text = program_.run(QStringList{"-q"} + call);
    QVERIFY2(text.code == 0 && text.out.contains("trained on 64 tokens") && text.out.contains("no document of") == false,
             qPrintable(text.err + text.out));
    QVERIFY2(!text.out.contains("-0.0000"), qPrintable(text.out));
    const auto drawn =
        program_.run({"-q", "export", program_.path("lengths"), "--recipe", "loss-over-length", "--out", program_.path("lengths.csv")});
    QVERIFY2(drawn.code == 0, qPrintable(drawn.err));
    QFile file(program_.path("lengths.csv"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray lines = file.readAll();
    QVERIFY2(lines.contains(",32,") && lines.contains(",64,"), lines.constData());
    for (const QStringList& wrong : {QStringList{"--packing", "packed"}, {"--length", "64"}, {"--min-tokens", "40"}})
      QCOMPARE(program_.run(QStringList{"-q"} + call + wrong).code, 2);
    QCOMPARE(program_.run({"-q", "evaluate", program_.path("lengths"), "--min-tokens", "64"}).code, 2);
  }

  void token_by_token() {
    const nlohmann::json json = evaluate({"--tokens", "256", "--reading", "stepwise"}).json();
    QCOMPARE(json["reading"].get<std::string>(), "stepwise");
    for (const auto& loss : json["losses"]) {
      const nlohmann::json& stepwise = loss["stepwise"];
      QVERIFY(std::abs(stepwise["loss"].get<double>() - loss["loss"].get<double>()) < 1e-4);  // a causal model
      QVERIFY(stepwise.contains("price_of_looking_ahead"));
    }
    const auto text = program_.run({"-q", "evaluate", program_.path("run"), "--tokens", "128", "--reading", "stepwise"});
    QVERIFY2(text.out.contains("the price of looking ahead"), qPrintable(text.err + text.out));
    QCOMPARE(program_.run({"-q", "evaluate", program_.path("run"), program_.path("run"), "--reading", "stepwise"}).code, 2);
  }

  /// At each length the targets that one pass has, from prefixes alone: of a causal model the same losses.
  void token_by_token_at_each_length() {
    const QStringList call{"-q", "evaluate", program_.path("run"), "--lengths", "32,64", "--tokens", "256", "--reading", "stepwise"};
    const auto told = program_.run(QStringList{"--json"} + call);
    QVERIFY2(told.code == 0, qPrintable(told.err));
    const nlohmann::json answer = told.json();
    int readings = 0;
    for (const auto& domain : answer["runs"][0]["domains"])
      for (const auto& at : domain["lengths"]) {
        const nlohmann::json& stepwise = at["stepwise"];
        for (const char* last : {"", "last_"}) {
          const auto of = [&](const nlohmann::json& object, const char* key) { return object[last + std::string(key)].get<double>(); };
          QVERIFY2(std::abs(of(stepwise, "loss") - of(at, "loss")) < 1e-4, stepwise.dump().c_str());
          QVERIFY2(std::abs(of(stepwise, "price_of_looking_ahead") - (of(stepwise, "loss") - of(at, "loss"))) < 1e-9,
                   stepwise.dump().c_str());
          ++readings;
        }
      }
    QVERIFY(readings >= 4);
    const auto text = program_.run(call);
    QVERIFY2(text.code == 0 && text.out.contains("the price of looking ahead"), qPrintable(text.err + text.out));
  }

  void loss_by_position() {
    const auto text = program_.run({"-q", "evaluate", program_.path("run"), "--by-position"});
    QVERIFY2(text.code == 0, qPrintable(text.err));
    QVERIFY2(text.out.contains("loss (nats) by position") && text.out.contains("32 to 63"), qPrintable(text.out));
  }

  void text_of_test_files() {
    const nlohmann::json json = evaluate({"--corpus", "held", "--split", "test", "--length", "32", "--tokens", "640"}).json();
    QCOMPARE(json["losses"].size(), size_t(1));
    const nlohmann::json& web = json["losses"][0];
    QVERIFY(web["domain"] == "web" && web["ood"] == true && web["sequences"] == 20 && web["tokens"] == 640);
    QCOMPARE(evaluate({"--domains", "code,prose", "--tokens", "128"}).json()["losses"][0]["domain"].get<std::string>(), "code");
    // One sequence has no standard error.
    QVERIFY(evaluate({"--tokens", "64"}).json()["losses"][0]["standard_error"].is_null());
  }

  /// The checkpoints that a run kept by shares are found by the same shares, of a number of steps that no share divides; two tasks as they
  /// ship, their means and what three checkpoints say of them.
  void shipped_tasks_over_checkpoints() {
    program_.train("odd", {"training.steps=41", "training.keep_checkpoints=[0.9,0.95]"});
    write_tasks();
    const QStringList call{"evaluate", program_.path("odd"),   "--task",        "arc-easy,boolq",
                           "--data",   program_.path("tasks"), "--checkpoints", "90%,95%,100%"};
    const nlohmann::json json = program_.run(QStringList{"-q", "--json"} + call).json();
    QCOMPARE(json["results"].size(), size_t(6));
    std::vector<int64_t> steps;
    for (const auto& average : json["averages"]) steps.push_back(average["step"]);
    QCOMPARE(steps, (std::vector<int64_t>{37, 39, 41}));
    const auto value = [&](size_t result, const char* metric) {
      for (const auto& score : json["results"][result]["scores"])
        if (score["metric"] == metric) return score["value"].get<double>();
      return std::nan("");
    };
    for (size_t i = 0; i < 3; ++i) {
      QCOMPARE(json["results"][i]["key"]["task"].get<std::string>(), "arc-easy");
      QCOMPARE(json["results"][i]["items"].size(), size_t(12));
      QVERIFY(json["results"][i]["partial"] == false && json["results"][3 + i]["chance"] == 0.75);  // nine of twelve answers are yes
      QVERIFY(std::abs(json["averages"][i]["average"].get<double>() - (value(i, "acc_norm") + value(3 + i, "acc")) / 2) < 1e-12);
    }
    const nlohmann::json& over = json["over_checkpoints"];
    QCOMPARE(over.size(), size_t(3));
    QVERIFY(over[0]["task"] == "arc-easy" && over[0]["metric"] == "acc_norm" && over[1]["task"] == "boolq" && !over[2].contains("task"));
    double mean = 0, squares = 0;
    for (const auto& average : json["averages"]) mean += average["average"].get<double>() / 3;
    for (const auto& average : json["averages"]) squares += std::pow(average["average"].get<double>() - mean, 2);
    const double error = std::sqrt(squares / 2 / 3);
    QVERIFY(std::abs(over[2]["mean"].get<double>() - mean) < 1e-12);
    QVERIFY(std::abs(over[2]["standard_error"].get<double>() - error) < 1e-12);
    QVERIFY(std::abs(over[2]["interval_95"][1].get<double>() - mean - 4.302653 * error) < 1e-6);

    const auto text = program_.run(QStringList{"-q"} + call);  // nothing is computed again
    QVERIFY2(text.code == 0, qPrintable(text.err));
    for (const char* words :
         {"average of 2 tasks at step 37: ", "Over 3 checkpoints", "sample deviation", "standard error", "95 % interval"})
      QVERIFY2(text.out.contains(words), qPrintable(text.out));

    const auto one = program_.run(
        {"-q", "--json", "evaluate", program_.path("odd"), "--task", "boolq", "--data", program_.path("tasks"), "--limit", "1"});
    QVERIFY(one.json()["results"][0]["partial"] == true && one.json()["results"][0]["chance"] == 0.75);  // of the whole file
    QVERIFY(QFile::exists(program_.path("odd/tasks/boolq-step-41.json")));
    QVERIFY(QFile::exists(program_.path("odd/tasks/boolq-step-41-limit-1.json")));
  }

  /// A task's own file has its rows beside it; --data names others.
  void a_task_of_ones_own() {
    program_.write("capitals.jsonl", "{\"country\": \"France\", \"right\": \"Paris\", \"other\": \"Rome\"}\n");
    program_.write("rows.jsonl",
                   "{\"country\": \"Spain\", \"right\": \"Madrid\", \"other\": \"Rome\"}\n"
                   "{\"country\": \"Italy\", \"right\": \"Rome\", \"other\": \"Paris\"}\n");
    program_.write("capitals.json",
                   R"({"name": "capitals", "data": "capitals.jsonl", "context": "The capital of {country} is",
                       "choices": ["{right}", "{other}"], "gold": "0", "metric": "acc"})");
    program_.train("own");
    const QStringList call{"evaluate", program_.path("own"), "--task", program_.path("capitals.json")};
    const auto beside = program_.run(call);
    QVERIFY2(beside.code == 0 && beside.err.contains("capitals: 100 %, ") && !beside.err.contains("%, ,"), qPrintable(beside.err));
    const nlohmann::json json = program_.run(QStringList{"-q", "--json"} + call).json();
    QCOMPARE(json["results"][0]["items"].size(), size_t(1));
    QCOMPARE(QString::fromStdString(json["results"][0]["made_from"]["data"].get<std::string>()),
             QFileInfo(program_.path(".")).canonicalFilePath());
    const auto named = program_.run(QStringList{"-q", "--json"} + call + QStringList{"--data", program_.path("rows.jsonl")}).json();
    QCOMPARE(named["results"][0]["items"].size(), size_t(2));
    const auto rows = program_.run({"-q", "evaluate", program_.path("own"), "--task", program_.path("rows.jsonl")});
    QVERIFY2(rows.code == 2 && is_one_error(rows) && rows.err.contains("rows.jsonl is no task: a task of your own is a JSON file"),
             qPrintable(rows.err));
  }

  /// A run that ended early for its accuracy has its end at 100%.
  void the_end_of_a_run_that_ended_early() {
    const auto trained =
        program_.run({"-q", "train", "parity-tiny", "--out", program_.path("parity"), "--set", "training.stop_at_accuracy=0.01"});
    QVERIFY2(trained.code == 0, qPrintable(trained.err));
    const nlohmann::json json = program_
                                    .run({"-q", "--json", "evaluate", program_.path("parity"), "--task", "parity", "--domains", "length-16",
                                          "--samples", "4", "--checkpoints", "100%"})
                                    .json();
    QCOMPARE(json["results"].size(), size_t(1));
    QVERIFY(json["averages"][0]["step"].get<int>() < 2000);
    // compared with a run that another task was scored on: of each task the first row, and those with a score
    const QString scores = program_.run({"-q", "compare", program_.path("own"), program_.path("parity")}).out;
    QVERIFY2(scores.count("\ncapitals ") == 1 && scores.count("\nparity-length-16 ") == 2, qPrintable(scores));
  }

  void refused_tasks_leave_nothing_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("says");
    const auto row = [](const QStringList& arguments, const char* says) {
      QTest::newRow(qPrintable(arguments.join(' '))) << arguments << says;
    };
    row({"--task", "mqar"}, "is read by the tokenizer symbols:8192");
    row({"--task", "arc-easy"}, "needs --data");
    row({"--task", "parity", "--checkpoints", "100%", "--checkpoint", "8"}, "--checkpoints and --checkpoint were both given");
    row({"--task", "parity", "--checkpoints", "5.5"}, "is no step and no share such as 90%");
    row({"--task", "parity", "--checkpoints", "90%"}, "--checkpoints 90% is step 11: ");
  }
  void refused_tasks_leave_nothing() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, says);
    const QByteArray before = program_.contents("run");
    const auto result = program_.run(QStringList{"-q", "evaluate", program_.path("run")} + arguments);
    QVERIFY2(result.code == 2 && is_one_error(result) && result.err.contains(says), qPrintable(result.err + result.out));
    QCOMPARE(program_.contents("run"), before);
    QVERIFY(!QDir(program_.path("run/tasks")).exists());
  }

  /// Data that lacks a field, has a label that is none, ends early or is damaged: the file is named, and the line where there are lines,
  /// and nothing of a result is left.
  void damaged_data_leaves_nothing_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("says");
    const QByteArray good = R"({"question": "q", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "B"})"
                            "\n";
    QByteArray without = good, label = good;
    without.replace(R"(, "answerKey": "B")", ""), label.replace(R"("answerKey": "B")", R"("answerKey": "E")");
    QTest::newRow("a field is missing") << "arc-easy.jsonl" << good + good + without << "arc-easy.jsonl:3: has no field \"answerKey\"";
    QTest::newRow("a wrong label") << "arc-easy.jsonl" << good + label << "arc-easy.jsonl:2: field \"answerKey\" is \"E\"";
    QTest::newRow("cut in a line") << "arc-easy.jsonl" << good + good.left(40) << "arc-easy.jsonl:2:";
    QTest::newRow("an array cut short") << "arc-easy.json"
                                        << "[\n" + good + ",\n" + good.left(40) << "arc-easy.json:4:";
    QFile parquet(qEnvironmentVariable("SACCADE_SOURCE_DIR") + "/tests/fixtures/parquet/arc.parquet");
    QVERIFY(parquet.open(QIODevice::ReadOnly));
    QByteArray damaged = parquet.readAll();
    damaged[damaged.size() - 20] = static_cast<char>(damaged[damaged.size() - 20] ^ 0x7f);
    QTest::newRow("damaged Parquet") << "arc-easy.parquet" << damaged << "arc-easy.parquet: ";
    QTest::newRow("Parquet cut short") << "arc-easy.parquet" << damaged.left(damaged.size() / 2) << "arc-easy.parquet: ";
    QTest::newRow("no gzip") << "arc-easy.jsonl.gz" << good << "arc-easy.jsonl.gz: ";
  }
  void damaged_data_leaves_nothing() {
    QFETCH(QString, file);
    QFETCH(QByteArray, content);
    QFETCH(QString, says);
    QDir(program_.path("damaged")).removeRecursively();
    QDir().mkpath(program_.path("damaged"));
    program_.write("damaged/" + file, content);
    const QByteArray before = program_.contents("run");
    const auto result = program_.run({"-q", "evaluate", program_.path("run"), "--task", "arc-easy", "--data", program_.path("damaged")});
    QVERIFY2(result.code == 3 && is_one_error(result) && result.err.contains(says), qPrintable(result.err + result.out));
    QCOMPARE(program_.contents("run"), before);
    QVERIFY(!QDir(program_.path("run/tasks")).exists());
  }

  void wrong_input_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("says");
    const auto row = [](const QStringList& arguments, int code, const char* says) {
      QTest::newRow(qPrintable(arguments.join(' '))) << arguments << code << says;
    };
    row({"--checkpoint", "5"}, 2, "--checkpoint 5: ");
    row({"--checkpoint", "0"}, 2, "--checkpoint");
    row({"--split", "train"}, 2, "--split");
    row({"--corpus", "held"}, 3, "corpus \"held\" has no validation text");
    row({"--corpus", "held", "--domains", "web"}, 3,
        "corpus \"held\" has no validation text of domain \"web\", only test: import it with files that hold some");
    row({"--corpus", "none"}, 3, "corpus \"none\" not found");
    row({"--corpus", "../held"}, 2, "a name is made of");
    row({"--domains", "prose,poems"}, 2, "--domains: corpus \"mine\" has no domain \"poems\"");
    row({"--length", "0"}, 2, "--length");
    row({"--length", "100000", "--domains", "code"}, 3, "code.validation has ");
    row({"--tokens", "63"}, 2, "--tokens is 63; expected at least one sequence of 64");
    row({"--device", "gpu"}, 2, "device is \"gpu\", expected auto, cpu, cuda, cuda:N or cuda:N-M");
    row({"--device", "cuda:99"}, 4, "device \"cuda:99\"");
  }
  void wrong_input() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, says);
    const QByteArray before = program_.contents("run");
    const auto result = program_.run(QStringList{"-q", "evaluate", program_.path("run")} + arguments);
    QVERIFY2(result.code == code, qPrintable(QString::number(result.code) + ": " + result.err + result.out));
    QVERIFY2(is_one_error(result) && result.err.contains(says), qPrintable(result.err));
    QCOMPARE(program_.contents("run"), before);
  }

 private:
  /// Twelve items of ARC and of BoolQ, in the form in which they are published.
  void write_tasks() const {
    QByteArray arc, boolq;
    for (int i = 0; i < 12; ++i) {
      const std::string n = std::to_string(i);
      const nlohmann::json choices{{"text", {"rain " + n, "the hills", "a road"}}, {"label", {"A", "B", "C"}}};
      const nlohmann::json question{{"question", "What fell for " + n + " days?"}, {"choices", choices}, {"answerKey", i % 2 ? "A" : "B"}};
      arc += QByteArray::fromStdString(question.dump()) + "\n";
      const nlohmann::json yes_or_no{{"passage", "Rain fell for " + n + " days."}, {"question", "did rain fall"}, {"label", i % 4 ? 1 : 0}};
      boolq += QByteArray::fromStdString(yes_or_no.dump()) + "\n";
    }
    QDir().mkpath(program_.path("tasks"));
    program_.write("tasks/arc-easy.jsonl", arc);
    program_.write("tasks/boolq.jsonl", boolq);
  }

  Program::Result evaluate(const QStringList& arguments) const {
    const auto result = program_.run(QStringList{"-q", "--json", "evaluate", program_.path("run")} + arguments);
    if (result.code != 0) qWarning("%s", qPrintable(result.err));
    return result;
  }

  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::EvaluateCliTest)
#include "evaluate_cli_test.moc"
