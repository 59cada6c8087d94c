#include <csignal>

#include "analysis/runs/checkpoint_file.h"
#include "models/corpus/vocabulary.h"
#include "program.h"

namespace saccade::test {
namespace fs = std::filesystem;

/// A run holds its tokenizer: with the file gone, it is evaluated, writes, goes on and is forked as before. Padding of the vocabulary is
/// trained on, saved, and never written.
class TokenizerCliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  void a_run_without_its_tokenizer_s_file_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("beside");
    for (const char* file : {"gpt2.json", "llama2-added.json", "unigram-bytes.json", "r50k_base.tiktoken"})
      QTest::newRow(file) << file << "";
    QTest::newRow("vocab.json with merges.txt") << "pair/vocab.json"
                                                << "pair/merges.txt";
  }
  void a_run_without_its_tokenizer_s_file() {
    QFETCH(QString, file);
    QFETCH(QString, beside);
    const QString folder = "tokenizer";
    for (const QString& name : {file, beside})
      if (!name.isEmpty()) copy_fixture(name, folder);
    const QString tokenizer = program_.path(folder + "/" + file.section('/', -1));
    for (const char* run : {"run", "stopped", "fork"}) fs::remove_all(program_.path(run).toStdString());
    const QStringList settings{"data.tokenizer=" + tokenizer, "data.vocabulary_multiple=128", "training.steps=40"};
    program_.train("run", settings);
    const nlohmann::json losses = evaluate("run"), text = written("run");
    stop_in_the_middle(settings);

    fs::remove_all(program_.path(folder).toStdString());
    fs::remove_all(program_.path("cache").toStdString());  // so that the text is encoded again
    QCOMPARE(evaluate("run"), losses);
    QCOMPARE(written("run"), text);
    const auto resumed = program_.run({"-q", "resume", program_.path("stopped")});
    QVERIFY2(resumed.code == 0, qPrintable(resumed.err));
    QCOMPARE(weights("stopped"), weights("run"));
    const auto forked =
        program_.run({"-q", "fork", program_.path("run"), "--step", "36", "--out", program_.path("fork"), "--set", "training.steps=44"});
    QVERIFY2(forked.code == 0, qPrintable(forked.err));
    QCOMPARE(evaluate("fork").size(), losses.size());
    // A new run does need the file.
    const auto fresh = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("none"), "--set", settings[0]});
    QVERIFY2(fresh.code == 3 && is_one_error(fresh) && fresh.err.contains("there is no such file"), qPrintable(fresh.err));
  }

  /// 330 tokens in 384 rows. At a high temperature every row would be drawn sooner or later.
  void padding_of_the_vocabulary() {
    copy_fixture("gpt2.json", "padded");
    const QString tokenizer = program_.path("padded/gpt2.json");
    program_.train("padded-run", {"data.tokenizer=" + tokenizer, "data.vocabulary_multiple=128"});
    const int64_t tokens = open_tokenizer_file(tokenizer.toStdString())->vocabulary();
    QCOMPARE(tokens, 330);
    bool found = false;
    for (const NamedTensor& weight : weights_of("padded-run").state.weights)
      if (weight.name.find("embedding") != std::string::npos) {
        found = true;
        QCOMPARE(weight.tensor.dim(0), 384);
      }
    QVERIFY(found);
    const auto drawn = program_.run({"--json", "-q", "generate", program_.path("padded-run"), "--tokens", "60", "--samples", "16",
                                     "--temperature", "50", "--prompt", "the old road"});
    QVERIFY2(drawn.code == 0, qPrintable(drawn.err));
    int64_t most = 0, count = 0;
    const nlohmann::json samples = drawn.json().at("samples");
    for (const nlohmann::json& sample : samples)
      for (const int64_t token : sample.at("tokens")) most = std::max(most, token), ++count;
    QVERIFY2(count > 300 && most < tokens && most > tokens - 20, qPrintable(QStringLiteral("%1 of %2").arg(most).arg(count)));
  }

 private:
  void copy_fixture(const QString& name, const QString& folder) const {
    const fs::path to = program_.path(folder).toStdString(), from = qEnvironmentVariable("SACCADE_SOURCE_DIR").toStdString();
    fs::create_directories(to);
    fs::copy_file(from / "tests/fixtures/tokenizers" / name.toStdString(), to / fs::path(name.toStdString()).filename(),
                  fs::copy_options::overwrite_existing);
  }

  nlohmann::json evaluate(const QString& run) const {
    const auto result = program_.run({"--json", "-q", "evaluate", program_.path(run)});
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
    nlohmann::json json = result.json();
    for (const char* varying : {"seconds", "run", "directory"}) json.erase(varying);
    return json;
  }
  nlohmann::json written(const QString& run) const {
    const auto result = program_.run({"--json", "-q", "generate", program_.path(run), "--tokens", "20", "--prompt", "Rain fell"});
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
    return result.json().at("text");
  }

  /// A run of the same settings that a signal ends behind its first checkpoint.
  void stop_in_the_middle(const QStringList& settings) const {
    QStringList arguments{"-q", "train", program_.path("config.json"), "--out", program_.path("stopped")};
    for (const QString& set : settings) arguments << "--set" << set;
    const auto process = program_.start(arguments);
    QVERIFY(QTest::qWaitFor([&] { return QFile::exists(program_.path("stopped/checkpoints/step-4.h5")); }, 60000));
    ::kill(static_cast<pid_t>(process->processId()), SIGTERM);
    QVERIFY(process->waitForFinished(60000));
    QVERIFY2(!QFile::exists(program_.path("stopped/checkpoints/step-40.h5")), "it was done before the signal came");
  }

  Checkpoint weights_of(const QString& run) const {
    const fs::path folder = fs::path(program_.path(run).toStdString()) / "checkpoints";
    return read_checkpoint(fs::exists(folder / "step-40.h5") ? folder / "step-40.h5" : folder / "step-12.h5");
  }
  QByteArray weights(const QString& run) const {
    QCryptographicHash hash(QCryptographicHash::Sha256);
    for (const NamedTensor& weight : weights_of(run).state.weights)
      hash.addData(QByteArrayView(static_cast<const char*>(weight.tensor.raw()), static_cast<qsizetype>(weight.tensor.bytes())));
    return hash.result();
  }

  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::TokenizerCliTest)
#include "tokenizer_cli_test.moc"
