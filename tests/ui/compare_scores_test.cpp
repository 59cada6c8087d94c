#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QMenu>
#include <QTabBar>
#include <QToolButton>
#include <map>

#include "analysis/runs/sealed_json.h"
#include "analysis/tasks/task_run.h"
#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/figure_view.h"
#include "ui/compare/comparison_table.h"
#include "ui/compare/failed_items.h"
#include "ui/compare/fitted_table.h"

namespace saccade::test {

using namespace saccade::ui;

/// Two lengths of a needle with four items each, at two depths; of those of the deeper one `right` + 1 of two … as files of a real score.
void score(const QString& directory, int right) {
  const std::filesystem::path run = directory.toStdString();
  RunWriter writer = RunWriter::take_up(run, {});
  for (const int length : {128, 256}) {
    TaskResult result;
    result.task = "s-niah-1-" + std::to_string(length), result.metric = "contains", result.step = 200, result.data_hash = "data";
    TaskScoreRecord record{200, result.task, "contains", 0, "data", "checkpoint", {}};
    std::map<std::string, double> sums;
    for (int item = 0; item < 4; ++item) {
      const std::string depth = item < 2 ? "depth 0-10 %" : "depth 50-60 %";
      const bool is_right = right == 1 ? item < 3 : item < 1;
      result.answers.push_back(
          {is_right ? std::to_string(3000 + item) : "12 & so", std::to_string(3000 + item), is_right ? 1.0 : 0.0, depth, 90});
      sums[""] += is_right, sums[depth] += is_right;
    }
    for (const auto& [group, sum] : sums) {
      const int64_t count = group.empty() ? 4 : 2;
      record.scores.push_back({"contains" + (group.empty() ? "" : " " + group), sum / static_cast<double>(count), 0.2, count});
    }
    for (const TaskScoreRecord::Score& each : record.scores)
      result.scores.push_back({each.metric, each.value, each.standard_error, each.items});
    writer.add(record);
    std::filesystem::create_directories(run / "tasks");
    write_sealed_json(run / "tasks" / (result.task + "-step-200.json"), to_json(result));
  }
  writer.write_results();
}

/// Scores of tasks on the page Compare: the charts, what they lead to, and the table of tests.
class CompareScoresTest : public QObject {
  Q_OBJECT

  static ScoreComparison::Row row(const char* title, std::optional<double> score, const ScoreTest& test = {}) {
    ScoreComparison::Row made{title, score, 0.021};
    made.test = test;
    return made;
  }
  static ScoreTest tested(double difference, double p, const char* name, const char* over, std::optional<double> half_95 = {}) {
    ScoreTest test{{}, over, name};
    test.test.difference.mean = difference, test.test.difference.half_95 = half_95, test.test.p = p, test.test.p_holm = p;
    return test;
  }

 private Q_SLOTS:
  /// Scores of real files: dots with intervals, a map of length × depth; what is clicked offers the items that failed, in Inspect.
  void scores_lead_to_the_items_that_failed() {
    const auto options = three_architectures();
    PageOnRuns page("compare", options, {1100, 720}, [&](const QString& folder) {
      for (const FixtureOptions& each : options)
        score(folder + QString("/%1-%2").arg(QString::fromStdString(each.mixer)).arg(each.seed), each.mixer == "avey" ? 0 : 1);
    });
    page.session().setCurrentRun(page.directory(options[1]));
    page.child<QTabBar>("Chart")->setCurrentIndex(3);
    auto* scores = page.child<FigureView>("Scores of tasks");
    const auto dots = [&] {
      std::vector<const Curve*> found;
      for (const Curve& curve : scores->figure().curves)
        if (curve.marker != Marker::none) found.push_back(&curve);
      return found;
    };
    QTRY_COMPARE(dots().size(), size_t{6});  // three groups, two lengths
    QCOMPARE(scores->figure().x.names, (std::vector<std::string>{"s-niah-1-128", "s-niah-1-256"}));
    for (const Curve* dot : dots()) QVERIFY(dot->y[0] == (dot->label == "Avey" ? 0.25 : 0.75));
    page.shoot("compare-scores");

    QSignalSpy requested(&page.session(), &Session::itemsRequested), shown(&page.session(), &Session::pageRequested);
    const std::vector<const Curve*> drawn = dots();
    const Curve* chunk = *std::find_if(drawn.begin(), drawn.end(), [](const Curve* dot) { return dot->label == "Top-1 Chunk exact"; });
    Q_EMIT scores->positionClicked(chunk->x[0], 0.1);
    auto* failed = page.widget().findChild<FailedItemsMenu*>();
    QTRY_VERIFY(failed->menu());
    QStringList entries;
    for (const QAction* action : failed->menu()->actions()) entries << action->text();
    QVERIFY2(entries.first().contains("s-niah-1-128: 1 of 4 items failed") && !failed->menu()->actions().first()->isEnabled(),
             qPrintable(entries.join('\n')));
    QCOMPARE(entries.value(1), QString("item 3, depth 50-60 %: wrote “12 && so” for “3003”"));
    QCOMPARE(failed->menu()->activeAction(), failed->menu()->actions().at(1));
    if (const QString folder = qEnvironmentVariable("SACCADE_SHOTS"); !folder.isEmpty())
      failed->menu()->grab().save(folder + "/compare-failed-items.png");
    QTest::keyClick(failed->menu(), Qt::Key_Return);
    QCOMPARE(requested.size(), 1);
    QCOMPARE(shown.last()[0].toString(), QString("inspect"));
    const auto items = nlohmann::json::parse(requested[0][0].toByteArray().toStdString());
    QCOMPARE(items.at("task"), "s-niah-1-128");
    QCOMPARE(items.at("step"), 200);
    QCOMPARE(items.at("items").size(), size_t{1});
    QCOMPARE(items.at("items")[0].at("number"), 3);
    QCOMPARE(page.session().currentRun(), page.directory(options[1]));
    QCOMPARE(page.session().captureStep(), qint64{200});

    auto* as = page.child<QComboBox>("Scores as");
    as->setCurrentText("map: length × depth");
    QTRY_VERIFY(scores->figure().map && scores->figure().map->rows == 2 && scores->figure().map->columns == 2);
    QCOMPARE(scores->figure().map->values, (std::vector<float>{1, 1, 0.5F, 0.5F}));  // of the current run: depths 0 and 50
    page.shoot("compare-score-map");
    // By keys: to a cell, and Return.
    scores->setFocus();
    QTest::keyClick(scores, Qt::Key_Right);
    for (const Qt::Key key : {Qt::Key_Down, Qt::Key_Down, Qt::Key_Left, Qt::Key_Left}) QTest::keyClick(scores, key);
    page.shoot("compare-score-cell");
    QTest::keyClick(scores, Qt::Key_Return);
    QTRY_VERIFY(failed->menu() && failed->menu()->actions().first()->text().contains("128: 1 of 2 items failed"));
    failed->menu()->close();
    QTRY_VERIFY(!failed->menu());
    Q_EMIT scores->cellClicked(0, 1);
    QTRY_VERIFY(failed->menu() && failed->menu()->actions().first()->text().contains("256: all 2 items are right"));
    failed->menu()->close();
    page.child<QComboBox>("Task")->setCurrentText("s-niah-1-256");
    QTRY_COMPARE(scores->figure().map->columns, int64_t{1});
    as->setCurrentText("map: pairs × width");  // there are scores, but none of these
    QTRY_VERIFY2(scores->emptyText().contains("No score has a place on the map: pairs × width"), qPrintable(scores->emptyText()));
    as->setCurrentText("dots");
    QTRY_VERIFY(!scores->figure().map && dots().size() == 3);
  }

  /// What `saccade compare` prints: each score with its error, its difference to the first, p after Holm and the test's name.
  void the_table_names_its_tests() {
    ScoreComparison scores;
    scores.tasks = {{"copy", 0.1, {row("A", 0.5), row("B", 0.75, tested(0.25, 0.0123, "paired t", "3 seeds", 0.1)), row("C", {})}, 1},
                    {"mqar", 0.1, {row("A", 0.5), row("B", 0.25, tested(-0.25, 0.0004, "McNemar", "500 items")), row("C", 0.5)}, {}}};
    scores.tasks[1].rows[0].is_partial = true;
    ComparisonTable table(ComparisonTable::Kind::scores);
    QAbstractItemModelTester tester(&table);
    table.setScores(scores, {"/a", "/b", "/c"});
    QCOMPARE(table.asText(), QString("architecture\ttask\tscore (%)\t± error\tdifference\tp\ttest\t± 95 % of it\n"
                                     "A\tcopy\t50.0\t2.1\t–\t–\t–\t–\n"
                                     "B\tcopy\t75.0 *\t2.1\t+25.0\t0.012\tpaired t, 3 seeds\t10.0\n"
                                     "A\tmqar\t50.0 (part)\t2.1\t–\t–\t–\t–\n"
                                     "B\tmqar\t25.0\t2.1\t−25.0\t< 0.001\tMcNemar, 500 items\t–\n"
                                     "C\tmqar\t50.0\t2.1\t0.0\t–\t–\t–\n"));
    QCOMPARE(table.directory(1), QString("/b"));
    const auto is_bold = [&](int at) { return table.index(at, 2).data(Qt::FontRole).value<QFont>().bold(); };
    QVERIFY(is_bold(1) && !is_bold(0) && !is_bold(2) && !is_bold(3));
    const auto tip = [&](int at, int column) { return table.index(at, column).data(Qt::ToolTipRole).toString(); };
    QVERIFY2(tip(1, 5).contains("Paired t test over 3 seeds") && tip(1, 5).contains("0.012"), qPrintable(tip(1, 5)));
    QVERIFY2(tip(3, 5).contains("500 items") && tip(3, 5).contains("says nothing of other seeds"), qPrintable(tip(3, 5)));
    QVERIFY2(tip(4, 5).contains("No test"), qPrintable(tip(4, 5)));
    QVERIFY2(tip(1, 2).contains("Above every other row of this task"), qPrintable(tip(1, 2)));
    QVERIFY(table.headerData(5, Qt::Horizontal, Qt::ToolTipRole).toString().contains("Holm"));
    table.sort(1, Qt::DescendingOrder);
    QCOMPARE(table.index(0, 1).data().toString(), QString("mqar"));
    table.sort(-1, Qt::AscendingOrder);
    scores.tasks.pop_back();  // of one task nothing names it in every row
    table.setScores(scores, {"/a", "/b", "/c"});
    QVERIFY(table.asText().startsWith("architecture\tscore (%)\t"));
    QVERIFY(table.index(1, 1).data(Qt::FontRole).value<QFont>().bold());
  }

  /// Of what the chart shows: the baseline first, else the current run. They take the place of the losses that trajectories are read at.
  void tests_stand_beside_the_scores() {
    const auto options = three_architectures();
    PageOnRuns page("compare", options, {1100, 720}, [&](const QString& folder) {
      for (const FixtureOptions& each : options)
        score(folder + QString("/%1-%2").arg(QString::fromStdString(each.mixer)).arg(each.seed), each.mixer == "avey" ? 0 : 1);
    });
    auto* view = page.child<FittedTable>("Scores of tasks and their tests");
    auto* equal = page.child<FittedTable>("OOD loss at equal pre-training loss");
    QVERIFY(equal->isVisibleTo(&page.widget()) && !view->isVisibleTo(&page.widget()));
    page.child<QTabBar>("Chart")->setCurrentIndex(3);
    QTRY_COMPARE_WITH_TIMEOUT(view->model()->rowCount(), 6, 20000);
    QTRY_VERIFY(view->isVisibleTo(&page.widget()) && !equal->isVisibleTo(&page.widget()));
    const auto cell = [&](int row, int column) { return view->model()->index(row, column).data().toString(); };
    page.session().setCurrentRun(page.directory(options[1]));
    const QString first = QString::fromStdString(fixture_title(options[1].mixer));
    QTRY_COMPARE_WITH_TIMEOUT(cell(0, 0), first, 20000);
    QCOMPARE(cell(0, 5), QString("–"));
    QStringList of_avey;
    for (int i = 0; i < 6; ++i)
      if (cell(i, 0) == "Avey") of_avey << cell(i, 6);
    QCOMPARE(of_avey, (QStringList{"McNemar, 4 items", "McNemar, 4 items"}));
    page.child<QComboBox>("Task")->setCurrentText("s-niah-1-256");
    QTRY_COMPARE_WITH_TIMEOUT(view->model()->rowCount(), 3, 20000);
    QTRY_COMPARE(page.overlapping(), QString());
    page.shoot("compare-score-tests");
    page.widget().resize(640, 480);
    QTRY_COMPARE(page.overlapping(), QString());
    page.shoot("compare-score-tests-small");
    page.child<QTabBar>("Chart")->setCurrentIndex(0);
    QVERIFY(equal->isVisibleTo(&page.widget()) && !view->isVisibleTo(&page.widget()));
  }

  void without_scores_there_is_no_table() {
    PageOnRuns page("compare", three_architectures());
    page.child<QTabBar>("Chart")->setCurrentIndex(3);
    auto* scores = page.child<FigureView>("Scores of tasks");
    QTRY_VERIFY(scores->emptyText().contains("saccade evaluate"));
    QTest::qWait(200);
    QVERIFY(!page.child<FittedTable>("Scores of tasks and their tests")->isVisibleTo(&page.widget()));
    QVERIFY(page.child<FittedTable>("OOD loss at equal pre-training loss")->isVisibleTo(&page.widget()));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::CompareScoresTest)
#include "compare_scores_test.moc"
