#include "program.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

namespace saccade::test {

/// Configs, command lines and machines that cannot be: one line, the exit code, and no directory left behind.
class BadConfigTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.write("config.json", QByteArray::fromStdString(Program::config().dump()));
    program_.write("syntax.json", "{\n  \"name\": \"x\",\n  \"data\": {,}\n}\n");
    program_.write("twice.json", R"({"training": {"steps": 1, "steps": 2}})");
    program_.write("list.json", "[1, 2]");
    program_.write("empty.json", "");
    program_.write("garbage.model", QByteArray(4000, 'x'));
    program_.write("sparse.json", "");
    std::filesystem::resize_file(program_.path("sparse.json").toStdString(), uintmax_t{1} << 40);
    QCOMPARE(::mkfifo(program_.path("pipe").toLocal8Bit().constData(), 0600), 0);
  }

  void setting_data() {
    QTest::addColumn<QStringList>("overrides");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const QStringList& overrides, int code, const char* says) {
      QTest::newRow(name) << overrides << code << says;
    };
    row("unknown key", {"training.learning_rat=1"}, 2, "/training has no setting \"learning_rat\"; did you mean \"learning_rate\"?");
    row("unknown section", {"trainning.steps=1"}, 2, "did you mean \"training\"?");
    row("unknown mixer", {"architecture.mixer=top1_chnk"}, 2, "did you mean \"top1_chunk\"?");
    row("setting of another mixer", {"architecture.chunk=16"}, 2, "/architecture has no setting \"chunk\"");
    row("text for a number", {"training.steps=many"}, 2, "/training/steps is \"many\"; expected an integer from 1");
    row("fraction for an integer", {"training.steps=1.5"}, 2, "/training/steps is 1.5; expected an integer");
    row("number for a list", {"data.train=3"}, 2, "/data/train is 3; expected a list of texts");
    row("below the range", {"training.learning_rate=-1"}, 2, "/training/learning_rate is -1; expected a number from 0 to 100");
    row("above the range", {"architecture.layers=5000"}, 2, "/architecture/layers is 5000; expected an integer from 1 to 1024");
    row("heads do not divide the width", {"architecture.heads=3"}, 2, "/architecture/heads is 3, which does not divide the width 16");
    row("chunk beyond the sequence", {"architecture.mixer=top1_chunk", "architecture.chunk=128"}, 2, "/architecture/chunk is 128");
    row("window below 0", {"architecture.window=-1"}, 2, "/architecture/window is -1");
    row("batch is no multiple", {"training.batch_tokens=100"}, 2, "expected a multiple of /data/sequence_length, 64");
    row("gradient accumulation does not divide", {"training.gradient_accumulation=3"}, 2, "/training/gradient_accumulation is 3");
    row("domain on both sides", {"data.ood=[\"prose\"]"}, 2, "/data/ood names the domain \"prose\"");
    row("unknown domain", {"data.train=[\"poems\"]"}, 2, "has no domain \"poems\"; it has code, prose");
    row("unknown device", {"device=gpu"}, 2, "/device is \"gpu\"; expected auto, cpu, cuda, cuda:N or cuda:N-M");
    row("bf16 on the CPU", {"precision=bf16"}, 2, "/precision is \"bf16\"");
    row("no such corpus", {"data.corpus=nothing"}, 3, "corpus \"nothing\" not found");
    row("corpus name that is a path", {"data.corpus=../data"}, 2, "../data");
    row("tokenizer of no kind", {"data.tokenizer=words"}, 2, "tokenizer \"words\", expected bytes, bpe:SIZE");
    row("vocabulary is no number", {"data.tokenizer=bpe:many"}, 2, "after the colon stands the size of the vocabulary");
    row("no such tokenizer", {"data.tokenizer=nothing.model"}, 3, "nothing.model: there is no such file");
    row("damaged tokenizer", {"data.tokenizer=" + program_.path("garbage.model")}, 3, "garbage.model");
    row("vocabulary beyond the text", {"data.tokenizer=bpe:200000"}, 3, "bpe");
    row("sequences longer than the text", {"data.sequence_length=65536", "training.batch_tokens=65536"}, 3, "prose");
    row("more memory than there is", {"architecture.width=65536", "architecture.layers=1024"}, 4, "reduce /training/batch_tokens");
  }
  void setting() {
    QFETCH(QStringList, overrides);
    QFETCH(int, code);
    QFETCH(QString, says);
    QStringList arguments{"-q", "train", program_.path("config.json"), "--out", program_.path("new/run")};
    for (const QString& o : overrides) arguments << "--set" << o;
    expect(program_.run(arguments), code, says);
    QVERIFY(!QFileInfo::exists(program_.path("new/run")));
  }

  void command_line_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* name, const QStringList& arguments, int code, const QString& says) {
      QTest::newRow(name) << arguments << code << says;
    };
    const auto file = [&](const char* name) { return program_.path(name); };
    row("unknown command", {"trian", "x"}, 2, "there is no command \"trian\"; did you mean \"train\"?");
    row("unknown inner command", {"corpus", "improt", "x", "y"}, 2, "corpus has no command \"improt\"; did you mean \"import\"?");
    row("unknown option", {"train", "c", "--outt", "r"}, 2, "train has no option --outt; did you mean --out?");
    row("one argument too many", {"inspect", "a", "b"}, 2, "inspect: nothing is expected at \"b\"");
    row("no run directory", {"train", file("config.json")}, 2, "--out is required");
    row("no inner command", {"corpus"}, 2, "corpus: expected import, list, show or samples");
    row("no number", {"evaluate", "a", "--checkpoint", "last"}, 2, "--checkpoint");
    row("unknown architecture", {"architectures", "avei"}, 2, "did you mean \"avey\"?");
    row("override without value", {"plan", file("config.json"), "--set", "training.steps"}, 2, "expected section.key=value");
    row("syntax error", {"plan", file("syntax.json")}, 2, "syntax.json:3:12: not JSON");
    row("duplicate key", {"plan", file("twice.json")}, 2, "twice.json: /training/steps is given twice; expected once");
    row("no object", {"plan", file("list.json")}, 2, "expected an object");
    row("empty config", {"plan", file("empty.json")}, 2, "empty.json:1:1: not JSON");
    row("missing config", {"plan", file("none.json")}, 2, "none.json cannot be read");
    row("no such preset", {"plan", "mqar-tinny"}, 2, "there is no preset \"mqar-tinny\"; did you mean \"mqar-tiny\"?");
    row("config is a pipe", {"plan", file("pipe")}, 2, "is no regular file");
    row("config is a device", {"plan", "/dev/zero"}, 2, "is no regular file");
    row("config without an end", {"plan", file("sparse.json")}, 2, "has more than 16 MiB");
    row("config is a folder", {"plan", program_.path("data")}, 2, "data cannot be read");
    row("plan with a vocabulary that is no number", {"plan", file("config.json"), "--set", "data.tokenizer=bpe:x"}, 2, "bpe:4096");
    row("override with a wrong value", {"plan", file("config.json"), "--set", "training.learning_rate=abc"}, 2,
        "--set training.learning_rate=abc: /training/learning_rate is \"abc\"; expected a number");
    row("override of an unknown setting", {"plan", file("config.json"), "--set", "training.learningrate=1"}, 2,
        "--set training.learningrate=1: /training has no setting \"learningrate\"; did you mean");
    row("plan with an unknown tokenizer", {"plan", file("config.json"), "--set", "data.tokenizer=words"}, 2, "expected bytes");
    row("run directory below a file", {"train", file("config.json"), "--out", file("config.json") + "/run"}, 3,
        "config.json: Not a directory");
    row("run directory is a file", {"train", file("config.json"), "--out", file("empty.json")}, 3, "empty.json");
    row("run directory below /proc", {"train", file("config.json"), "--out", "/proc/saccade/run"}, 3, "/proc/saccade");
    row("run directory holds other things", {"train", file("config.json"), "--out", program_.path("data")}, 2, "is not empty");
  }
  void command_line() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, says);
    const QByteArray before = program_.contents("data");
    expect(program_.run(QStringList{"-q"} + arguments), code, says);
    QCOMPARE(program_.contents("data"), before);
  }

  /// A plan is shown, then said to be impossible: here standard output is not empty.
  void plan_that_does_not_fit() {
    const auto result = program_.run(
        {"--json", "plan", program_.path("config.json"), "--set", "architecture.width=65536", "--set", "architecture.layers=1024"});
    QCOMPARE(result.code, 4);
    QVERIFY(result.json()["peak_bytes"].get<double>() > 1e12);
    QVERIFY2(result.err.startsWith("saccade: the run needs ") && result.err.contains("reduce") && result.err.count('\n') == 1,
             qPrintable(result.err));
  }

  /// The system grants less address space than the model takes, which no look at the free memory tells.
  void refused_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    QSKIP("a sanitizer takes terabytes of address space");
#endif
    const auto limit = [] {
      const rlimit bytes{size_t{600} << 20, size_t{600} << 20};
      setrlimit(RLIMIT_AS, &bytes);
    };
    const auto result = program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("new/run"), "--set",
                                      "architecture.width=2048", "--set", "architecture.layers=4"},
                                     limit);
    expect(result, 4, "memory");
    QVERIFY(result.err.contains("reduce"));
    QVERIFY(!QFileInfo::exists(program_.path("new/run")));
  }

  void cuda_in_a_build_without() {
    const nlohmann::json devices = program_.run({"--json", "doctor"}).json()["devices"];
    if (devices.size() > 1) QSKIP("this machine has a CUDA device");
    expect(program_.run({"-q", "train", program_.path("config.json"), "--out", program_.path("new/run"), "--set", "device=cuda"}), 4,
           "cuda");
    QVERIFY(!QFileInfo::exists(program_.path("new/run")));
  }

 private:
  static void expect(const Program::Result& result, int code, const QString& says) {
    QVERIFY2(result.code == code, qPrintable(QString("exit code %1: %2%3").arg(result.code).arg(result.err, result.out)));
    QVERIFY2(is_one_error(result), qPrintable(result.err + result.out));
    QVERIFY2(result.err.contains(says), qPrintable(result.err));
  }

  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::BadConfigTest)
#include "bad_config_test.moc"
