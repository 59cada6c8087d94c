#include <QtTest>
#include <filesystem>

#include "models/json.h"

namespace saccade::test {

/// The real program, with folders of its own.
class CorpusCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    write("web.train.jsonl",
          "{\"text\": \"first text\", \"meta\": {\"redpajama_set_name\": \"RedPajamaC4\"}}\n"
          "{\"text\": \"second text\", \"meta\": {\"redpajama_set_name\": \"RedPajamaGithub\"}}\n"
          "no json\n{\"text\": \"first text\"}\n");
    write("web.validation.jsonl", "{\"text\": \"größer\", \"meta\": {\"redpajama_set_name\": \"RedPajamaC4\"}}\n");
    write("empty.jsonl", "");
    write("damaged.jsonl.zst", "this is no zstd");
    write("damaged.jsonl.gz", "this is no gzip");
  }

  void import_list_show_samples() {
    Result result =
        run({"--json", "corpus", "import", "mine", path("web.train.jsonl"), path("web.validation.jsonl"), "--rename", "c4=web"});
    QCOMPARE(result.code, 0);
    const auto imported = nlohmann::json::parse(result.out.toStdString());
    QCOMPARE(imported["documents"].get<int>(), 3);
    QCOMPARE(imported["duplicates"].get<int>(), 1);
    QCOMPARE(imported["malformed"].get<int>(), 1);
    QCOMPARE(imported["domains"]["web"]["validation"]["documents"].get<int>(), 1);
    QVERIFY(result.err.contains("web.train.jsonl:3: no JSON"));

    const auto shown = nlohmann::json::parse(run({"--json", "corpus", "show", "mine"}).out.toStdString());
    QCOMPARE(shown["hash"], imported["hash"]);
    QCOMPARE(shown["domains"], imported["domains"]);
    QVERIFY(run({"corpus", "list"}).out.contains("mine"));
    QVERIFY(run({"corpus", "list"}).out.contains("local-text"));
    const auto samples =
        nlohmann::json::parse(run({"--json", "corpus", "samples", "mine", "--domain", "web", "--bytes", "3"}).out.toStdString());
    QCOMPARE(samples.size(), size_t(1));
    QCOMPARE(samples[0]["text"].get<std::string>(), std::string("gr…"));  // no half character

    const Result there = run({"corpus", "import", "mine", path("web.train.jsonl")});
    QVERIFY2(there.code == 2 && there.err.contains("--replace"), qPrintable(there.err));
    QCOMPARE(run({"corpus", "import", "mine", path("web.train.jsonl"), "--replace"}).code, 0);
  }

  void a_rename_of_no_domain_is_told() {
    const Result result = run({"corpus", "import", "named", path("web.train.jsonl"), "--rename", "c4=prose", "--rename", "c5=web"});
    QCOMPARE(result.code, 0);
    QVERIFY2(result.err.contains("rename \"c5\" to \"web\": no document taken is of that domain") && !result.err.contains("\"c4\""),
             qPrintable(result.err));
  }

  void short_documents_are_told_by_domain() {
    const QStringList call{"corpus", "import", "long", path("web.train.jsonl"), "--min-tokens", "11"};
    const Result result = run(QStringList{"--json"} + call);
    QCOMPARE(result.code, 0);
    const auto imported = nlohmann::json::parse(result.out.toStdString());
    QVERIFY(imported["too_short"] == 2 && imported["documents"] == 1);
    QVERIFY2(imported["too_short_by_domain"] == nlohmann::json({{"c4", 1}, {"web", 1}}), qPrintable(result.out));
    const Result shown = run({"corpus", "show", "long"});
    QVERIFY2(shown.out.contains("left out as too short: c4 1, web 1"), qPrintable(shown.out));
    QVERIFY(run(call + QStringList{"--replace"}).out.contains("2 too short (c4 1, web 1)"));
  }

  void bad_input_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const QStringList& arguments, int code, const char* says) {
      QTest::newRow(name) << arguments << code << says;
    };
    row("no subcommand", {"corpus"}, 2, "expected import, list");
    row("no source", {"corpus", "import", "x"}, 2, "SOURCE");
    row("bad name", {"corpus", "import", "a/b", path("web.train.jsonl")}, 2, "a/b");
    row("bad rename", {"corpus", "import", "x", path("web.train.jsonl"), "--rename", "c4"}, 2, "OLD=NEW");
    row("bad share", {"corpus", "import", "x", path("web.train.jsonl"), "--test-share", "2"}, 2, "shares");
    row("missing file", {"corpus", "import", "x", path("nothing.jsonl")}, 3, "nothing.jsonl");
    row("empty file", {"corpus", "import", "x", path("empty.jsonl")}, 3, "no document");
    row("damaged zstd", {"corpus", "import", "x", path("damaged.jsonl.zst")}, 3, "damaged zstd data");
    row("damaged gzip", {"corpus", "import", "x", path("damaged.jsonl.gz")}, 3, "damaged gzip data");
    row("missing field", {"corpus", "import", "x", path("web.train.jsonl"), "--domain-field", "set"}, 3, "\"set\"; it has meta, text");
    row("missing text", {"corpus", "import", "x", path("web.train.jsonl"), "--text-field", "body"}, 3,
        "no field \"body\"; it has meta, text");
    row("unknown corpus", {"corpus", "show", "nothing"}, 3, "nothing");
    row("unknown domain", {"corpus", "samples", "task-copy.kilobytes-1", "--domain", "web"}, 3, "length-64");
    row("unknown split", {"corpus", "samples", "task-copy.kilobytes-1", "--split", "dev"}, 2, "dev");
    row("no count", {"corpus", "samples", "task-copy.kilobytes-1", "--count", "0"}, 2, "--count");
  }
  void bad_input() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, says);
    const Result result = run(arguments);
    QCOMPARE(result.code, code);
    QVERIFY2(result.err.contains(says), qPrintable(result.err));
    QVERIFY(result.out.isEmpty());
    QVERIFY(!std::filesystem::exists(path("data/corpora/x").toStdString()));
  }

 private:
  struct Result {
    int code;
    QString out, err;
  };

  Result run(const QStringList& arguments) const {
    QProcess process;
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SACCADE_DATA", path("data"));
    environment.insert("SACCADE_CACHE", path("cache"));
    process.setProcessEnvironment(environment);
    process.start(qEnvironmentVariable("SACCADE_BINARY"), arguments);
    process.waitForFinished(60000);
    return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
  }

  QString path(const QString& name) const { return folder_.path() + "/" + name; }

  void write(const QString& name, const QByteArray& content) const {
    QFile file(path(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
  }

  QTemporaryDir folder_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::CorpusCliTest)
#include "corpus_cli_test.moc"
