#include "ui/run_list.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QImage>
#include <QLabel>
#include <QPainter>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QStyle>
#include <QStyleOption>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <chrono>

#include "tests/analysis/fixture.h"
#include "ui/run_actions.h"
#include "ui/run_summary.h"
#include "ui/runs/runs_table.h"
#include "ui/session.h"
#include "ui/shell/grouped_runs.h"
#include "ui/shell/run_delegate.h"
#include "ui/shell/runs_panel.h"
#include "ui/swatch.h"
#include "ui/theme.h"

namespace saccade::test {

using ui::GroupedRuns;
using ui::RunList;

class RunListTest : public QObject {
  Q_OBJECT

  static void write(const QTemporaryDir& folder, const char* name, const FixtureOptions& options) {
    write_fixture(folder.filePath(QLatin1String(name)).toStdString(), options);
  }
  static void damage(const QTemporaryDir& folder, const char* name) {
    QDir(folder.path()).mkpath(QLatin1String(name));
    QFile file(folder.filePath(QLatin1String(name)) + QStringLiteral("/run.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("{\"name\": ");
  }
  static QStringList texts(const QAbstractItemModel& model, int role = Qt::DisplayRole) {
    QStringList list;
    for (int row = 0; row < model.rowCount(); ++row) list << model.index(row, 0).data(role).toString();
    return list;
  }

  /// Whether anything in a row of the list is painted in red.
  static bool is_red(const QModelIndex& index) {
    QStyleOptionViewItem option;
    option.rect = QRect(0, 0, 300, 50);
    option.palette = QApplication::palette();
    QImage image(option.rect.size(), QImage::Format_RGB32);
    image.fill(option.palette.color(QPalette::Base));
    QPainter painter(&image);
    ui::RunDelegate().paint(&painter, option, index);
    painter.end();
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) {
        const QColor at = image.pixelColor(x, y);
        if (at.red() > std::max(at.green(), at.blue()) + 60) return true;
      }
    return false;
  }

 private Q_SLOTS:
  void finds_runs_and_says_what_they_are() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey", .seed = 2, .end = RunState::stopped});
    RunList runs(folder.path());
    const QAbstractItemModelTester tester(&runs);
    QSignalSpy loaded(&runs, &RunList::loaded);
    QVERIFY(runs.loading());
    QVERIFY(loaded.wait());
    QStringList found = texts(runs);
    found.sort();
    QCOMPARE(found, (QStringList{QStringLiteral("Avey seed 2"), QStringLiteral("Transformer++ seed 1")}));
    const QModelIndex run = runs.index(runs.row(folder.filePath(QStringLiteral("a"))));
    QVERIFY(run.data(RunList::SummaryRole).toString().startsWith(QStringLiteral("loss ")));
    QCOMPARE(run.data(RunList::ProgressRole).toDouble(), 1.0);
    QCOMPARE(run.data(RunList::StateRole).toInt(), static_cast<int>(RunState::finished));
    QVERIFY(runs.index(0).data(RunList::ColourRole).value<QColor>() != runs.index(1).data(RunList::ColourRole).value<QColor>());
  }

  void a_study_s_folder_is_its_runs() {
    const QTemporaryDir folder;
    QFile study(folder.filePath(QStringLiteral("study.json")));
    QVERIFY(study.open(QIODevice::WriteOnly));
    write(folder, "runs/a", {});
    RunList list(folder.path());
    QCOMPARE(list.folder(), folder.filePath(QStringLiteral("runs")));
    QTRY_COMPARE(list.rowCount(), 1);
  }

  void shows_a_damaged_directory_with_the_reason() {
    const QTemporaryDir folder;
    write(folder, "good", {});
    damage(folder, "bad");
    RunList runs(folder.path());
    const QAbstractItemModelTester tester(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QCOMPARE(runs.rowCount(), 2);
    const QModelIndex bad = runs.index(runs.row(folder.filePath(QStringLiteral("bad"))));
    QVERIFY(!bad.data(RunList::ProblemRole).toString().isEmpty());
    QVERIFY(!runs.run(folder.filePath(QStringLiteral("bad"))));
    QVERIFY(!bad.data(Qt::CheckStateRole).isValid());  // no page shows it, so that it can be neither shown nor hidden
    GroupedRuns grouped(&runs);
    QTRY_COMPARE(grouped.rowCount(), 4);
    QVERIFY(grouped.index(1).flags() & Qt::ItemIsUserCheckable);
    QVERIFY(!(grouped.index(3).flags() & Qt::ItemIsUserCheckable));
    QTRY_COMPARE(runs.visibleRuns().size(), size_t{1});
  }

  void takes_up_new_runs_and_drops_removed_ones() {
    const QTemporaryDir folder;
    write(folder, "first", {});
    RunList runs(folder.path());
    const QAbstractItemModelTester tester(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    write(folder, "second", {.seed = 2});
    QTRY_COMPARE_WITH_TIMEOUT(runs.rowCount(), 2, 10000);
    const auto look = [&](const char* name, RunList::Role role) {
      return runs.index(runs.row(folder.filePath(QString::fromLatin1(name)))).data(role).toInt();
    };
    QTRY_VERIFY(look("first", RunList::DashRole) != look("second", RunList::DashRole));
    QCOMPARE(look("first", RunList::MarkerRole), look("second", RunList::MarkerRole));
    QVERIFY(QDir(folder.filePath(QStringLiteral("first"))).removeRecursively());
    QTRY_COMPARE_WITH_TIMEOUT(runs.rowCount(), 1, 10000);
    QCOMPARE(texts(runs), QStringList{QStringLiteral("Transformer++ seed 2")});
  }

  void follows_a_growing_run_at_most_five_times_a_second() {
    const QTemporaryDir folder;
    const FixtureOptions options{.steps = 1000};
    RunWriter writer = RunWriter::create(folder.filePath(QStringLiteral("live")).toStdString(), fixture_info(options));
    writer.set_state(RunState::running, 0);
    RunList runs(folder.path());
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QSignalSpy changed(&runs, &RunList::changed);
    QElapsedTimer clock;
    clock.start();
    for (int64_t step = 1; clock.elapsed() < 1500; ++step) {
      writer.add(fixture_step(options, step));
      QTest::qWait(5);
    }
    QVERIFY2(changed.size() >= 3 && changed.size() <= 9, qPrintable(QString::number(changed.size())));
    const Series* loss = runs.run(folder.filePath(QStringLiteral("live")))->find("train/loss");
    QVERIFY(loss && !loss->value.empty());
  }

  /// A process that is there and records nothing is not "2 s left" for ever.
  void a_silent_run_is_told() {
    const QTemporaryDir folder;
    const FixtureOptions options{.steps = 1000};
    const QString directory = folder.filePath(QStringLiteral("live"));
    RunWriter writer = RunWriter::create(directory.toStdString(), fixture_info(options));
    writer.set_state(RunState::running, 0);
    for (int64_t step = 1; step <= 5; ++step) writer.add(fixture_step(options, step));
    RunList runs(folder.path());
    const GroupedRuns panel(&runs);
    const ui::RunsTable table(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    const auto summary = [&] { return runs.index(0).data(RunList::SummaryRole).toString(); };
    const auto state = [&] { return table.index(0, ui::RunsTable::state).data().toString(); };
    QTRY_VERIFY2(summary().contains("left"), qPrintable(summary()));
    QVERIFY2(state().startsWith("0 %, ") && state().endsWith(" left"), qPrintable(state()));
    QVERIFY(table.index(0, ui::RunsTable::state).data(Qt::AccessibleTextRole).toString().startsWith("Running, 0 %, "));
    QTRY_COMPARE(panel.rowCount(), 2);
    QTest::qWait(500);  // until what was read has been told
    QSignalSpy told(&panel, &QAbstractItemModel::dataChanged);
    const std::filesystem::path journal = std::filesystem::path(directory.toStdString()) / "journal.jsonl";
    std::filesystem::last_write_time(journal, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(7));
    QTRY_VERIFY_WITH_TIMEOUT(told.size() > 0, 5000);
    QVERIFY2(summary().startsWith("silent for 7 min"), qPrintable(summary()));
    QCOMPARE(panel.index(1).data(RunList::SummaryRole).toString(), summary());
    QCOMPARE(state(), QStringLiteral("Silent for 7 min"));
    writer.add(fixture_step(options, 6));
    QTRY_VERIFY2(summary().contains("left"), qPrintable(summary()));
  }

  /// Of seeds that are one row, too, the time that is left comes first.
  void a_group_at_work_says_how_long() {
    const QTemporaryDir folder;
    const FixtureOptions options{.seed = 2, .steps = 1000};
    RunWriter writer = RunWriter::create(folder.filePath(QStringLiteral("live")).toStdString(), fixture_info(options));
    writer.set_state(RunState::running, 0);
    for (int64_t step = 1; step <= 5; ++step) writer.add(fixture_step(options, step));
    RunWriter other = RunWriter::create(folder.filePath(QStringLiteral("other")).toStdString(), fixture_info({.steps = 1000}));
    other.set_state(RunState::finished, 1000);
    RunList runs(folder.path());
    const GroupedRuns panel(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    const auto seeds = [&]() -> QString {
      for (int row = 0; row < panel.rowCount(); ++row)
        if (panel.index(row).data(GroupedRuns::SeedsRole).toInt() == 2) return panel.index(row).data(RunList::SummaryRole).toString();
      return {};
    };
    QTRY_VERIFY2(seeds().section(QStringLiteral(" · "), 0, 0).endsWith(" left"), qPrintable(seeds()));
  }

  /// Where there is little room the time that is left is whole, also in the narrowest panel.
  void the_time_left_is_never_cut() {
    const QFontMetrics metrics((QFont()));
    const QString summary = QStringLiteral("4 min left · on server · loss 3.41 · 12.3 ktok/s");
    QCOMPARE(ui::fittingParts(summary, metrics, metrics.horizontalAdvance(QStringLiteral("4 min left · on"))),
             QStringLiteral("4 min left"));
    QCOMPARE(ui::fittingParts(summary, metrics, 1000), summary);
    const QTemporaryDir folder;
    write(folder, "a", {});
    ui::Session session(folder.path());
    const ui::RunActions actions(session);
    const ui::RunsPanel panel(session, actions);
    QFont small = panel.font();
    small.setPointSizeF(small.pointSizeF() * 0.88);
    const int scroll_bar = panel.style()->pixelMetric(QStyle::PM_ScrollBarExtent), beside = 2 * 8 + 56 + 6;  // check box, swatch, margins
    QVERIFY(QFontMetrics(small).horizontalAdvance(QStringLiteral("47 h 59 min left")) <= panel.minimumWidth() - scroll_bar - beside);
  }

  /// A list of a thousand runs would lay out and paint itself five times a second.
  void views_are_told_of_the_run_at_work_alone() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey"});
    const FixtureOptions options{.mixer = "top1_chunk", .steps = 1000};
    RunWriter writer = RunWriter::create(folder.filePath(QStringLiteral("live")).toStdString(), fixture_info(options));
    writer.set_state(RunState::running, 0);
    writer.add(fixture_step(options, 1));
    RunList runs(folder.path());
    GroupedRuns grouped(&runs);
    const QAbstractItemModelTester tester(&grouped);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_COMPARE(runs.visibleRuns().size(), size_t{3});
    QTRY_COMPARE(grouped.rowCount(), 5);
    QTest::qWait(500);
    QSignalSpy told(&grouped, &QAbstractItemModel::dataChanged), reset(&grouped, &QAbstractItemModel::modelReset);
    for (int64_t step = 2; step < 40; ++step) {
      writer.add(fixture_step(options, step));
      QTest::qWait(20);
    }
    const int live = grouped.row(folder.filePath(QStringLiteral("live")));
    QTRY_VERIFY(told.size() > 0);
    for (const QList<QVariant>& each : told) {
      QCOMPARE(each[0].toModelIndex().row(), live);
      QCOMPARE(each[1].toModelIndex().row(), live);
    }
    QCOMPARE(reset.size(), 0);
  }

  void visibility_is_by_directory_and_kept() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.seed = 2});
    RunList runs(folder.path());
    runs.setHidden({folder.filePath(QStringLiteral("b"))});
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_COMPARE(runs.visibleRuns().size(), size_t{1});
    const QModelIndex b = runs.index(runs.row(folder.filePath(QStringLiteral("b"))));
    QSignalSpy changed(&runs, &RunList::changed);
    QVERIFY(runs.setData(b, Qt::Checked, Qt::CheckStateRole));
    QVERIFY(changed.wait());
    QTRY_COMPARE(runs.visibleRuns().size(), size_t{2});
    QVERIFY(runs.hidden().isEmpty());
  }

  void groups_by_state_and_filters() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "top1_chunk", .seed = 2});
    write(folder, "c", {.mixer = "avey", .end = RunState::stopped});
    damage(folder, "d");
    RunList runs(folder.path());
    GroupedRuns grouped(&runs);
    const QAbstractItemModelTester tester(&grouped);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_COMPARE(grouped.rowCount(), 7);
    QCOMPARE(texts(grouped).filter(QStringLiteral("(")),
             (QStringList{QStringLiteral("Done (2)"), QStringLiteral("Stopped (1)"), QStringLiteral("Cannot be read (1)")}));
    QVERIFY(!(grouped.index(0).flags() & Qt::ItemIsSelectable));
    runs.setFilter(QStringLiteral("mixer:top1 seed:2"));
    QTRY_COMPARE(texts(grouped), (QStringList{QStringLiteral("Done (1)"), QStringLiteral("Top-1 Chunk exact seed 2")}));
    runs.setFilter(QStringLiteral("seed:20"));
    QTRY_COMPARE(grouped.rowCount(), 0);
    runs.setFilter(QStringLiteral("AVEY"));
    QTRY_COMPARE(grouped.rowCount(), 2);
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{1});  // the filter is what every page shows
  }

  /// What the panel says is shown counts as its headings do: branches beside runs, and not what cannot be read.
  void what_is_shown_is_counted_as_the_headings_count() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey"});
    damage(folder, "c");
    ui::Session session(folder.path());
    const ui::RunActions actions(session);
    ui::RunsPanel panel(session, actions);
    panel.show();
    const auto told = [&]() -> QString {
      for (const QLabel* label : panel.findChildren<QLabel*>())
        if (label->isVisible() && label->text().contains("every page.")) return label->text();
      return {};
    };
    QTRY_COMPARE(session.runs()->runs().size(), size_t{2});
    QTRY_COMPARE(session.runs()->shown()->runs().size(), size_t{2});
    QCOMPARE(told(), QString());
    session.runs()->setShown({folder.filePath("b")}, false);
    QTRY_COMPARE(told(), QStringLiteral("1 of 2 runs are shown, here and on every page."));
    write(folder, "a/branches/step-50", {.steps = 60});
    write(folder, "a/branches/step-100", {.steps = 120});
    write(folder, "b/branches/step-50", {.mixer = "avey", .steps = 60});
    session.runs()->refresh();
    QTRY_COMPARE_WITH_TIMEOUT(session.runs()->runs().size(), size_t{5}, 20000);
    session.runs()->showOnly({folder.filePath("a")});
    QTRY_COMPARE(told(), QStringLiteral("1 of 2 runs and 2 of 3 branches are shown, here and on every page."));
  }

  /// Of three seeds one whose OOD loss became NaN: the others' mean does not pass for all of them.
  void losses_that_are_not_finite_are_told() {
    const QTemporaryDir folder;
    for (int64_t seed = 1; seed <= 3; ++seed) {
      const FixtureOptions options{.seed = seed};
      const QString directory = folder.filePath(QString::number(seed));
      RunWriter writer = RunWriter::create(directory.toStdString(), fixture_info(options));
      EvaluationRecord record = fixture_evaluation(options, 200);
      if (seed == 3) record.losses[1].loss = NAN;
      writer.add(record);
      writer.set_state(RunState::finished, 200);
    }
    RunList runs(folder.path());
    const GroupedRuns panel(&runs);
    const ui::RunsTable table(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    const auto seeds = [&] { return panel.rowCount() > 1 ? panel.index(1).data(RunList::SummaryRole).toString() : QString(); };
    QTRY_VERIFY2(QRegularExpression("^loss 2\\.\\d\\d ± 0\\.01 · OOD not finite \\(1 of 3\\)$").match(seeds()).hasMatch(),
                 qPrintable(seeds()));
    const int row = runs.row(folder.filePath("3"));
    QVERIFY(runs.index(row).data(RunList::SummaryRole).toString().endsWith(" · OOD not finite"));
    QCOMPARE(table.index(row, ui::RunsTable::ood).data().toString(), QString("not finite"));
  }

  /// A mark of what is done stands where all seeds are.
  void seeds_stand_with_what_went_worst() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.seed = 2});
    write(folder, "c", {.seed = 3, .end = RunState::stopped});
    RunList runs(folder.path());
    GroupedRuns grouped(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_COMPARE(texts(grouped), (QStringList{QStringLiteral("Stopped (1 of 3)"), QStringLiteral("Transformer++")}));
    QCOMPARE(grouped.index(1).data(RunList::StateRole).toInt(), static_cast<int>(RunState::stopped));
    QVERIFY(grouped.index(1).data(RunList::SummaryRole).toString().startsWith(QStringLiteral("2 of 3 done · loss ")));
    runs.setFilter(QStringLiteral("seed:2"));
    QTRY_COMPARE(texts(grouped).first(), QStringLiteral("Done (1)"));
  }

  void seeds_are_one_row_until_opened() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.seed = 2});
    write(folder, "c", {.mixer = "avey"});
    RunList runs(folder.path());
    GroupedRuns grouped(&runs);
    const QAbstractItemModelTester tester(&grouped);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_COMPARE(grouped.rowCount(), 3);
    QTRY_COMPARE(runs.shown()->drawn().size(), size_t{2});
    const auto group = [&] {
      for (int row = 0; row < grouped.rowCount(); ++row)
        if (grouped.index(row).data(GroupedRuns::SeedsRole).toInt() == 2) return grouped.index(row);
      return QModelIndex();
    };
    QCOMPARE(group().data(GroupedRuns::MembersRole).toStringList().size(), 2);
    grouped.setOpened(group(), true);
    QTRY_COMPARE(grouped.rowCount(), 5);
    QTRY_COMPARE(runs.shown()->drawn().size(), size_t{3});
    QVERIFY(grouped.setData(group(), Qt::Unchecked, Qt::CheckStateRole));
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{1});
    QCOMPARE(group().data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::Unchecked));
    runs.showOnly({folder.filePath(QStringLiteral("b"))});
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{1});
    QTRY_COMPARE(group().data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::PartiallyChecked));
    QTRY_COMPARE(runs.shown()->drawn().at(0).label, std::string("Transformer++, seed 2"));
  }

  /// Neither names nor colours change when another run starts.
  void a_new_run_renames_and_recolours_none() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey"});
    RunList runs(folder.path());
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    const auto look = [&](const char* name) { return runs.selection().look(*runs.run(folder.filePath(QLatin1String(name)))); };
    const RunLook before = look("a");
    QCOMPARE(before.label, std::string("Transformer++"));
    const RunInfo later = fixture_info({.layers = 5});
    RunWriter::create(folder.filePath(QStringLiteral("c")).toStdString(), later).add(fixture_step({}, 1));
    QTRY_COMPARE_WITH_TIMEOUT(runs.rowCount(), 3, 10000);
    QTRY_COMPARE(look("c").label, std::string("Transformer++, layers 5"));
    QCOMPARE(look("a").label, before.label);
    QVERIFY(look("a") == before);
    QVERIFY(!(look("c").colour == before.colour));
    runs.setFilter(QStringLiteral("mixer:attention"));  // chosen anew, so named by what differs
    QTRY_COMPARE(look("a").label, std::string("Transformer++, layers 3"));
    QVERIFY(look("a").colour == before.colour);
  }

  /// A colour of one's own is that of all seeds of a setting, and changes no other.
  void a_colour_can_be_chosen() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.seed = 2});
    write(folder, "c", {.mixer = "avey"});
    RunList runs(folder.path());
    QTRY_COMPARE(runs.shown()->drawn().size(), size_t{2});
    const auto colour = [&](const char* name) {
      return runs.index(runs.row(folder.filePath(QLatin1String(name)))).data(RunList::ColourRole).value<QColor>();
    };
    const QColor usual = colour("a"), other = colour("c"), own(0x12, 0x34, 0x56);
    runs.setColour({folder.filePath(QStringLiteral("b"))}, own);
    QTRY_COMPARE(colour("a"), own);
    QCOMPARE(colour("b"), own);
    QCOMPARE(colour("c"), other);
    const Colour drawn = runs.shown()->drawn_with(folder.filePath(QStringLiteral("a")))->colour;
    QVERIFY(drawn == (Colour{0x12, 0x34, 0x56}));
    runs.setColour({folder.filePath(QStringLiteral("a"))}, {});
    QTRY_COMPARE(colour("b"), usual);
  }

  /// Rows of one name can be told apart: by folder, start, steps and duration, and a damaged journal is seen.
  void the_table_tells_runs_apart() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.seed = 2});
    QFile journal(folder.filePath(QStringLiteral("b/journal.jsonl")));
    QVERIFY(journal.resize(journal.size() / 2));
    RunList runs(folder.path());
    ui::RunsTable table(&runs);
    const QAbstractItemModelTester tester(&table);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_COMPARE(runs.visibleRuns().size(), size_t{2});
    const int a = runs.row(folder.filePath(QStringLiteral("a"))), b = runs.row(folder.filePath(QStringLiteral("b")));
    const auto text = [&](int row, int column) { return table.index(row, column).data().toString(); };
    QCOMPARE(text(a, ui::RunsTable::folder), QStringLiteral("a"));
    QCOMPARE(text(b, ui::RunsTable::folder), QStringLiteral("b"));
    QCOMPARE(text(a, ui::RunsTable::steps), QStringLiteral("200 of 200"));
    QCOMPARE(text(a, ui::RunsTable::duration), QStringLiteral("10 s"));
    QCOMPARE(text(a, ui::RunsTable::state), QStringLiteral("Done"));
    QTRY_COMPARE_WITH_TIMEOUT(text(b, ui::RunsTable::state), QStringLiteral("Done, damaged"), 60000);  // when 5 s have passed
    QVERIFY(runs.index(b).data(RunList::SummaryRole).toString().startsWith(QStringLiteral("damaged")));
    const QColor red = ui::errorColour(QApplication::palette());
    QCOMPARE(table.index(b, ui::RunsTable::state).data(Qt::ForegroundRole).value<QColor>(), red);
    QVERIFY(!table.index(a, ui::RunsTable::state).data(Qt::ForegroundRole).isValid());
    QVERIFY(is_red(runs.index(b)) && !is_red(runs.index(a)));
    GroupedRuns grouped(&runs);
    QVERIFY(grouped.index(1).data(RunList::DamageRole).toBool());  // its two seeds are one row
    QVERIFY(grouped.index(1).data(RunList::SummaryRole).toString().startsWith(QStringLiteral("1 damaged")));
  }

  /// Runs of one architecture and one name that differ in a setting say in which, as charts do.
  void the_table_names_settings_that_differ() {
    const QTemporaryDir folder;
    write(folder, "a", {.mixer = "top1_chunk", .chunk = 16});
    write(folder, "b", {.mixer = "top1_chunk", .chunk = 32});
    RunList runs(folder.path());
    const ui::RunsTable table(&runs);
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    const auto cell = [&](const char* run) {
      return table.index(runs.row(folder.filePath(QString::fromLatin1(run))), ui::RunsTable::architecture);
    };
    QCOMPARE(cell("a").data().toString(), QStringLiteral("Top-1 Chunk exact, chunk 16"));
    QCOMPARE(cell("b").data(ui::RunsTable::SortRole).toString(), QStringLiteral("Top-1 Chunk exact, chunk 32"));
  }

  /// Star, tags and note are kept beside the run, found by the filter, seen by other windows, and never written over what cannot be read.
  void notes_are_kept_beside_the_run() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey"});
    RunList runs(folder.path()), elsewhere(folder.path());
    ui::RunsTable table(&runs);
    const QAbstractItemModelTester tester(&table);
    QTRY_COMPARE(runs.visibleRuns().size(), size_t{2});
    const QString b = folder.filePath(QStringLiteral("b"));
    const auto cell = [&](int column) { return table.index(runs.row(b), column); };
    QCOMPARE(cell(ui::RunsTable::star).data().toString(), QStringLiteral("☆"));
    QVERIFY(cell(ui::RunsTable::note).flags() & Qt::ItemIsEditable && !(cell(ui::RunsTable::name).flags() & Qt::ItemIsEditable));
    QVERIFY(table.setData(cell(ui::RunsTable::star), true));
    QVERIFY(table.setData(cell(ui::RunsTable::tags), QStringLiteral(" paper,  figure 2,, paper ")));
    QVERIFY(table.setData(cell(ui::RunsTable::note), QStringLiteral("Rate too high.")));
    QCOMPARE(cell(ui::RunsTable::star).data().toString(), QStringLiteral("★"));
    QCOMPARE(cell(ui::RunsTable::tags).data().toString(), QStringLiteral("paper, figure 2"));
    QVERIFY(read_notes(b.toStdString()) == (RunNotes{true, {"paper", "figure 2"}, "Rate too high."}));
    runs.setFilter(QStringLiteral("tag:figure starred"));
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{1});
    QCOMPARE(ui::directory_of(*runs.shown()->runs().front()), b);
    QTRY_VERIFY_WITH_TIMEOUT(elsewhere.run(b) && elsewhere.run(b)->notes().starred, 10000);
    QFile file(b + QStringLiteral("/notes.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("half a file");
    file.close();
    QTRY_VERIFY_WITH_TIMEOUT(!runs.run(b)->notes_problem().empty(), 10000);
    QVERIFY(runs.run(b)->find("train/loss"));  // all else is as it was
    QSignalSpy failed(&table, &ui::RunsTable::failed);
    QVERIFY(!table.setData(cell(ui::RunsTable::star), true));
    QCOMPARE(failed.size(), 1);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), QByteArray("half a file"));
  }

  /// A swatch of the selection's own colour is seen in a selected row.
  void a_selected_row_keeps_its_swatch() {
    const QTemporaryDir folder;
    write(folder, "a", {.mixer = "top1_chunk"});
    RunList runs(folder.path());
    QVERIFY(QSignalSpy(&runs, &RunList::loaded).wait());
    QTRY_VERIFY(runs.index(0).data(RunList::ColourRole).value<QColor>().isValid());
    QStyleOptionViewItem option;
    option.rect = {0, 0, 200, 24};
    option.state = QStyle::State_Enabled | QStyle::State_Selected;
    option.palette.setColor(QPalette::Highlight, runs.index(0).data(RunList::ColourRole).value<QColor>());
    option.palette.setColor(QPalette::Base, Qt::white);
    QImage image(200, 24, QImage::Format_RGB32);
    image.fill(option.palette.color(QPalette::Highlight));
    QPainter painter(&image);
    ui::SwatchDelegate().paint(&painter, option, runs.index(0));
    painter.end();
    const int middle = ui::kSwatchMargin + ui::kSwatchWidth / 2;
    QVERIFY(image.pixelColor(middle, 7).lightness() > 230);  // ground above the stroke
    QVERIFY(image.pixelColor(middle, 12).lightness() < 180);
  }

  void writes_quantities_for_people() {
    QCOMPARE(ui::formatLoss(-0.0004, 3), QStringLiteral("0.000"));  // neither less nor more, as far as is shown
    QCOMPARE(ui::formatLoss(-0.0006, 3), QStringLiteral("−0.001"));
    QCOMPARE(ui::formatLoss(3.12, 3), QStringLiteral("3.120"));
    QCOMPARE(ui::formatCount(999), QStringLiteral("999"));
    QCOMPARE(ui::formatCount(1900000), QStringLiteral("1.90\u00a0M"));
    QCOMPARE(ui::formatBytes(3.5 * 1024 * 1024), QStringLiteral("3.50\u00a0MiB"));
    QCOMPARE(ui::formatDuration(46), QStringLiteral("46 s"));
    QCOMPARE(ui::formatDuration(240), QStringLiteral("4 min"));
    QCOMPARE(ui::formatDuration(3600 * 5 + 120), QStringLiteral("5 h 2 min"));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::RunListTest)
#include "run_list_test.moc"
