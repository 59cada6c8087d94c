// Scores of a study's runs on tasks, through the real program: they are those of `saccade evaluate --task`, made once, and what was killed
// goes on.
#include <algorithm>
#include <cmath>

#include "analysis/runs/files.h"
#include "tests/app/program.h"

namespace saccade::test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class StudyScoresTest : public QObject {
  Q_OBJECT

 private:
  Program program_;

  fs::path folder(const QString& name) const { return program_.path(name).toStdString(); }

  /// Trains two widths with two seeds, whose report scores them on `tasks`.
  void train_study(const QString& name, const Json& tasks) const {
    const Json file{{"question", "Which width?"},
                    {"base", Program::config()},
                    {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
                    {"seeds", {1, 2}},
                    {"tasks", tasks}};
    program_.write(name + ".json", QByteArray::fromStdString(file.dump()));
    const auto started = program_.run({"-q", "study", "start", program_.path(name + ".json"), "--out", program_.path(name), "--wait"});
    QVERIFY2(started.code == 0, qPrintable(started.err));
  }

  /// Questions in the form of ARC, whose answers models of bytes find more and less likely.
  void write_questions(const QString& name, int count) const {
    QByteArray lines;
    for (int i = 0; i < count; ++i) {
      const Json row{{"question", "What fell on day " + std::to_string(i) + "?"},
                     {"choices", {{"text", {"rain", "values", "the old road " + std::to_string(i)}}, {"label", {"A", "B", "C"}}}},
                     {"answerKey", std::string(1, static_cast<char>('A' + i % 3))}};
      lines += QByteArray::fromStdString(row.dump()) + "\n";
    }
    program_.write(name, lines);
  }

  static Json scores_of(const Json& report) {
    for (const Json& table : report.at("tables"))
      if (table.at("id") == "scores") return table.at("rows");
    return Json::array();
  }

  /// The rows of a task, one for each width.
  static std::vector<Json> rows_of(const Json& report, const std::string& task) {
    std::vector<Json> rows;
    for (const Json& row : scores_of(report))
      if (row.at(1).at("text") == task) rows.push_back(row);
    return rows;
  }

  Json report(const QString& name, const QStringList& more = {}) const {
    const auto result = program_.run(QStringList{"-q", "--json", "study", "report", program_.path(name)} + more);
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
    return result.json();
  }

  /// What `saccade evaluate --task` says of a run: a result that was there.
  Json evaluated(const QString& run, const QStringList& options) const {
    const auto result = program_.run(QStringList{"-q", "--json", "evaluate", program_.path(run)} + options);
    if (result.code != 0) qFatal("%s", qPrintable(result.err));
    return result.json().at("results").at(0);
  }

 private Q_SLOTS:
  void initTestCase() { program_.import_corpus(); }

  void scoresAreThoseOfEvaluate() {
    train_study("small",
                Json::parse(R"([{"task": "passkey", "lengths": [267], "limit": 9}, {"task": "arc-easy", "checkpoints": [8, "100%"]},
                                         {"task": "piqa"}])"));
    // Without data: the generated task alone, and where the others' come from.
    const Json bare = report("small");
    QCOMPARE(scores_of(bare).size(), size_t{2});
    const std::string remarks = bare.at("remarks").dump();
    QVERIFY2(remarks.find("Not scored on arc-easy: ") != std::string::npos && remarks.find("needs arc-easy.jsonl") != std::string::npos &&
                 remarks.find("allenai/ai2_arc") != std::string::npos,
             remarks.c_str());

    QDir().mkpath(program_.path("held"));
    write_questions("held/arc-easy.jsonl", 30);
    const Json first = report("small", {"--data", program_.path("held")});
    QVERIFY2(first.at("remarks").dump().find("piqa.jsonl") != std::string::npos, first.at("remarks").dump().c_str());
    QVERIFY(first.at("remarks").dump().find("arc-easy") == std::string::npos);
    QCOMPARE(scores_of(first).size(), size_t{6});  // with the average of the two tasks
    const QStringList widths{"width-8", "width-16"};
    for (int cell = 0; cell < 2; ++cell) {
      double questions = 0, error = 0, keys = 0;
      for (const char* seed : {"_seed-1", "_seed-2"}) {
        const QString run = "small/runs/" + widths[cell] + seed;
        for (const char* step : {"8", "12"}) {
          const Json found = evaluated(run, {"--task", "arc-easy", "--data", program_.path("held"), "--checkpoint", step});
          QCOMPARE(found.at("cached"), Json(true));
          questions += found.at("scores").at(1).at("value").get<double>() / 4;
          error += found.at("scores").at(1).at("standard_error").get<double>() / 4;
          QCOMPARE(found.at("scores").at(1).at("metric"), Json("acc_norm"));
        }
        const Json found = evaluated(run, {"--task", "passkey", "--lengths", "267", "--limit", "9"});
        QCOMPARE(found.at("cached"), Json(true));
        keys += found.at("scores").at(0).at("value").get<double>() / 2;
      }
      const Json row = rows_of(first, "arc-easy").at(static_cast<size_t>(cell));
      QCOMPARE(row.at(0).at("text").get<std::string>(), widths[cell].toStdString());
      QVERIFY(std::abs(row.at(5).at("value").get<double>() - 100 * questions) < 1e-9);
      QVERIFY(std::abs(row.at(6).at("value").get<double>() - 100 * error) < 1e-9);
      QVERIFY(std::abs(row.at(7).at("value").get<double>() - 100.0 / 3) < 1e-9);
      QCOMPARE(row.at(5).at("sources").size(), size_t{2});
      QVERIFY(row.at(5).at("sources").at(0).get<std::string>().ends_with(", step 8, 12, arc-easy"));
      const Json passkey = rows_of(first, "passkey-267").at(static_cast<size_t>(cell));
      QVERIFY(std::abs(passkey.at(5).at("value").get<double>() - 100 * keys) < 1e-9);
      QCOMPARE(passkey.at(3).at("text"), Json("9, not all"));
    }
    for (const char* file : {"scores.csv", "scores.tex", "report.html", "report.md"}) {
      const std::string text = read_text(folder("small/report") / file);
      QVERIFY2(text.find("passkey-267") != std::string::npos, file);
    }
  }

  void nothingIsScoredAgain() {
    const Json before = report("small", {"--data", program_.path("held")});
    const QByteArray files = program_.contents("small/runs");
    const auto again = program_.run({"--json", "study", "report", program_.path("small"), "--data", program_.path("held")});
    QVERIFY2(again.code == 0 && !again.err.contains("scoring"), qPrintable(again.err));
    QCOMPARE(scores_of(again.json()), scores_of(before));
    const Json evaluated =
        program_.run({"-q", "--json", "study", "evaluate", program_.path("small"), "--data", program_.path("held")}).json();
    QVERIFY2(evaluated.at("made") == 0 && evaluated.at("complete") == true, evaluated.dump().c_str());
    QVERIFY(evaluated.at("files").dump().find("runs/width-8_seed-1/tasks/arc-easy-step-12.json") != std::string::npos);
    QCOMPARE(program_.contents("small/runs"), files);
    // Other questions are scored anew.
    QDir().mkpath(program_.path("others"));
    write_questions("others/arc-easy.jsonl", 20);
    QCOMPARE(rows_of(report("small", {"--data", program_.path("others")}), "arc-easy").at(0).at(3).at("text"), Json("20"));
    // Checkpoints and data may go.
    for (const auto& run : fs::directory_iterator(folder("small/runs"))) fs::remove_all(run.path() / "checkpoints");
    QCOMPARE(rows_of(report("small"), "arc-easy").at(0).at(3).at("text"), Json("20"));
    const Json gone = report("small", {"--data", program_.path("held")});
    QVERIFY(rows_of(gone, "arc-easy").empty());
    const std::string told = gone.at("remarks").dump();  // of all runs in one line
    QVERIFY2(
        QRegularExpression("Not scored on arc-easy: width-8_seed-1 and \\d more: the checkpoint is gone").match(told.c_str()).hasMatch(),
        told.c_str());
  }

  void aDamagedFileIsAnError() {
    QDir().mkpath(program_.path("damaged"));
    program_.write("damaged/arc-easy.jsonl", "{\"question\": \"?\"}\n");
    const auto result = program_.run({"-q", "study", "report", program_.path("small"), "--data", program_.path("damaged")});
    QVERIFY2(is_one_error(result) && result.code == 3 && result.err.contains("arc-easy.jsonl:1"), qPrintable(result.err));
  }

  /// Killed in the middle of the items: what is done is not done again, and the score is that of nobody disturbed.
  void whatWasKilledGoesOn() {
    train_study("killed", Json::parse(R"([{"task": "s-niah-1", "lengths": [1024], "limit": 400}])"));
    const fs::path tasks = folder("killed/runs/width-8_seed-1/tasks"), part = tasks / ".s-niah-1-1024-step-12-limit-400.part";
    const auto process = program_.start({"-q", "study", "evaluate", program_.path("killed")});
    const auto lines = [&] {
      std::ifstream file(part);
      return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
    };
    QVERIFY(QTest::qWaitFor([&] { return lines() > 1 || process->state() == QProcess::NotRunning; }, 60000 * kSlower));
    process->kill();
    process->waitForFinished();
    QVERIFY2(lines() > 1 && lines() < 401, "it was not killed in the middle");
    const auto again = program_.run({"--json", "study", "evaluate", program_.path("killed")});
    QVERIFY2(again.code == 0 && again.err.contains("goes on: ") && again.err.contains(" of 400 are done"), qPrintable(again.err));
    QVERIFY(again.json().at("made") == 4 && again.json().at("complete") == true && !fs::exists(part));
    const Json rows = scores_of(report("killed"));
    QCOMPARE(rows.size(), size_t{2});
    double sum = 0;
    for (const char* seed : {"1", "2"})
      sum +=
          evaluated(QString("killed/runs/width-8_seed-") + seed, {"--task", "s-niah-1", "--lengths", "1024", "--limit", "400", "--again"})
              .at("scores")
              .at(0)
              .at("value")
              .get<double>();
    QVERIFY(std::abs(rows.at(0).at(5).at("value").get<double>() - 50 * sum) < 1e-9);
  }

  /// A study without "evaluations": --seconds 0 makes nothing, --recorded shows what is there.
  void whatIsThereIsShown() {
    train_study("there", Json::parse(R"([{"task": "passkey", "lengths": [267], "limit": 2}])"));
    const Json none = program_.run({"-q", "--json", "study", "evaluate", program_.path("there"), "--seconds", "0"}).json();
    QVERIFY(none.at("made") == 0 && none.at("complete") == false);
    QVERIFY(scores_of(report("there", {"--recorded"})).empty());
    QVERIFY(!fs::exists(folder("there/runs/width-8_seed-1/tasks")));
    QCOMPARE(scores_of(report("there")).size(), size_t{2});
    QCOMPARE(scores_of(report("there", {"--recorded"})).size(), size_t{2});
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::StudyScoresTest)
#include "study_scores_test.moc"
