// The table of the page Runs: gathered by settings, with cooldown branches below their runs and with what waits in a queue.
#include <time.h>

#include <QAbstractItemModelTester>
#include <QAction>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QSettings>
#include <QSignalSpy>
#include <QStyledItemDelegate>
#include <QTemporaryDir>
#include <QtTest>

#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "tests/analysis/fixture.h"
#include "tests/support/instrumented.h"
#include "tests/support/tiny_run.h"
#include "ui/page.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/runs/differences_view.h"
#include "ui/runs/grouping_choice.h"
#include "ui/runs/queued_runs.h"
#include "ui/runs/run_tree.h"
#include "ui/runs/runs_page.h"
#include "ui/runs/runs_view.h"
#include "ui/session.h"
#include "ui/shell/grouped_runs.h"
#include "ui/shell/main_window.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

namespace {

double thread_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// A few steps and one evaluation: what a table needs.
void write_short(const std::filesystem::path& directory, const RunInfo& info, const FixtureOptions& options) {
  RunWriter writer = RunWriter::create(directory, info);
  writer.set_state(RunState::running, 0);
  for (int64_t step = 1; step <= 5; ++step) writer.add(fixture_step(options, step));
  writer.add(fixture_evaluation(options, 5));
  writer.set_state(RunState::finished, 5);
}

/// A queue that nothing works off.
DeviceQueue resting_queue() {
  DeviceQueue queue("cpu");
  queue.edit([](QueueState& state) { state = {}, state.paused = true; });
  return queue;
}

}  // namespace

class RunsPageTest : public QObject {
  Q_OBJECT

  QTemporaryDir data_;

  static void write(const QTemporaryDir& folder, const char* name, const FixtureOptions& options) {
    write_fixture(folder.filePath(QLatin1String(name)).toStdString(), options);
  }
  static void write_four(const QTemporaryDir& folder) {
    write(folder, "a", {.mixer = "top1_chunk"});
    write(folder, "b", {});
    write(folder, "c", {.seed = 2});
    write(folder, "d", {.mixer = "avey", .end = RunState::stopped});
  }
  /// Names of rows below `parent`, those of groups before what is below them in braces.
  static QString shown(const RunTree& tree, const QModelIndex& parent = {}) {
    QStringList rows;
    for (int row = 0; row < tree.rowCount(parent); ++row) {
      const QModelIndex index = tree.index(row, 0, parent);
      const bool run = !index.data(RunList::DirectoryRole).toString().isEmpty();
      QString text = run ? index.siblingAtColumn(RunsTable::folder).data().toString() : index.data().toString();
      if (tree.rowCount(index) > 0) text += QStringLiteral(" {%1}").arg(shown(tree, index));
      rows << text;
    }
    return rows.join(QStringLiteral(", "));
  }
  struct Model {
    explicit Model(const QString& folder) : runs(folder), tree(&runs, &queued), tester(&tree) {
      if (runs.loading()) QSignalSpy(&runs, &RunList::loaded).wait();
      const auto there = [&] { return runs.unread() == 0 && (tree.rowCount() > 0 || runs.rowCount() == 0); };
      if (!QTest::qWaitFor(there, 20000)) qFatal("runs not read");
    }
    QModelIndex at(const QString& directory, int column = 0) const { return tree.indexOf(directory).siblingAtColumn(column); }
    RunList runs;
    QueuedRuns queued;
    RunTree tree;
    QAbstractItemModelTester tester;
  };
  struct Shown {
    explicit Shown(const QString& folder, QSettings* settings = nullptr, const QSize& size = {1100, 720}) : session(folder) {
      session.remember(settings);
      page = std::make_unique<RunsPage>(session);
      page->resize(size);
      page->show();
      if (!QTest::qWaitFor([&] { return !session.runs()->loading() && session.runs()->unread() == 0; }, 20000)) qFatal("runs not read");
      QTest::qWait(50);
    }
    template <class T>
    T* child(const QString& name) const {
      for (T* each : page->findChildren<T*>())
        if (each->accessibleName() == name) return each;
      return nullptr;
    }
    RunsView* table() const { return page->findChild<RunsView*>(); }
    RunTree& tree() const { return *page->findChild<RunTree*>(); }
    void group_by(const QString& title) const {
      auto* choice = child<QComboBox>(QStringLiteral("Group runs by"));
      QTRY_VERIFY2(choice->findText(title) >= 0, qPrintable(title));
      choice->setCurrentIndex(choice->findText(title));
      Q_EMIT choice->activated(choice->currentIndex());
    }
    QAction* menu_action(const QModelIndex& index, const QString& text) const {
      Q_EMIT table()->customContextMenuRequested(table()->visualRect(index).center());
      for (QMenu* menu : page->findChildren<QMenu*>())
        for (QAction* action : menu->actions())
          if (menu->isVisible() && action->text().remove(QLatin1Char('&')) == text) return action;
      return nullptr;
    }
    Session session;
    std::unique_ptr<RunsPage> page;
  };

 private Q_SLOTS:
  void initTestCase() { qputenv("SACCADE_DATA", data_.path().toUtf8()); }
  void cleanup() { resting_queue(); }

  void gathers_by_a_setting_and_sorts_inside() {
    const QTemporaryDir folder;
    write_four(folder);
    Model model(folder.path());
    model.tree.sort(RunsTable::folder, Qt::AscendingOrder);
    QCOMPARE(shown(model.tree), QStringLiteral("a, b, c, d"));
    model.tree.setGrouping(QStringLiteral("/architecture/mixer"));
    QCOMPARE(shown(model.tree), QStringLiteral("mixer = attention (2) {b, c}, mixer = avey (1) {d}, mixer = top1_chunk (1) {a}"));
    model.tree.sort(RunsTable::seed, Qt::DescendingOrder);
    QCOMPARE(shown(model.tree), QStringLiteral("mixer = attention (2) {c, b}, mixer = avey (1) {d}, mixer = top1_chunk (1) {a}"));
    model.runs.setFilter(QStringLiteral("seed:1"));
    QTRY_COMPARE(shown(model.tree), QStringLiteral("mixer = attention (1) {b}, mixer = avey (1) {d}, mixer = top1_chunk (1) {a}"));
    model.runs.setFilter({});
    QTRY_COMPARE(model.tree.rowCount(model.tree.index(0, 0)), 2);
    model.tree.setGrouping(QStringLiteral("/training/seed"));
    QCOMPARE(shown(model.tree),
             QStringLiteral("seed = 1 (3) {a, b, d}, seed = 2 (1) {c}").replace("a, b, d", shown(model.tree, model.tree.index(0, 0))));
    model.tree.setGrouping({});
    QCOMPARE(model.tree.rowCount(), 4);
    QVERIFY(!model.tree.deep());
  }

  /// Seeds: mean and deviation of what is done; several settings: the best.
  void heads_tell_what_their_runs_reached() {
    const QTemporaryDir folder;
    write_four(folder);
    Model model(folder.path());
    model.tree.setGrouping(QStringLiteral("architecture"));
    const auto cell = [&](int row, int column, int role = Qt::DisplayRole) { return model.tree.index(row, column).data(role).toString(); };
    QCOMPARE(cell(0, RunsTable::name), QStringLiteral("architecture = Avey (1)"));
    QCOMPARE(cell(0, RunsTable::state), QStringLiteral("0 of 1 done"));
    QCOMPARE(cell(0, RunsTable::loss), QStringLiteral("–"));
    QCOMPARE(cell(2, RunsTable::name), QStringLiteral("architecture = Transformer++ (2)"));
    QCOMPARE(cell(2, RunsTable::state), QStringLiteral("Done"));
    const double one = fixture_loss({.seed = 1}, 200), two = fixture_loss({.seed = 2}, 200);
    QCOMPARE(cell(2, RunsTable::loss),
             QStringLiteral("%1 ± %2").arg((one + two) / 2, 0, 'f', 3).arg((two - one) / std::sqrt(2.0), 0, 'f', 3));
    QVERIFY(cell(2, RunsTable::loss, Qt::AccessibleTextRole).contains(QStringLiteral("of 2 runs that are done")));
    QCOMPARE(cell(2, RunsTable::name, Qt::AccessibleTextRole), QStringLiteral("Group architecture = Transformer++, 2 runs"));
    model.tree.setGrouping(QStringLiteral("/data/corpus"));
    QCOMPARE(cell(0, RunsTable::loss), QStringLiteral("best %1").arg(one, 0, 'f', 3));
    QCOMPARE(model.tree.index(0, 0).data(RunTree::MembersRole).toStringList().size(), 4);
    QVERIFY(model.tree.index(0, 0).flags() & Qt::ItemIsSelectable);
  }

  /// A tag that is written takes its run to another group; a run with two stands in both.
  void a_run_goes_where_its_tags_say() {
    const QTemporaryDir folder;
    write_four(folder);
    Model model(folder.path());
    model.tree.setGrouping(QStringLiteral("tag"));
    QCOMPARE(model.tree.rowCount(), 1);
    const QString b = folder.filePath(QStringLiteral("b")), d = folder.filePath(QStringLiteral("d"));
    const QPersistentModelIndex stays = model.at(d);
    QVERIFY(model.tree.setData(model.at(b, RunsTable::tags), QStringLiteral("paper, old")));
    QTRY_COMPARE(model.tree.rowCount(), 3);
    QCOMPARE(model.tree.index(0, 0).data().toString(), QStringLiteral("tag = old (1)"));
    QCOMPARE(model.tree.index(2, 0).data().toString(), QStringLiteral("no tag (3)"));
    QCOMPARE(stays.data(RunList::DirectoryRole).toString(), d);
    QCOMPARE(model.tree.index(0, 0, model.tree.index(1, 0)).data(RunList::DirectoryRole).toString(), b);
    QVERIFY(model.tree.setData(model.at(b, RunsTable::tags), QString()));
    QTRY_COMPARE(model.tree.rowCount(), 1);
    QVERIFY(QDir(b).removeRecursively());
    QTRY_COMPARE_WITH_TIMEOUT(model.tree.rowCount(model.tree.index(0, 0)), 3, 20000);
    QVERIFY(!model.tree.indexOf(b).isValid());
  }

  void folds_by_keys_and_remembers() {
    const QTemporaryDir folder;
    write_four(folder);
    QSettings settings(folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat);
    {
      const Shown window(folder.path(), &settings);
      QVERIFY(!window.table()->rootIsDecorated());
      window.group_by(QStringLiteral("mixer"));
      QTRY_COMPARE(window.tree().rowCount(), 3);
      QVERIFY(window.table()->rootIsDecorated());
      const QModelIndex attention = window.tree().index(0, 0), avey = window.tree().index(1, 0);
      QVERIFY(window.table()->isExpanded(attention) && window.table()->isExpanded(avey));
      window.table()->setCurrentIndex(attention);
      QCOMPARE(window.session.chosen().size(), 2);  // a group stands for its runs
      QTest::keyClick(window.table(), Qt::Key_Left);
      QVERIFY(!window.table()->isExpanded(attention));
      QTest::keyClick(window.table(), Qt::Key_Down);
      QCOMPARE(window.table()->currentIndex().row(), 1);
      QTest::keyClick(window.table(), Qt::Key_Left);
      QTest::keyClick(window.table(), Qt::Key_Right);
      QVERIFY(window.table()->isExpanded(avey));
    }
    const Shown again(folder.path(), &settings);
    QTRY_COMPARE(again.tree().rowCount(), 3);
    QCOMPARE(again.child<QComboBox>(QStringLiteral("Group runs by"))->currentText(), QStringLiteral("mixer"));
    QVERIFY(!again.table()->isExpanded(again.tree().index(0, 0)));
    QVERIFY(again.table()->isExpanded(again.tree().index(1, 0)));
    again.menu_action(again.tree().index(0, 0), QStringLiteral("Unfold all groups"))->trigger();
    QVERIFY(again.table()->isExpanded(again.tree().index(0, 0)));
    again.group_by(QStringLiteral("no setting"));
    QTRY_COMPARE(again.tree().rowCount(), 4);
  }

  /// What differs is offered, usual settings first; what no run has is not.
  void offers_what_differs() {
    const QTemporaryDir folder;
    write_four(folder);
    const Shown window(folder.path());
    auto* choice = window.child<GroupingChoice>(QStringLiteral("Group runs by"));
    QStringList offered;
    const auto read = [&] {
      offered.clear();
      for (int i = 0; i < choice->count(); ++i) offered << choice->itemText(i);
      return offered;
    };
    if (!QTest::qWaitFor([&] { return read().size() > 3; }, 10000)) qFatal("nothing is offered");
    QTRY_COMPARE(read(), (QStringList{"no setting", "architecture", "mixer", "seed", "state", "", "block", "initialisation"}));
    QVERIFY(!choice->toolTip().isEmpty() && choice->toolTip().contains(QStringLiteral("Ctrl+G")));
    QVERIFY(window.tree().setData(window.tree().indexOf(folder.filePath(QStringLiteral("a"))).siblingAtColumn(RunsTable::tags),
                                  QStringLiteral("paper")));
    QTRY_VERIFY_WITH_TIMEOUT(read().contains(QStringLiteral("tag")), 10000);
  }

  /// What a baseline is chosen for: only what differs from it, under heads, and what is otherwise stands out.
  void runs_are_told_against_the_baseline() {
    const QTemporaryDir folder;
    write_four(folder);
    Shown window(folder.path());
    const QString b = folder.filePath(QStringLiteral("b")), c = folder.filePath(QStringLiteral("c")),
                  d = folder.filePath(QStringLiteral("d"));
    auto* differs = window.page->findChild<DifferencesView*>();
    const auto mark = [&](const QStringList& directories) {
      QItemSelectionModel* marked = window.table()->selectionModel();
      marked->clear();
      for (const QString& each : directories)
        marked->setCurrentIndex(window.tree().indexOf(each), QItemSelectionModel::Select | QItemSelectionModel::Rows);
    };
    const auto cell = [&](const QString& setting, int run) -> const QTableWidgetItem* {
      for (int row = 0; row < differs->rowCount(); ++row)
        if (differs->item(row, 0)->toolTip().endsWith(QLatin1Char('/') + setting)) return differs->item(row, run);
      return nullptr;
    };
    const auto head = [&](int column) { return differs->horizontalHeaderItem(column)->text(); };
    mark({d});
    QVERIFY(cell(QStringLiteral("width"), 1));  // all settings of the one that is marked
    const RunActions actions(window.session);
    window.session.setCurrentRun(b);
    actions.baseline->trigger();
    mark({d});
    QTRY_COMPARE(differs->columnCount(), 3);
    QVERIFY2(head(1).endsWith(QStringLiteral("(baseline)")) && head(2) == QStringLiteral("Avey"), qPrintable(head(1)));
    QVERIFY(!cell(QStringLiteral("width"), 1));
    QCOMPARE(cell(QStringLiteral("mixer"), 1)->text(), QStringLiteral("attention"));
    QCOMPARE(cell(QStringLiteral("mixer"), 2)->text(), QStringLiteral("avey"));
    mark({d, c});  // the baseline is the first whatever is marked
    QTRY_COMPARE(differs->columnCount(), 4);
    QVERIFY(head(1).endsWith(QStringLiteral("(baseline)")));
    const int own = head(2) == QStringLiteral("Avey") ? 2 : 3;
    QVERIFY(cell(QStringLiteral("mixer"), own)->font().bold() && !cell(QStringLiteral("mixer"), 5 - own)->font().bold());
    QVERIFY(cell(QStringLiteral("seed"), 5 - own)->font().bold() && !cell(QStringLiteral("seed"), own)->font().bold());
    window.session.runs()->setBaseline({});
    mark({d});
    QTRY_VERIFY(cell(QStringLiteral("width"), 1));
  }

  void branches_stand_below_their_run() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey"});
    write(folder, "a/branches/step-100", {.steps = 120});
    write(folder, "a/branches/step-50", {.steps = 60, .end = RunState::stopped});
    Model model(folder.path());
    QTRY_COMPARE(model.runs.rowCount(), 4);
    QTRY_COMPARE(model.tree.rowCount(), 2);
    const QModelIndex a = model.at(folder.filePath(QStringLiteral("a")));
    QCOMPARE(model.tree.rowCount(a), 2);
    QCOMPARE(model.tree.index(0, 0, a).data().toString(), QStringLiteral("cooldown from step 50"));
    QCOMPARE(model.tree.index(1, 0, a).data().toString(), QStringLiteral("cooldown from step 100"));
    model.tree.setGrouping(QStringLiteral("/training/steps"));  // they stay with it whatever their own are
    QCOMPARE(model.tree.rowCount(), 1);
    QCOMPARE(model.tree.index(0, 0).data().toString(), QStringLiteral("steps = 200 (2)"));
    model.tree.setGrouping({});
    model.runs.setFilter(QStringLiteral("stopped"));  // the run is not among them
    QTRY_COMPARE(shown(model.tree), QStringLiteral("step-50"));
  }

  /// Every run with branches has rows of its own below it; a filter tells of each of them, and that must not cost a measurement each.
  void columns_are_measured_once_for_many_changes() {
    class Counting : public QStyledItemDelegate {
     public:
      mutable int asked = 0;
      QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        ++asked;
        return QStyledItemDelegate::sizeHint(option, index);
      }
    };
    const QTemporaryDir folder;
    constexpr int kRuns = 12;
    for (int i = 0; i < kRuns; ++i) {
      write(folder, qPrintable(QString("run-%1").arg(i)), {.seed = i + 1, .steps = 60});
      write(folder, qPrintable(QString("run-%1/branches/step-40").arg(i)), {.seed = i + 1, .steps = 50});
    }
    Shown window(folder.path());
    QTRY_COMPARE_WITH_TIMEOUT(window.session.runs()->rowCount(), 2 * kRuns, 20000);
    QTest::qWait(200);
    Counting delegate;
    window.table()->setItemDelegate(&delegate);
    QTest::qWait(100);
    delegate.asked = 0;
    window.session.runs()->setFilter(QStringLiteral("seed>0"));  // holds for all of them
    QTest::qWait(300);
    QVERIFY2(delegate.asked <= 3 * kRuns * RunsTable::column_count, qPrintable(QString::number(delegate.asked)));
    window.table()->setItemDelegate(new QStyledItemDelegate(window.table()));
  }

  void branches_are_folded_in_the_panel() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "b", {.mixer = "avey"});
    write(folder, "a/branches/step-100", {.steps = 120});
    write(folder, "a/branches/step-50", {.steps = 60});
    RunList runs(folder.path());
    GroupedRuns panel(&runs);
    const QAbstractItemModelTester tester(&panel);
    QTRY_COMPARE(panel.rowCount(), 3);  // a heading and two runs
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{4});
    QCOMPARE(panel.index(0).data().toString(), QStringLiteral("Done (2)"));
    const auto trunk = [&] { return panel.index(panel.row(folder.filePath(QStringLiteral("a")))); };
    QVERIFY(trunk().data(GroupedRuns::FoldsRole).toBool() && !trunk().data(GroupedRuns::OpenedRole).toBool());
    QVERIFY2(trunk().data(RunList::SummaryRole).toString().endsWith(QStringLiteral("2 branches")),
             qPrintable(trunk().data(RunList::SummaryRole).toString()));
    QCOMPARE(panel.row(folder.filePath(QStringLiteral("a/branches/step-50"))), -1);
    panel.setOpened(trunk(), true);
    QTRY_COMPARE(panel.rowCount(), 5);
    const QModelIndex branch = panel.index(trunk().row() + 1);
    QVERIFY(branch.data(GroupedRuns::ChildRole).toBool());
    QCOMPARE(branch.data(RunList::TitleRole).toString(), QStringLiteral("cooldown from step 50"));
    QVERIFY(panel.setData(branch, Qt::Unchecked, Qt::CheckStateRole));  // one by itself
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{3});
    QVERIFY(panel.setData(trunk(), Qt::Unchecked, Qt::CheckStateRole));  // they go with their run, and come with it
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{1});
    runs.showOnly({folder.filePath(QStringLiteral("a"))});
    QTRY_COMPARE(runs.shown()->runs().size(), size_t{3});
    panel.setOpened(trunk(), false);
    QTRY_COMPARE(panel.rowCount(), 3);
    QCOMPARE(runs.shown()->drawn().size(), size_t{3});  // folding is of the list alone
  }

  /// What waits stands in the table with its place, is found by the filter and gathered, and becomes the run that begins.
  void what_waits_stands_in_the_table() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    write(folder, "rests", {.seed = 3, .end = RunState::stopped});
    const DeviceQueue queue = resting_queue();
    Json config = tiny_run("mine");
    enqueue_run(queue, folder.filePath(QStringLiteral("elsewhere/x")).toStdString(), config);
    enqueue_run(queue, folder.filePath(QStringLiteral("waits")).toStdString(), config);
    enqueue_run(queue, folder.filePath(QStringLiteral("rests")).toStdString(), Json());
    Model model(folder.path());
    model.queued.setFolders(folder.path(), {folder.path()});
    model.queued.setLooking(true);
    QTRY_COMPARE(model.tree.rowCount(), 3);
    const QModelIndex waits = model.tree.index(0, 0);
    QCOMPARE(waits.data().toString(), QStringLiteral("tiny"));
    QCOMPARE(waits.data(RunTree::KindRole).toInt(), static_cast<int>(RunTree::Kind::queued));
    QCOMPARE(waits.siblingAtColumn(RunsTable::state).data().toString(), QStringLiteral("Queued, 2 of 3, paused"));
    QCOMPARE(waits.siblingAtColumn(RunsTable::steps).data().toString(), QStringLiteral("0 of 12"));
    QCOMPARE(model.at(folder.filePath(QStringLiteral("rests")), RunsTable::state).data().toString(),
             QStringLiteral("Stopped, queued 3 of 3, paused"));
    model.tree.setGrouping(QStringLiteral("/architecture/width"));
    QCOMPARE(model.tree.index(0, 0).data().toString(), QStringLiteral("width = 16 (1 queued)"));
    model.tree.setGrouping({});
    model.runs.setFilter(QStringLiteral("queued width:16"));
    QTRY_COMPARE(shown(model.tree), QStringLiteral("tiny"));
    model.runs.setFilter({});
    take_out(queue, "1");  // the one before it is gone
    QTRY_COMPARE_WITH_TIMEOUT(model.tree.index(0, RunsTable::state).data().toString(), QStringLiteral("Queued, 1 of 2, paused"), 10000);
    write(folder, "waits", {.seed = 7});
    QTRY_VERIFY_WITH_TIMEOUT(model.tree.indexOf(folder.filePath(QStringLiteral("waits"))).isValid(), 20000);
    QTRY_COMPARE(model.tree.rowCount(), 3);
    for (int row = 0; row < 3; ++row)
      QVERIFY(model.tree.index(row, 0).data(RunTree::KindRole).toInt() == static_cast<int>(RunTree::Kind::run));
  }

  /// Of a study's folder: the runs that it is to begin yet, gathered under its name. Beside its folder: one row.
  void a_study_waits() {
    const QTemporaryDir folder;
    const Json study{{"question", "Which width?"},
                     {"base", tiny_run("mine")},
                     {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
                     {"seeds", {1}}};
    const std::string widths = folder.filePath(QStringLiteral("widths")).toStdString();
    create_study_folder(widths, parse_study(study.dump(), "widths.json", "widths"));
    enqueue_study(resting_queue(), widths);
    Model beside(folder.path());
    beside.queued.setFolders(folder.path(), {folder.path()});
    beside.queued.setLooking(true);
    QTRY_COMPARE(beside.tree.rowCount(), 1);
    QCOMPARE(beside.tree.index(0, RunsTable::architecture).data().toString(), QStringLiteral("study"));
    const QString inside = folder.filePath(QStringLiteral("widths/runs"));
    Model model(inside);
    model.queued.setFolders(inside, {inside});
    model.queued.setLooking(true);
    QTRY_COMPARE(model.tree.rowCount(), 2);
    model.tree.setGrouping(QStringLiteral("study"));
    QCOMPARE(model.tree.index(0, 0).data().toString(), QStringLiteral("study = widths (2 queued)"));
    model.tree.setGrouping(QStringLiteral("/architecture/width"));
    QCOMPARE(model.tree.rowCount(), 2);
    QVERIFY(model.tree.index(0, RunsTable::name, model.tree.index(0, 0)).data(Qt::ToolTipRole).toString().contains("of the study widths"));
  }

  void an_entry_is_taken_out_and_put_back() {
    const QTemporaryDir folder;
    write(folder, "a", {});
    const DeviceQueue queue = resting_queue();
    enqueue_run(queue, folder.filePath(QStringLiteral("first")).toStdString(), tiny_run("mine"));
    enqueue_run(queue, folder.filePath(QStringLiteral("second")).toStdString(), tiny_run("mine"));
    Shown window(folder.path());
    QTRY_COMPARE(window.tree().rowCount(), 3);
    window.table()->setCurrentIndex(window.tree().index(1, 0));
    QCOMPARE(window.session.chosen(), QStringList());  // it is no run yet
    QAction* earlier = window.menu_action(window.tree().index(0, 0), QStringLiteral("Earlier in the queue"));
    QVERIFY(earlier && !earlier->isEnabled());
    QSignalSpy offered(&window.session, &Session::offered), failed(&window.session, &Session::failed);
    window.menu_action(window.tree().index(0, 0), QStringLiteral("Take out of the queue"))->trigger();
    QTRY_COMPARE(offered.size(), 1);
    QTRY_COMPARE(window.tree().rowCount(), 2);
    QCOMPARE(queue.read().entries.size(), size_t{1});
    offered[0][1].value<Offer>().act();
    QTRY_COMPARE(window.tree().rowCount(), 3);
    QCOMPARE(queue.read().entries.front().directory.filename().string(), std::string("first"));
    QVERIFY2(failed.isEmpty(), qPrintable(failed.value(0).value(0).toString()));
  }

  /// In a window of 1 000 by 700 name, state and losses are read without scrolling, however they are gathered.
  void losses_are_seen_in_a_small_window() {
    const QTemporaryDir folder;
    write_four(folder);
    write(folder, "a-run-with-a-very-long-name-that-goes-on", {.mixer = "top1_element", .end = RunState::crashed});
    const FixtureOptions live{.seed = 9, .steps = 100000};  // which has hours to go
    RunWriter writer = RunWriter::create(folder.filePath(QStringLiteral("live")).toStdString(), fixture_info(live));
    writer.set_state(RunState::running, 0);
    for (int64_t step = 1; step <= 30; ++step) writer.add(fixture_step(live, step));
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.resize(1000, 700);
    window.showPage(QStringLiteral("runs"));
    window.show();
    QTRY_VERIFY(!session.runs()->loading() && session.runs()->unread() == 0);
    auto* table = window.findChild<RunsView*>();
    auto* tree = window.findChild<RunTree*>();
    for (const QString& key : {QString(), QStringLiteral("/architecture/mixer"), QStringLiteral("/data/corpus")}) {
      tree->setGrouping(key);
      QTest::qWait(50);
      const QHeaderView* head = table->header();
      for (const int column : {RunsTable::name, RunsTable::state, RunsTable::loss, RunsTable::ood}) {
        const int left = head->sectionViewportPosition(column), right = left + head->sectionSize(column);
        QVERIFY2(left >= 0 && right <= table->viewport()->width() && head->sectionSize(column) > 40,
                 qPrintable(QStringLiteral("%1: %2 to %3 of %4").arg(column).arg(left).arg(right).arg(table->viewport()->width())));
      }
    }
    const auto tall = [&] { return table->header()->sectionSize(RunsTable::name); };
    QVERIFY(tall() >= 150);
    tree->setGrouping({});
    QTest::qWait(50);
    const QModelIndex state = tree->indexOf(folder.filePath(QStringLiteral("live"))).siblingAtColumn(RunsTable::state);
    const QString told = state.data().toString();
    QVERIFY2(told.startsWith("0 %, ") && told.endsWith(" min left"), qPrintable(told));
    QVERIFY(table->columnWidth(RunsTable::state) > table->fontMetrics().horizontalAdvance(told));  // never elided
    tree->setGrouping(QStringLiteral("/data/corpus"));                                             // whose heads are long
    table->setColumnHidden(RunsTable::star, true);
    window.resize(1600, 900);
    QTRY_VERIFY(tall() > 200);
  }

  /// With a thousand runs nothing that is done to the table takes longer than a frame of a sixtieth of a second; what a new grouping takes
  /// is what is drawn of it.
  void a_thousand_runs_are_quick() {
    const QTemporaryDir folder;
    const QTemporaryDir models;
    for (int i = 0; i < 20; ++i) {
      const FixtureOptions options{.mixer = i % 2 ? "avey" : "top1_chunk", .seed = i % 5, .layers = 1 + i % 10};
      RunInfo info = fixture_info(options);
      info.config["architecture"]["width"] = 16 * (1 + i % 20);
      write_short(models.filePath(QString::number(i)).toStdString(), info, options);
    }
    for (int i = 0; i < 1000; ++i) {
      const QString from = models.filePath(QString::number(i % 20)), to = folder.filePath(QString::number(i));
      QVERIFY(QDir().mkpath(to));
      for (const char* file : {"/run.json", "/journal.jsonl"}) QVERIFY(QFile::copy(from + file, to + file));
    }
    RunList runs(folder.path());
    QueuedRuns queued;
    RunTree tree(&runs, &queued);
    runs.setHidden({});
    QTRY_COMPARE_WITH_TIMEOUT(tree.rowCount(), 1000, 120000);
    const auto took = [&](const auto& what) {
      double least = 1e9;  // of a few, for others share the processor's caches
      for (int i = 0; i < 5; ++i) {
        const double before = thread_milliseconds();
        what(i);
        least = std::min(least, thread_milliseconds() - before);
      }
      return least;
    };
    const char* keys[] = {"/architecture/width", "/architecture/layers", "architecture", "/training/seed", "tag"};
    const double grouped = took([&](int i) { tree.setGrouping(QLatin1String(keys[i])); });
    const double sorted = took([&](int i) { tree.sort(RunsTable::loss, i % 2 ? Qt::AscendingOrder : Qt::DescendingOrder); });
    const double told = took([&](int) { Q_EMIT runs.dataChanged(runs.index(0), runs.index(999)); });
    const double again = took([&](int) {
      QSignalSpy arranged(&tree, &RunTree::arranged);
      Q_EMIT runs.changed();
      QCoreApplication::processEvents();
      QVERIFY(arranged.size() > 0);
    });
    qInfo("1000 runs: grouped %.1f ms, sorted %.1f ms, all told %.1f ms, the same again %.1f ms", grouped, sorted, told, again);
    for (const double each : {grouped, sorted, told, again}) QVERIFY2(each < 16 * kSlower, qPrintable(QString::number(each)));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::RunsPageTest)
#include "runs_page_test.moc"
