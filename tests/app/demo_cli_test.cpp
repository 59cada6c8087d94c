// saccade demo: a study that trains at once, goes on after a stop, and shows what it has.
#include "program.h"

using namespace saccade::test;

class DemoCliTest : public QObject {
  Q_OBJECT

  Program program_;
  /// Ten steps of models so narrow that they take a second.
  QStringList demo(const QStringList& more = {}) const {
    QStringList arguments{"--json", "demo", "--no-window", "--out", program_.path("demo")};
    for (const char* value : {"training.steps=10", "training.warmup_steps=2", "training.batch_tokens=512", "training.evaluation_tokens=512",
                              "training.evaluate_every=5", "training.checkpoint_every=5", "data.corpus=mine", "data.train=[\"prose\"]",
                              "data.ood=[\"code\"]", "architecture.width=48", "architecture.layers=2"})
      arguments << "--set" << value;
    return arguments + more;
  }

 private Q_SLOTS:
  void initTestCase() {
    QByteArray lines;
    for (int i = 0; i < 120; ++i) {
      const QByteArray n = QByteArray::number(i);
      const QByteArray text = i % 2 ? "On day " + n + " rain fell on the hills and washed the road to the sea away. "
                                    : "for (int i = 0; i < " + n + "; ++i) sum += values[i]; return sum; ";
      lines += "{\"text\": \"" + text.repeated(6) + "\", \"meta\": {\"redpajama_set_name\": \"" + (i % 2 ? "prose" : "code") + "\"}}\n";
    }
    program_.write("text.jsonl", lines);
    const auto result =
        program_.run({"-q", "corpus", "import", "mine", program_.path("text.jsonl"), "--validation-share", "0.2", "--test-share", "0.2"});
    QVERIFY2(result.code == 0, qPrintable(result.err));
  }

  void trainsReportsAndShowsAgain() {
    const auto first = program_.run(demo());
    QVERIFY2(first.code == 0, qPrintable(first.err));
    const nlohmann::json json = first.json();
    QCOMPARE(json["runs"].size(), size_t(3));
    QCOMPARE(json["comparison"]["rows"].size(), size_t(3));
    QVERIFY(QFile::exists(program_.path("demo/report/report.html")) && QFile::exists(program_.path("demo/figures/loss.csv")));
    const nlohmann::json status = program_.run({"--json", "study", "status", program_.path("demo")}).json();
    QCOMPARE(status["complete"], true);
    for (const auto& cell : status["cells"]) QCOMPARE(cell["tuning"]["state"], "untuned");

    // Again: nothing is trained, and what an interrupted demo lacks is.
    const QString journal = QString::fromStdString(json["runs"][0].get<std::string>()) + "/journal.jsonl";
    const auto bytes = [&] {
      QFile file(journal);
      return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    };
    const QByteArray before = bytes();
    QVERIFY(!before.isEmpty());
    QVERIFY(QDir(QString::fromStdString(json["runs"][1].get<std::string>())).removeRecursively());
    const auto second = program_.run(demo());
    QVERIFY2(second.code == 0, qPrintable(second.err));
    QCOMPARE(bytes(), before);
    const auto rows = [](nlohmann::json comparison) {  // without what was measured of the process
      for (auto& row : comparison["rows"])
        for (const char* measured : {"tokens_per_second", "seconds", "peak_memory_bytes"}) row.erase(measured);
      return comparison["rows"];
    };
    QCOMPARE(rows(second.json()["comparison"]), rows(json["comparison"]));
  }

  void anotherFolderIsRefused() {
    program_.train("run");
    const auto result = program_.run({"demo", "--no-window", "--out", program_.path("run")});
    QCOMPARE(result.code, 2);
    QVERIFY2(result.err.contains("holds something else than a study"), qPrintable(result.err));
  }
};

QTEST_GUILESS_MAIN(DemoCliTest)
#include "demo_cli_test.moc"
