// Tasks of a study: what its file may say of them, and the table of scores with its tests.
#include <QtTest>

#include <set>

#include "analysis/studies/report/scores_table.h"
#include "analysis/tasks/task_items.h"
#include "kernels/engine/error.h"
#include "tests/support/tiny_run.h"

using namespace saccade;
using Json = nlohmann::json;

namespace {

Study parse(const Json& tasks) {
  const Json file{{"question", "Which window?"},
                  {"base", test::tiny_run("mine")},
                  {"axes", Json::array({{{"setting", "architecture.window"}, {"values", {8, 16, 32}}}})},
                  {"seeds", {1, 2, 3}},
                  {"tasks", tasks}};
  return parse_study(file.dump(), "s.json", "s");
}

/// A seed with so many of 20 items right, the first ones.
SeedScore with_right(int64_t seed, int right) {
  SeedScore score{seed, "run-" + std::to_string(seed), {12}, right / 20.0, 0.1, 0, std::vector<double>(20, 0.0), "items"};
  std::fill(score.right.begin(), score.right.begin() + right, 1.0);
  return score;
}

/// The rows of one task of three cells.
std::vector<std::vector<ReportEntry>> rows_of(const std::vector<std::vector<SeedScore>>& cells) {
  const StudyView view = view_study(parse(Json::array()), {});
  StudyScores scores;
  scores.tasks.push_back({"arc-easy", "acc_norm", 0.25, 20, false, cells});
  return scores_table(view, scores)->rows;
}

constexpr size_t kScore = 5, kDifference = 8, kP = 9, kHolm = 10, kOver = 11, kBest = 12;

}  // namespace

class StudyTasksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void mistakesAreNamed_data() {
    QTest::addColumn<QString>("entry");
    QTest::addColumn<QString>("message");
    QTest::newRow("key") << R"({"task": "s-niah-1", "lenghts": [512]})"
                         << "/tasks/0 has no setting \"lenghts\"; did you mean \"lengths\"?";
    QTest::newRow("name") << R"({"task": "s-niah-7"})"
                          << "/tasks/0: there is no task \"s-niah-7\"";
    QTest::newRow("none") << R"({"limit": 5})"
                          << "/tasks/0/task is missing";
    QTest::newRow("text") << R"("arc-easy")"
                          << "/tasks/0 is \"arc-easy\"; expected an object";
    QTest::newRow("length") << R"({"task": "s-niah-1", "lengths": 512})"
                            << "/tasks/0/lengths is 512; expected tokens";
    QTest::newRow("lengths of choices") << R"({"task": "arc-easy", "lengths": [512]})"
                                        << "/tasks/0: --lengths is for generated prompts";
    QTest::newRow("limit") << R"({"task": "arc-easy", "limit": 0})"
                           << "/tasks/0/limit is 0; expected an integer";
    QTest::newRow("checkpoint") << R"({"task": "arc-easy", "checkpoints": ["9O%"]})"
                                << "/tasks/0/checkpoints: \"9O%\" is no step and no share";
    QTest::newRow("reading") << R"({"task": "arc-easy", "reading": "onepass"})"
                             << "did you mean \"one_pass\"?";
  }
  void mistakesAreNamed() {
    QFETCH(QString, entry);
    QFETCH(QString, message);
    try {
      parse(Json::array({Json::parse(entry.toStdString())}));
      QFAIL("it was accepted");
    } catch (const UsageError& error) {
      QVERIFY2(QString(error.what()).startsWith("s.json: ") && QString(error.what()).contains(message), error.what());
    }
  }

  void entriesAreRead() {
    const Study study = parse(Json::parse(R"([
        {"task": "s-niah-1", "lengths": [512, 1024], "limit": 50, "seed": 7, "checkpoints": ["90%", 11, "100%"]},
        {"task": "arc_easy", "shots": 5, "data": "held", "prefix": "begin", "checkpoints": "100%"},
        {"task": "/nowhere/mine.json"}])"));
    QCOMPARE(study.tasks.size(), size_t{3});
    QCOMPARE(study.tasks[0].lengths, (std::vector<int64_t>{512, 1024}));
    QCOMPARE(study.tasks[0].checkpoints, (std::vector<std::string>{"90%", "11", "100%"}));
    QVERIFY(study.tasks[0].limit == 50 && study.tasks[0].seed == 7 && study.tasks[0].shots == -1);
    QVERIFY(study.tasks[1].shots == 5 && study.tasks[1].data == "held" && study.tasks[1].prefix == "begin");
    QVERIFY(std::find(study.tables.begin(), study.tables.end(), "scores") != study.tables.end());
  }

  /// Those that ship ask for checkpoints that their runs keep, and for lengths that a prompt fits into, however few characters a token has.
  void shippedStudiesAskForWhatThereIs() {
    const std::string essay = "This is a sentence of a text. And here is another one, which is longer.";
    const auto bytes = make_byte_tokenizer();
    std::set<std::string> with_tasks;
    for (const std::string& name : shipped_studies()) {
      const Study study = load_study(find_study(name));
      if (study.tasks.empty()) continue;
      with_tasks.insert(name);
      const WantedRun first = view_study(study, {}).wanted.front();
      for (const StudyTask& entry : study.tasks) {
        for (const std::string& step : entry.checkpoints) {
          const std::vector<double>& kept = first.run.config.training.keep_checkpoints;
          const bool is_kept = step == "100%" || std::find(kept.begin(), kept.end(), std::stod(step) / 100) != kept.end();
          QVERIFY2(is_kept, (name + ": " + step).c_str());
        }
        for (const Task& task : at_difficulties(find_task(entry.task), entry.lengths, entry.domains))
          if (!task.generator.empty()) QCOMPARE(generate_task_items(task, *bytes, essay, {.limit = 1}).items.size(), size_t{1});
      }
    }
    for (const char* table : {"2505.18522-figure-6b", "2505.18522-figure-7", "2506.11305-table-2", "2506.11305-table-12"})
      for (const char* scale : {"-tiny", "-10m", "-paper"}) QVERIFY2(with_tasks.contains(std::string(table) + scale), table);
    for (int table = 3; table <= 10; ++table) QVERIFY(with_tasks.contains("2506.11305-table-" + std::to_string(table) + "-paper"));
  }

  void seedsAreTestedInPairs() {
    const auto rows = rows_of({{with_right(1, 5), with_right(2, 6), with_right(3, 7)},
                               {with_right(1, 15), with_right(2, 17), with_right(3, 16)},
                               {with_right(1, 6), with_right(2, 6), with_right(3, 7)}});
    QCOMPARE(rows.size(), size_t{3});
    QVERIFY(std::abs(rows[1][kScore].value - 80) < 1e-9 && rows[1][kScore].repeated->count == 3);
    QVERIFY(std::abs(rows[0][kDifference].value + 50) < 1e-9);
    QCOMPARE(rows[0][kOver].text, std::string("3 seeds"));
    QVERIFY(rows[0][kHolm].value < 0.05 && rows[0][kHolm].value >= rows[0][kP].value && rows[2][kHolm].value < 0.05);
    QCOMPARE(rows[1][kBest].text, std::string("best"));
    QVERIFY(rows[0][kBest].text.empty() && rows[2][kBest].text.empty());
  }

  /// One seed, or seeds that all differ by the same: McNemar's test over the items, corrected.
  void itemsAreTestedWhereSeedsSayNothing() {
    const auto one = rows_of({{with_right(1, 4)}, {with_right(1, 14)}, {with_right(1, 13)}});
    QCOMPARE(one[0][kOver].text, std::string("20 items"));
    QVERIFY(std::abs(one[0][kP].value - 2.0 / 1024) < 1e-12 && std::abs(one[0][kHolm].value - 4.0 / 1024) < 1e-12);
    QCOMPARE(one[2][kP].value, 1.0);
    for (const auto& row : one) QVERIFY(row[kBest].text.empty());  // of 14 and 13 none is told to be better
    const auto told = rows_of({{with_right(1, 4)}, {with_right(1, 14)}, {}});
    QCOMPARE(told[1][kBest].text, std::string("best"));
    const auto steady = rows_of({{with_right(1, 10), with_right(2, 10)}, {with_right(1, 11), with_right(2, 11)}, {}});
    QCOMPARE(steady[0][kOver].text, std::string("20 items"));            // both seeds answered the same ones
    QVERIFY(steady[0][kP].value == 1 && steady[1][kBest].text.empty());  // one of them differs; seeds alone would have p = 0
  }

  void meansOverTasksAreOfSeedsThatHaveAll() {
    const StudyView view = view_study(parse(Json::array()), {});
    StudyScores scores;
    scores.tasks.push_back({"a", "acc", 0.5, 20, false, {{with_right(1, 10), with_right(2, 12)}, {with_right(1, 4)}, {}}});
    scores.tasks.push_back({"b", "acc", 0.25, 20, true, {{with_right(1, 20), with_right(2, 20)}, {}, {}}});
    const ReportTable table = *scores_table(view, scores);
    QCOMPARE(table.rows.size(), size_t{9});
    const auto& average = table.rows[6];
    QCOMPARE(average[1].text, std::string("average of 2 tasks"));
    QVERIFY(std::abs(average[kScore].value - 77.5) < 1e-9 && std::abs(average[7].value - 37.5) < 1e-9);
    QVERIFY(std::abs(average[6].value - 100 * std::sqrt(0.02) / 2) < 1e-9);
    QCOMPARE(table.rows[7][4].value, 0.0);  // no seed has both
    QVERIFY(!scores_table(view, {}));
  }
};

QTEST_GUILESS_MAIN(StudyTasksTest)
#include "study_tasks_test.moc"
