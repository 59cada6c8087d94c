#include <csignal>

#include "program.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// A signal ends what has nothing to keep within two seconds, and nothing of it stays.
class StopCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QByteArray lines;
    quint64 state = 1;
    for (int document = 0; document < 400; ++document) {
      QByteArray text;
      while (text.size() < 20000) {
        for (int letter = 0, length = 3 + static_cast<int>((state >> 40) % 7); letter < length; ++letter) {
          state = state * 6364136223846793005U + 1442695040888963407U;
          text += static_cast<char>('a' + (state >> 33) % 26);
        }
        text += ' ';
      }
      lines += "{\"text\": \"" + text + "\", \"meta\": {\"redpajama_set_name\": \"" + (document % 4 ? "prose" : "code") + "\"}}\n";
    }
    program_.write("text.jsonl", lines);
    const auto imported = program_.run({"-q", "corpus", "import", "mine", program_.path("text.jsonl"), "--validation-share", "0.3"});
    QVERIFY2(imported.code == 0, qPrintable(imported.err));
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
  }

  void a_tokenizer_in_training_data() {
    QTest::addColumn<int>("signal");
    QTest::newRow("SIGTERM") << SIGTERM;
    QTest::newRow("SIGINT") << SIGINT;
  }
  void a_tokenizer_in_training() {
    QFETCH(int, signal);
    auto process =
        program_.start({"train", program_.path("config.json"), "--out", program_.path("run"), "--set", "data.tokenizer=bpe:60000"});
    QByteArray said;
    QVERIFY(QTest::qWaitFor([&] { return (said += process->readAllStandardError()).contains("training the tokenizer"); }, 60000));
    QTest::qSleep(1000);
    QCOMPARE(process->state(), QProcess::Running);
    ::kill(static_cast<pid_t>(process->processId()), signal);
    QVERIFY2(process->waitForFinished(2000), "still running two seconds after the signal");
    QCOMPARE(process->exitStatus(), QProcess::NormalExit);
    QCOMPARE(process->exitCode(), 130);
    QVERIFY(process->readAllStandardError().contains("saccade: stopped"));
    QVERIFY(!fs::exists(program_.path("run").toStdString()));
    QVERIFY(QDir(program_.path("cache/tokenizers")).entryList(QDir::Files | QDir::Hidden).isEmpty());
  }

  /// The model comes whole out of the process that trains it, and an error with its reason.
  void a_tokenizer_trained_to_its_end() {
    const auto trained =
        program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("bpe"), "--set", "data.tokenizer=bpe:400"});
    QVERIFY2(trained.code == 0, qPrintable(trained.err));
    QByteArray few;
    for (const char* domain : {"prose", "code"})
      for (int i = 0; i < 40; ++i)
        few += "{\"text\": \"document " + QByteArray::number(i) + " of " + domain + "\", \"meta\": {\"redpajama_set_name\": \"" + domain +
               "\"}}\n";
    program_.write("few.jsonl", few);
    QCOMPARE(program_.run({"-q", "corpus", "import", "few", program_.path("few.jsonl"), "--validation-share", "0.3"}).code, 0);
    const auto refused = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("none"), "--set",
                                       "data.corpus=few", "--set", "data.tokenizer=unigram:900000"});
    QVERIFY2(refused.code == 3 && is_one_error(refused) && refused.err.contains("cannot train the tokenizer unigram:900000"),
             qPrintable(refused.err));
  }

  void a_corpus_being_imported() {
    QByteArray lines;
    QFile text(program_.path("text.jsonl"));
    QVERIFY(text.open(QIODevice::ReadOnly));
    const QByteArray once = text.readAll();
    for (int i = 0; i < 12; ++i) lines += QByteArray(once).replace("\"text\": \"", "\"text\": \"" + QByteArray::number(i));
    program_.write("much.jsonl", lines);
    const QString corpora = program_.path("data/corpora");
    const QDir::Filters all = QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot;
    const QStringList before = QDir(corpora).entryList(all);
    auto process = program_.start({"-q", "corpus", "import", "much", program_.path("much.jsonl")});
    QVERIFY(QTest::qWaitFor([&] { return QDir(corpora).entryList({".much.aside-*"}, all).size() == 1; }, 60000));
    process->terminate();
    QVERIFY2(process->waitForFinished(2000), "still running two seconds after the signal");
    QCOMPARE(process->exitCode(), 130);
    QCOMPARE(QDir(corpora).entryList(all), before);
  }

  /// More threads than cores make nothing faster, so they are cut, and the run says so.
  void threads_beyond_the_cores() {
    QElapsedTimer watch;
    watch.start();
    const auto result = program_.run({"train", program_.path("config.json"), "--out", program_.path("threads"), "--set", "threads=1024"});
    QVERIFY2(result.code == 0 && result.err.contains("/threads is 1024, and there are"), qPrintable(result.err));
    QVERIFY2(watch.elapsed() < 30000, qPrintable(QString::number(watch.elapsed())));
  }

 private:
  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StopCliTest)
#include "stop_cli_test.moc"
