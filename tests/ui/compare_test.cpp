#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <QToolButton>
#include <map>
#include <set>

#include "tests/analysis/end_evaluation.h"
#include "tests/ui/reading_pages_fixture.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/two_columns.h"
#include "ui/compare/comparison_table.h"
#include "ui/compare/fitted_table.h"
#include "ui/compare/score_tests_card.h"
#include "ui/run_list.h"
#include "ui/runs/runs_table.h"
#include "ui/session.h"

namespace saccade::test {

using namespace saccade::ui;

class CompareTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void shows_trajectories_and_tables() {
    PageOnRuns page("compare", three_architectures());
    auto* view = page.child<FigureView>("OOD loss against pre-training loss");
    QCOMPARE(view->figure().curves.size(), size_t{3});  // seeds are one thing
    QVERIFY(view->figure().vertical_line && view->figure().identity_line && view->figure().x.reversed);
    auto* equal = page.child<QTableView>("OOD loss at equal pre-training loss");
    QCOMPARE(equal->model()->rowCount(), 3);  // two seeds of one architecture are one row
    page.shoot("compare");
    page.widget().resize(700, 480);
    page.shoot("compare-small");
  }

  void the_selected_run_stands_first() {
    const auto options = three_architectures();
    PageOnRuns page("compare", options);
    auto* equal = page.child<QTableView>("OOD loss at equal pre-training loss")->model();
    for (const size_t i : {1U, 2U}) {
      page.session().setCurrentRun(page.directory(options[i]));
      QCOMPARE(equal->index(0, 0).data().toString(), QString::fromStdString(fixture_title(options[i].mixer)));
      QCOMPARE(equal->index(0, 4).data().toString(), QString("–"));
    }
    const RunList& runs = *page.session().runs();
    QCOMPARE(equal->index(0, 0).data(RunList::ColourRole), runs.index(runs.row(page.directory(options[2]))).data(RunList::ColourRole));
    QVERIFY(equal->index(0, 0).data(RunList::ColourRole).value<QColor>().isValid());
  }

  void fits_a_narrow_window() {
    PageOnRuns page("compare", three_architectures(), {520, 460});
    QVERIFY2(page.widget().minimumSizeHint().width() <= 520, qPrintable(QString::number(page.widget().minimumSizeHint().width())));
    QTRY_COMPARE(page.overlapping(), QString());
    page.shoot("compare-narrow");
  }

  void the_line_can_be_dragged() {
    PageOnRuns page("compare", three_architectures());
    auto* view = page.child<FigureView>("OOD loss against pre-training loss");
    const double before = *view->figure().vertical_line;
    Q_EMIT view->verticalLineMoved(before + 0.5);
    QCOMPARE(*view->figure().vertical_line, before + 0.5);
    view->setFocus();
    view->grab();
    QTest::keyClick(view, Qt::Key_Left, Qt::ControlModifier);
    QVERIFY(*view->figure().vertical_line > before + 0.5);  // the axis is reversed
  }

  void a_domain_can_be_chosen() {
    PageOnRuns page("compare", three_architectures());
    page.child<QComboBox>("OOD domain")->setCurrentText("c");
    QVERIFY(page.child<FigureView>("OOD loss against pre-training loss")->figure().y.title.find("on c") != std::string::npos);
  }

  /// The axis says what counts as pre-training loss, and the line begins again at a loss of that kind.
  void the_pretraining_loss_can_be_chosen() {
    PageOnRuns page("compare", three_architectures());
    auto* view = page.child<FigureView>("OOD loss against pre-training loss");
    const double before = *view->figure().vertical_line;
    QVERIFY(view->figure().x.title == "pre-training loss (nats)");
    Q_EMIT view->verticalLineMoved(before + 0.5);
    page.child<QComboBox>("Pre-training loss")->setCurrentIndex(2);
    QVERIFY(view->figure().x.title == "training loss, smoothed (nats)");
    QVERIFY(view->figure().vertical_line && *view->figure().vertical_line != before + 0.5);
  }

  /// As studies evaluated them; where none has, the ends stay and it is said how to make some.
  void ends_of_the_test_split_can_be_chosen() {
    const auto study_of_two = [](const QString& folder) {
      const std::filesystem::path study = folder.toStdString() + "/study";
      double loss = 4;
      for (const FixtureOptions& options : {FixtureOptions{.layers = 2}, FixtureOptions{.layers = 4}}) {
        const std::filesystem::path run = study / "runs" / std::to_string(options.layers);
        std::filesystem::create_directories(run.parent_path());
        write_fixture(run, options);
        write_end_evaluation(study, run, "test.64", loss, options.steps), loss += 1;
      }
    };
    PageOnRuns page("compare", {}, {1100, 720}, study_of_two, "study/runs");
    const auto* ends = page.child<QTableView>("Size, speed and losses at the end")->model();
    const auto losses = [&] {
      QStringList texts;
      for (int column = 0; column < ends->columnCount(); ++column) texts << ends->index(0, column).data().toString();
      return texts;
    };
    const QStringList recorded = losses();
    auto* split = page.child<QComboBox>("Split of losses at the end");
    split->setCurrentIndex(1);
    const QStringList evaluated = recorded[0].contains("layers 4") ? QStringList{"5.000", "6.500"} : QStringList{"4.000", "5.500"};
    QTRY_COMPARE(losses().mid(1, 2), evaluated);
    page.shoot("compare-test-split");
    split->setCurrentIndex(0);
    QTRY_COMPARE(losses(), recorded);

    PageOnRuns none("compare", three_architectures());
    none.child<QComboBox>("Split of losses at the end")->setCurrentIndex(1);
    QTRY_VERIFY(none.child<QLabel>("Whether the runs can be compared")->text().contains("saccade study evaluate STUDY --split test"));
  }

  /// The charts beside the trajectories: made when they are looked at, from what the shown runs have.
  void other_charts() {
    std::vector<FixtureOptions> runs = three_architectures();
    FixtureOptions deeper = runs.front();
    deeper.layers = 6, deeper.seed = 9, deeper.offset = -0.2;
    runs.push_back(deeper);
    PageOnRuns page("compare", runs);
    auto* tabs = page.child<QTabBar>("Chart");
    QVERIFY(tabs && tabs->currentIndex() == 0);
    tabs->setCurrentIndex(1);
    auto* position = page.child<FigureView>("Loss by position in the sequence");
    QTRY_COMPARE(position->figure().curves.size(), size_t{4});
    const Curve& curve = position->figure().curves.front();
    QCOMPARE(curve.x.values(), (std::vector<double>{1, 2, 3.5, 6.5}));
    QVERIFY(curve.y.front() > curve.y.back());
    const double unseen = curve.y.back();
    QTRY_VERIFY(page.child<QComboBox>("Domain of the losses by position")->findText("prose") >= 0);
    page.child<QComboBox>("Domain of the losses by position")->setCurrentText("prose");
    QTRY_VERIFY(position->figure().curves.size() == 4 && position->figure().curves.front().y.back() < unseen);
    page.shoot("compare-position");

    tabs->setCurrentIndex(2);
    auto* numbers = page.child<FigureView>("Any two numbers of the runs");
    auto* across = page.child<QComboBox>("Number across");
    QTRY_VERIFY(across->findText("architecture.layers") >= 0 && across->findText("training.seed") < 0);
    across->setCurrentIndex(across->findText("architecture.layers"));
    const auto places = [&] {
      return numbers->figure().curves.empty() ? std::vector<double>() : numbers->figure().curves.front().x.values();
    };
    QTRY_COMPARE(places(), (std::vector<double>{3, 6}));
    QCOMPARE(numbers->figure().x.title, std::string("layers"));
    page.child<QComboBox>("Fit")->setCurrentText("power law");
    page.child<QToolButton>("Both axes logarithmic")->setChecked(true);
    const auto fitted = [&] {
      for (const Curve& each : numbers->figure().curves)
        if (each.label.find("x^−0.") != std::string::npos) return true;
      return false;
    };
    QTRY_VERIFY(fitted() && numbers->figure().x.logarithmic);
    page.shoot("compare-numbers");
    page.child<QComboBox>("Fit")->setCurrentText("no fit");
    across->setCurrentIndex(across->findData("validation"));  // what came out: settings are told by names and shades
    const auto names = [&] {
      std::set<std::string> labels;
      for (const Curve& each : numbers->figure().curves)
        if (each.x.size() == 1 && each.marker != Marker::none) labels.insert(each.label);
      return labels;
    };
    QTRY_COMPARE(names().size(), size_t{4});
    QVERIFY(names().contains("Transformer++, layers 3, mean of 2") && names().contains("Transformer++, layers 6"));
    page.shoot("compare-two-outcomes");

    tabs->setCurrentIndex(3);
    auto* scores = page.child<FigureView>("Scores of tasks");
    QTRY_VERIFY(scores->figure().curves.empty() && scores->emptyText().contains("saccade evaluate"));
    QCOMPARE(page.session().place().value("compare/chart").toInt(), 3);
    QTRY_COMPARE(page.widget().findChild<ScoreTestsCard*>()->height(), 0);  // no tests, no room for them

    page.session().runs()->showOnly({});
    QTRY_VERIFY2(scores->emptyText().startsWith("No run is shown"), qPrintable(scores->emptyText()));
    tabs->setCurrentIndex(0);
    auto* trajectories = page.child<FigureView>("OOD loss against pre-training loss");
    QTRY_VERIFY2(trajectories->emptyText().startsWith("No run is shown"), qPrintable(trajectories->emptyText()));
  }

  void tables_read_as_text() {
    Comparison comparison;
    comparison.equal_loss = 3.45;
    ComparisonRow first, second;
    first.title = "Transformer++", first.runs = {"a", "b"}, first.seeds = {1, 2}, first.parameters = 10'020'000,
    first.tokens_per_second = 7.6e6;
    first.id_at_end.mean = 3.1, first.ood_at_end.mean = 3.9, first.ood_at_equal.mean = 4.058, first.ood_at_equal.deviation = 0.006,
    first.domains = {{"c", 3.8}};
    second.title = "Avey", second.runs = {"c"}, second.seeds = {1}, second.ood_at_equal.mean = 4.19,
    second.ood_at_equal.against_first = 0.132, second.ood_at_end.mean = 4;
    first.branch_ends = true, first.tuning = judge_tuning("training.learning_rate", {{1, 3}, {2, 2}, {3, 3}});
    second.tuning = of_value(first.tuning, 3);
    comparison.rows = {first, second};
    ComparisonTable equal(ComparisonTable::Kind::at_equal_loss), end(ComparisonTable::Kind::at_end);
    QAbstractItemModelTester tester(&equal);
    equal.setComparison(comparison);
    end.setComparison(comparison);
    QCOMPARE(equal.asText(),
             QString("architecture\tOOD (nats)\t± sd\t± 95 %\tdifference\t± 95 % of it\tp\tseeds\tto tell apart\tread from\ttuning\n"
                     "Transformer++\t4.058\t0.006\t–\t–\t–\t–\t2\t–\tbranch ends\ttuned\n"
                     "Avey\t4.190\t–\t–\t+0.132\t–\t–\t1\t–\tmid-schedule\tnot at its best value\n"));
    comparison.rows[1].ood_at_equal.test = paired_test(std::vector{4.3, 4.2, 4.1}, std::vector{4.1, 4.1, 4.05});
    comparison.rows[1].ood_at_equal.test->p_holm = comparison.rows[1].ood_at_equal.test->p;
    equal.setComparison(comparison);
    QVERIFY2(equal.asText().contains(QString("\t0.190\t0.118\t1\t%1 more seed").arg(*comparison.rows[1].ood_at_equal.test->more)),
             qPrintable(equal.asText()));
    QCOMPARE(equal.seedsToTellApart(1), comparison.rows[1].ood_at_equal.test->more);
    comparison.rows[1].ood_at_equal.test = paired_test(std::vector{4.3}, std::vector{4.1});
    equal.setComparison(comparison);
    QVERIFY(equal.asText().contains("\ta second seed\t"));
    QVERIFY2(end.asText().contains("Transformer++\t3.100\t3.900\t10.02 M\t7.6 M\t3.800\t–\t–\n"), qPrintable(end.asText()));
    comparison.rows[0].id_at_end.text_error = 0.011, comparison.rows[0].ood_at_end = compared_loss({{1, 3.9}, {2, 3.91}, {3, 3.92}}, true);
    comparison.rows[1].ood_at_end = compared_loss({{1, 4.0}, {2, 4.02}, {3, 4.01}}, true);
    comparison.rows[1].ood_at_end.text_error = 0.021;
    compare_with_first({&comparison.rows[0].ood_at_end, &comparison.rows[1].ood_at_end});
    end.setComparison(comparison);
    QVERIFY(end.asText().startsWith(
        "architecture\tID (nats)\tOOD (nats)\tparameters\ttokens/s\tc\tID ± text\tID ± sd\tID ± 95 %\tOOD ± text\tOOD ± sd\t"
        "OOD ± 95 %\tOOD difference\tOOD ± 95 % of it\tOOD p\n"));
    QVERIFY2(end.asText().contains("\t3.800\t0.011\t–\t–\t–\t0.010\t0.025\t–\t–\t–\n"), qPrintable(end.asText()));
    QVERIFY2(end.asText().contains("\t0.021\t0.010\t0.025\t+0.100\t0.025\t0.003\n"), qPrintable(end.asText()));
    comparison.rows[0].ood_at_end = comparison.rows[1].ood_at_end = {};
    comparison.rows[0].ood_at_end.mean = 3.9, comparison.rows[0].id_at_end.text_error.reset();
    for (ComparisonRow& row : comparison.rows) row.tokens = 2e6, row.flops = 3e12, row.state_bytes = 2048, row.memory_bytes = NAN;
    comparison.rows[0].memory_bytes = 3 << 20;
    end.setComparison(comparison, std::vector<double>(comparison.rows.size(), 0.25));
    QVERIFY2(end.asText().contains("\t3.800\t–\t–\t0.800\t0.250\t2.00\u00a0KiB\t3.00\u00a0MiB\t2 M\t3 T\n"), qPrintable(end.asText()));
    QVERIFY(end.asText().contains("\t2.00\u00a0KiB\t–\t2 M\t3 T\n"));
    comparison.rows[0].memory_of_process = true;
    end.setComparison(comparison, std::vector<double>(comparison.rows.size(), 0.25));
    QVERIFY(end.asText().contains("\t3.00\u00a0MiB (process)\t"));
  }

  /// The least loss is marked where it tells something.
  void the_best_is_marked_where_it_can_be_told() {
    Comparison comparison;
    comparison.equal_loss = 3;
    const auto row = [](const char* title, const std::map<int64_t, double>& losses) {
      ComparisonRow made;
      made.title = title, made.ood_at_equal = made.ood_at_end = compared_loss(losses, true);
      return made;
    };
    const ComparisonRow first = row("A", {{1, 4.00}, {2, 4.01}, {3, 3.99}}), second = row("B", {{1, 4.10}, {2, 4.12}, {3, 4.09}});
    comparison.rows = {first, second};
    const auto marked = [&](ComparisonTable::Kind kind) {
      ComparisonTable table(kind);
      table.setComparison(comparison);
      return table.index(0, kind == ComparisonTable::Kind::at_end ? 2 : 1).data(Qt::FontRole).value<QFont>().bold();
    };
    QVERIFY(marked(ComparisonTable::Kind::at_equal_loss) && marked(ComparisonTable::Kind::at_end));
    comparison.equal_ends = false;  // other numbers of tokens
    QVERIFY(marked(ComparisonTable::Kind::at_equal_loss) && !marked(ComparisonTable::Kind::at_end));
    comparison.equal_ends = true;
    const auto never = [&] { return !marked(ComparisonTable::Kind::at_equal_loss) && !marked(ComparisonTable::Kind::at_end); };
    comparison.rows[0] = row("A", {{1, 3.8}, {2, 4.2}, {3, 4.0}});
    QVERIFY(never());                                                                        // seeds are further apart
    comparison.rows = {row("A", {{1, 3.00}, {2, 3.01}}), row("B", {{1, 3.03}, {2, 3.05}})};  // p = 0.09, four standard errors of means
    QVERIFY(never());
    comparison.rows = {first, row("B", {{4, 4.10}, {5, 4.12}, {6, 4.09}})};  // no seed in common
    QVERIFY(never());
    comparison.rows = {first, row("B", {{1, 4.01}, {2, 4.03}, {3, 4.01}})};  // p = 0.038 alone
    QVERIFY(!never());
    comparison.rows.push_back(row("C", {{1, 4.01}, {2, 4.03}, {3, 4.01}}));  // two tests: twice that
    QVERIFY(never());
    comparison.rows = {row("A", {{1, 4.0}}), row("B", {{1, 4.1}})};
    QVERIFY(never());  // nothing tells
    const auto evaluated = [](std::vector<double> losses) {
      const double mean = (losses[0] + losses[1]) / 2;
      return SequenceLosses{
          10, 128, "text", "validation", {{"c", {.ood = true, .loss = mean, .by_sequence = std::move(losses), .targets = {}}}}};
    };
    comparison.rows[0].losses = evaluated({3.5, 4.5}), comparison.rows[1].losses = evaluated({3.61, 4.59});  // apart by 0.11 and 0.09
    comparison.rows[1].ood_paired = paired_difference(*comparison.rows[1].losses, *comparison.rows[0].losses, true);
    QVERIFY(never());  // the text's error is not that of seeds
    ComparisonTable end(ComparisonTable::Kind::at_end);
    end.setComparison(comparison);
    QCOMPARE(end.index(0, end.columnCount() - 1).data().toString(), QString("–"));
    QCOMPARE(end.index(1, end.columnCount() - 1).data().toString(), QString("+0.100 ± 0.010"));
    comparison.rows = {first, first};  // equal
    QVERIFY(never());
  }

  /// At a usual size all columns are seen, and every title.
  void nothing_is_cut() {
    PageOnRuns page("compare", three_architectures(), {1250, 900});
    for (const char* name : {"OOD loss at equal pre-training loss", "Size, speed and losses at the end"}) {
      auto* table = page.child<QTableView>(name);
      QTRY_VERIFY2(table->horizontalScrollBar()->maximum() == 0, name);
      for (int column = 0; column < table->model()->columnCount(); ++column)
        QVERIFY2(table->isColumnHidden(column) ||
                     table->columnWidth(column) >= table->fontMetrics().horizontalAdvance(
                                                       table->model()->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString()),
                 name);
    }
    auto* end = page.child<QTableView>("Size, speed and losses at the end");
    const auto hidden = [&] {
      int count = 0;
      for (int column = 0; column < end->model()->columnCount(); ++column) count += end->isColumnHidden(column);
      return count;
    };
    QVERIFY(hidden() > 0);  // errors, tests, gap, entropy, tokens and FLOPs come where they fit
    page.widget().resize(5000, 900);
    QTRY_COMPARE(hidden(), 0);
    QVERIFY(end->horizontalScrollBar()->maximum() == 0);
    page.widget().resize(1250, 900);
    QTRY_VERIFY(hidden() > 0);
    QTRY_VERIFY2(page.cut().isEmpty(), qPrintable(page.cut()));
  }

  /// Columns without room stand on further pages of their table, every one with the names; no table scrolls sideways.
  void every_column_can_be_reached() {
    for (const QSize size : {QSize(880, 640), QSize(640, 560), QSize(1250, 900)}) {
      PageOnRuns page("compare", three_architectures(), size);
      for (const char* name : {"OOD loss at equal pre-training loss", "Size, speed and losses at the end"}) {
        auto* table = page.child<FittedTable>(name);
        QTRY_VERIFY(table->model()->rowCount() > 0);
        QTest::qWait(50);  // what the tables ask for comes with the next layout
        auto* other = page.child<QToolButton>(QString("Other columns: ") + name);
        QCOMPARE(other->isVisible(), table->pages() > 1);
        std::map<int, int> seen;
        for (int turn = 0; turn < table->pages(); ++turn) {
          for (int column = 0; column < table->model()->columnCount(); ++column) seen[column] += !table->isColumnHidden(column);
          QCOMPARE(table->horizontalScrollBar()->maximum(), 0);
          QVERIFY(table->columnWidth(0) >= 100);
          if (table->pages() > 1) other->click();
        }
        QCOMPARE(seen[0], table->pages());
        for (int column = 1; column < table->model()->columnCount(); ++column) QCOMPARE(seen[column], 1);
        QCOMPARE(table->page(), 0);
      }
    }
  }

  /// On a large screen names stand whole beside all losses.
  void names_are_whole_where_there_is_room() {
    PageOnRuns page("compare", three_architectures(), {1500, 1100});
    for (const char* name : {"OOD loss at equal pre-training loss", "Size, speed and losses at the end"}) {
      const auto* table = page.child<QTableView>(name);
      QTRY_VERIFY(table->model()->rowCount() == 3);
      for (int row = 0; row < 3; ++row) {
        const QString title = table->model()->index(row, 0).data().toString();
        QTRY_VERIFY2(table->columnWidth(0) > table->fontMetrics().horizontalAdvance(title), qPrintable(title));
      }
    }
  }

  /// What makes the same runs incomparable is one paragraph.
  void warnings_of_the_same_runs_are_one() {
    auto options = three_architectures();
    options.back().steps = 300;
    PageOnRuns page("compare", options);
    const auto* words = page.child<QLabel>("Whether the runs can be compared");
    QTRY_VERIFY2(words->text().contains(QStringLiteral("are trained with steps 200 (attention-seed2: 300)")), qPrintable(words->text()));
    QHash<QString, int> of_runs;
    for (const QString& line : words->text().split(QLatin1Char('\n')))
      if (line.startsWith(QStringLiteral("⚠ "))) ++of_runs[line.left(line.indexOf(QStringLiteral(": ")))];
    QVERIFY(!of_runs.isEmpty());
    for (auto it = of_runs.cbegin(); it != of_runs.cend(); ++it) QVERIFY2(it.value() == 1, qPrintable(it.key()));
    QVERIFY2(words->text().contains(
                 QRegularExpression(QStringLiteral("are trained with steps 200 \\(attention-seed2: 300\\)[^\n]*; have been trained on"))),
             qPrintable(words->text()));
  }

  /// Beside the list of runs in a window of 1 280 the page is this narrow: the tables scroll, the page does not.
  void a_narrow_page_does_not_scroll_sideways() {
    for (const int width : {880, 1000}) {
      PageOnRuns page("compare", three_architectures(), {width, 740});
      QTRY_VERIFY(page.child<QTableView>("OOD loss at equal pre-training loss")->model()->rowCount() > 0);
      QTest::qWait(100);  // what the tables ask for comes with the next layout
      const auto* scrolled = page.widget().findChild<TwoColumns*>();
      QVERIFY(scrolled);
      QCOMPARE(scrolled->horizontalScrollBar()->maximum(), 0);
    }
  }

  void tokens_per_second_are_one_number() {
    PageOnRuns page("compare", {FixtureOptions{}});
    const Run& run = *page.session().runs()->runs().front();
    RunsTable table(page.session().runs());
    QCOMPARE(table.index(0, RunsTable::speed).data(RunsTable::SortRole).toDouble(), run.tokens_per_second());
    QCOMPARE(compare({&run}).rows[0].tokens_per_second, run.tokens_per_second());
    QCOMPARE(run.tokens_per_second(), 1024 / 0.05);
  }

  void columns_sort() {
    Comparison comparison;
    comparison.equal_loss = 3;
    for (const auto& [title, ood] :
         std::vector<std::pair<const char*, std::optional<double>>>{{"B", 10.5}, {"C", {}}, {"A", 9.5}, {"D", 9.75}}) {
      ComparisonRow row;
      row.title = title, row.runs = {title, title}, row.ood_at_equal.mean = ood, row.ood_at_equal.deviation = 0.01;
      if (ood) row.ood_at_equal.by_seed = {{1, *ood - 0.01}, {2, *ood}, {3, *ood + 0.01}};
      comparison.rows.push_back(row);
    }
    ComparisonTable table(ComparisonTable::Kind::at_equal_loss);
    QAbstractItemModelTester tester(&table);
    table.setComparison(comparison);
    const auto shown = [&] {
      QString titles;
      for (int row = 0; row < table.rowCount(); ++row) titles += table.index(row, 0).data().toString();
      return titles;
    };
    const auto bold = [&](int row) { return table.index(row, 1).data(Qt::FontRole).value<QFont>().bold(); };
    QCOMPARE(shown(), QString("BCAD"));
    const QPersistentModelIndex kept = table.index(3, 1);
    table.sort(1, Qt::AscendingOrder);
    QCOMPARE(shown(), QString("ADBC"));  // as numbers, unknown last
    QVERIFY(bold(0) && !bold(1));
    QCOMPARE(kept.data().toString(), QString("9.750"));
    QVERIFY(table.asText().contains("\nA\t9.500"));
    table.sort(1, Qt::DescendingOrder);
    QCOMPARE(shown(), QString("BDAC"));
    table.setComparison(comparison);
    QCOMPARE(shown(), QString("BDAC"));
    table.sort(0, Qt::AscendingOrder);
    QCOMPARE(shown(), QString("ABCD"));
    table.sort(-1, Qt::AscendingOrder);
    QCOMPARE(shown(), QString("BCAD"));
  }

  void one_run_or_none() {
    PageOnRuns none("compare", {});
    none.shoot("compare-empty");
    PageOnRuns one("compare", {FixtureOptions{}});
    QCOMPARE(one.child<QTableView>("OOD loss at equal pre-training loss")->model()->rowCount(), 1);
  }

  /// Dark ground with everything still drawn on it, light again afterwards.
  void dark() {
    const QPalette before = QApplication::palette();
    darken();
    PageOnRuns page("compare", three_architectures());
    page.shoot("compare-dark");
    const auto dark = page.look();
    QApplication::setPalette(before);
    PageOnRuns light_page("compare", three_architectures());
    const auto light = light_page.look();
    QVERIFY2(dark.lightness < 80 && light.lightness > 200, qPrintable(QString("%1 and %2").arg(dark.lightness).arg(light.lightness)));
    QVERIFY2(dark.colours > light.colours / 2, qPrintable(QString("%1 and %2 colours").arg(dark.colours).arg(light.colours)));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::CompareTest)
#include "compare_test.moc"
