#include "program.h"
#include "tests/support/odd_json.h"

namespace saccade::test {

namespace fs = std::filesystem;

/// A run that cannot be read never affects another: whatever stands in one run.json, the others are shown, and each that is not is
/// named in one line with the reason.
class OddRunsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.train("good");
    std::ifstream file(program_.path("good/run.json").toStdString());
    versions_ = odd_versions(nlohmann::json::parse(file));
    QVERIFY(versions_.size() > 500);
    for (size_t i = 0; i < versions_.size(); ++i) write_run("many/odd-" + QString::number(i), versions_[i].object);
    fs::copy(program_.path("good").toStdString(), program_.path("many/good").toStdString(), fs::copy_options::recursive);
  }

  void a_folder_of_them_data() {
    QTest::addColumn<QStringList>("arguments");
    const auto row = [](const QStringList& arguments) { QTest::newRow(qPrintable(arguments.join(' '))) << arguments; };
    row({"compare", "many"});
    row({"compare", "many", "--at-loss", "5"});
    for (const char* figure : {"loss", "trajectory", "entropy"}) row({"export", figure, "many", "--out", "figure.csv"});
    row({"export", "series", "many", "--series", "gradient_norm", "--out", "figure.json"});
  }
  void a_folder_of_them() {
    QFETCH(QStringList, arguments);
    const auto result = program_.run(QStringList{"-q", "--json"} + arguments);
    QVERIFY2(result.code == 0, qPrintable(QString::number(result.code) + result.err.right(400)));
    QStringList lines = result.err.split('\n', Qt::SkipEmptyParts);
    lines.removeIf([](const QString& line) { return line.startsWith("warning: ") && line.contains("run.json"); });  // changed by this test
    QCOMPARE(static_cast<size_t>(lines.size()), result.json().at("skipped").size());
    QVERIFY(lines.size() > 300 && static_cast<size_t>(lines.size()) < versions_.size());
    for (const QString& line : lines) QVERIFY2(line.startsWith("skipped: many/odd-") && line.contains("run.json"), qPrintable(line));
    if (arguments.front() == "compare") QVERIFY(result.out.contains("\"tiny\""));
  }

  /// Every command on one run: a result or one line, and never a fault of the program's own.
  void each_alone() {
    const QList<QStringList> commands = {{"compare", "RUN"},
                                         {"stop", "RUN"},
                                         {"resume", "RUN"},
                                         {"evaluate", "RUN", "--tokens", "64"},
                                         {"inspect", "RUN"},
                                         {"generate", "RUN", "--tokens", "2"},
                                         {"export", "loss", "RUN", "--out", "a.csv"}};
    for (size_t i = 0; i < versions_.size(); i += 3) {  // all values and all commands come round
      QStringList arguments = commands[static_cast<qsizetype>(i / 3) % commands.size()];
      fs::remove_all(program_.path("one").toStdString());
      fs::copy(program_.path("good").toStdString(), program_.path("one").toStdString(), fs::copy_options::recursive);
      write_run("one", versions_[i].object);
      const auto result = program_.run(QStringList{"-q"} + arguments.replaceInStrings("RUN", "one"));
      const QString what = arguments.join(' ') + ", " + QString::fromStdString(versions_[i].what) + ": " + result.err;
      QVERIFY2(result.code == 0 || ((result.code == 2 || result.code == 3) && is_one_error(result)), qPrintable(what));
      QVERIFY2(!result.err.contains("internal") && !result.err.contains("json.exception"), qPrintable(what));
    }
  }

  void what_else_a_file_may_hold_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::newRow("deep") << QByteArray(100000, '[');
    QTest::newRow("deep object") << QByteArray("{\"a\":").repeated(100000);
    QTest::newRow("a huge number") << QByteArray("{\"format_version\": 1e999}");
    QTest::newRow("no UTF-8") << QByteArray("{\"name\": \"\xff\"}");
    QTest::newRow("zeros") << QByteArray(5000, '\0');
    QTest::newRow("two of one key") << QByteArray("{\"name\": 1, \"name\": 2}");
  }
  void what_else_a_file_may_hold() {
    QFETCH(QByteArray, content);
    program_.copy("good", "pair/good");
    program_.copy("good", "pair/odd");
    program_.write("pair/odd/run.json", content);
    const auto both = program_.run({"-q", "compare", "pair"});
    QVERIFY2(both.code == 0 && both.err.count('\n') == 1 && both.err.startsWith("skipped: pair/odd/run.json"), qPrintable(both.err));
    const auto named = program_.run({"-q", "compare", "pair/good", "pair/odd"});
    QVERIFY2(named.code == 0 && named.err == both.err && named.out == both.out, qPrintable(named.err));
    const auto alone = program_.run({"-q", "compare", "pair/odd"});
    QVERIFY2(alone.code == 3 && is_one_error(alone) && alone.err.contains("pair/odd/run.json"), qPrintable(alone.err));
  }

  void a_run_without_run_json_is_named() {
    program_.copy("good", "pair/good");
    program_.copy("good", "pair/odd");
    QVERIFY(QFile::remove(program_.path("pair/odd/run.json")));
    const auto result = program_.run({"-q", "compare", "pair"});
    QVERIFY2(result.code == 0 && result.err.startsWith("skipped: pair/odd is no run: it has no run.json"), qPrintable(result.err));
  }

  /// Whoever lost run.json can still stop the process.
  void a_live_run_with_a_damaged_run_json_can_be_stopped() {
    program_.write("long.json", QByteArray::fromStdString(Program::config().dump()));
    auto process = program_.start({"-q", "train", program_.path("long.json"), "--out", "live", "--set", "training.steps=1000000", "--set",
                                   "training.checkpoint_every=1000000"});
    QVERIFY(program_.wait_for_records("live", 30));
    program_.write("live/run.json", "{");
    QCOMPARE(program_.run({"stop", "live"}).code, 0);
    QCOMPARE(Program::finish(*process).code, 130);
    QCOMPARE(program_.run({"-q", "compare", "live"}).code, 0);
  }

 private:
  void write_run(const QString& directory, const nlohmann::json& info) const {
    fs::create_directories(program_.path(directory).toStdString());
    fs::copy(program_.path("good/journal.jsonl").toStdString(), program_.path(directory + "/journal.jsonl").toStdString(),
             fs::copy_options::overwrite_existing);
    program_.write(directory + "/run.json", QByteArray::fromStdString(info.dump(1)));
  }

  Program program_;
  std::vector<OddJson> versions_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::OddRunsTest)
#include "odd_runs_test.moc"
