#include "program.h"

namespace saccade::test {

/// `saccade inspect RUN --serve` as a process: lines in, lines out.
class InspectServeCliTest : public QObject {
  Q_OBJECT

  using Json = nlohmann::json;

  static Json ask(QProcess& process, const QByteArray& line) {
    process.write(line + "\n");
    while (!process.canReadLine())
      if (!process.waitForReadyRead(60000)) return {};
    return Json::parse(process.readLine().toStdString(), nullptr, false);
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.import_corpus();
    program_.train("plain");
  }

  void answers_line_by_line_and_ends_with_its_input() {
    const auto process = program_.start({"inspect", "plain", "--serve"});
    QCOMPARE(ask(*process, R"({"id": "a", "method": "hello"})").at("result").at("protocol"), 1);
    const Json text = ask(*process, R"({"id": 2, "method": "text", "parameters": {"source": "typed", "text": "Rain fell \u00e4"}})");
    QCOMPARE(text.at("id"), 2);
    QCOMPARE(text.at("result").at("tokens").size(), size_t(12));
    QCOMPARE(ask(*process, "nonsense").at("error").at("code"), 2);
    QCOMPARE(ask(*process, QByteArray(3 << 20, 'x')).at("error").at("code"), 2);
    const Json change =
        ask(*process, R"({"id": 3, "method": "change", "parameters": {"kind": "mask", "layer": 0, "head": 0, "query": 6, "source": 2}})");
    QCOMPARE(change.at("result").at("changed_from"), 6);
    process->closeWriteChannel();
    QCOMPARE(Program::finish(*process).code, 0);
  }

  void what_is_missing_is_an_answer() {
    const auto process = program_.start({"inspect", "none", "--serve"});
    QCOMPARE(ask(*process, R"({"id": 1, "method": "hello"})").at("error").at("code"), 3);
    process->closeWriteChannel();
    QCOMPARE(Program::finish(*process).code, 0);
    QCOMPARE(program_.run({"inspect", "plain", "--checkpoint", "1"}).code, 2);
  }

 private:
  Program program_;
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::InspectServeCliTest)
#include "inspect_serve_cli_test.moc"
