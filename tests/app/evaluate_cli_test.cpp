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
    row({"--corpus", "held", "--domains", "web"}, 3, "corpus \"held\" has no validation text of domain \"web\", only test");
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
