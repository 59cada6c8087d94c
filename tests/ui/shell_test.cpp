#include <QAbstractButton>
#include <QAccessible>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMainWindow>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QScreen>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "analysis/runs/run_lock.h"
#include "tests/analysis/fixture.h"
#include "ui/page.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/empty_state.h"
#include "ui/shell/help.h"
#include "ui/shell/main_window.h"
#include "ui/shell/message_bar.h"
#include "ui/shell/palette.h"
#include "ui/shell/reading_bar.h"
#include "ui/shell/runs_panel.h"
#include "ui/shell/same_kind.h"
#include "ui/studies/job_script.h"
#include "ui/theme.h"

namespace saccade::test {

using namespace ui;

class ShellTest : public QObject {
  Q_OBJECT

  static void wait_for_runs(Session& session) { QTRY_VERIFY(!session.runs()->loading()); }

 private Q_SLOTS:
  void initTestCase() { qputenv("SACCADE_DATA", data_.path().toUtf8()); }

  void pages_stand_in_order() {
    QVERIFY(pages().size() >= 2);
    for (size_t i = 1; i < pages().size(); ++i) QVERIFY(pages()[i - 1].order <= pages()[i].order);
    for (const Page& page : pages()) QVERIFY2(!themedIcon(page.icon).isNull(), qPrintable(page.icon));
  }

  void ctrl_and_number_opens_a_page() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {});
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.show();
    wait_for_runs(session);
    QVERIFY(QTest::qWaitForWindowActive(&window));
    for (size_t i = 0; i < pages().size(); ++i) {
      QTest::keyClick(&window, static_cast<Qt::Key>(Qt::Key_1 + static_cast<int>(i)), Qt::ControlModifier);
      QCOMPARE(window.page(), pages()[i].id);
    }
    QTest::keyClick(&window, Qt::Key_N, Qt::ControlModifier);
    QCOMPARE(window.page(), QStringLiteral("configure"));
  }

  /// A narrow window takes from the list of runs, and a wide one gives back.
  void the_list_of_runs_is_as_wide_again() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {});
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.showPage(QStringLiteral("configure"));
    window.resize(1300, 800);
    window.show();
    wait_for_runs(session);
    auto* panel = window.findChild<RunsPanel*>();
    QTRY_VERIFY(panel->width() >= 300);
    const int before = panel->width();
    window.resize(880, 800);
    QTRY_VERIFY(panel->width() < before);
    window.resize(1300, 800);
    QTRY_COMPARE(panel->width(), before);
    window.resize(880, 800);
    QTRY_VERIFY(panel->width() < before);
    window.showPage(QStringLiteral("live"));  // which needs less room than Configure
    QTRY_COMPARE(panel->width(), before);
  }

  /// Where nobody dragged its edge, the list shows longer names in a wide window; what was dragged stays.
  void the_list_of_runs_is_wider_in_a_wide_window() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {});
    QSettings settings(folder.filePath(QStringLiteral("s.ini")), QSettings::IniFormat);
    const auto width_in = [&](int wide, int at_least) {
      Session session(folder.path());
      MainWindow window(session, &settings);
      window.showPage(QStringLiteral("live"));
      window.resize(wide, 800);
      window.show();
      const auto* panel = window.findChild<RunsPanel*>();
      static_cast<void>(QTest::qWaitFor([&] { return panel->width() >= at_least; }));
      return panel->width();
    };
    const int narrow = width_in(1200, 300), wide = width_in(1920, narrow + 80);
    QVERIFY2(narrow >= 300 && narrow <= 320, qPrintable(QString::number(narrow)));
    QVERIFY2(wide >= narrow + 80, qPrintable(QString::number(wide)));
    QVERIFY(!settings.contains(QStringLiteral("panel")));
    settings.setValue(QStringLiteral("panel"), 350);
    QCOMPARE(width_in(1200, 350), 350);
    QCOMPARE(width_in(1920, 350), 350);
  }

  /// Ctrl+K finds pages, actions, runs, presets and settings by their words, and does what is chosen.
  void the_palette_finds_and_does() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("first")).toStdString(), {});
    write_fixture(folder.filePath(QStringLiteral("second")).toStdString(), {.mixer = "avey"});
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.showPage(QStringLiteral("runs"));
    window.show();
    wait_for_runs(session);
    QVERIFY(QTest::qWaitForWindowActive(&window));
    const auto search = [&](const QString& words) {
      window.activateWindow();
      QVERIFY(QTest::qWaitForWindowActive(&window));
      QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, Qt::Key_K, Qt::ControlModifier);
      auto* palette = window.findChild<CommandPalette*>();
      QVERIFY(palette && palette->isVisible());
      auto* line = palette->findChild<QLineEdit*>();
      QTest::keyClicks(line, words);
      QVERIFY2(palette->findChild<QListWidget*>()->currentItem(), qPrintable(words));
      QTest::keyClick(line, Qt::Key_Return);
      QTRY_VERIFY(!window.findChild<CommandPalette*>());
    };
    search(QStringLiteral("compare"));
    QTRY_COMPARE(window.page(), QStringLiteral("compare"));
    search(QStringLiteral("avey second"));
    QTRY_COMPARE(session.currentRun(), folder.filePath(QStringLiteral("second")));
    search(QStringLiteral("first run"));
    QTRY_COMPARE(session.currentRun(), folder.filePath(QStringLiteral("first")));
    QSignalSpy settings(&session, &Session::settingRequested);
    search(QStringLiteral("sequence length"));
    QTRY_COMPARE(settings.size(), 1);
    QCOMPARE(settings[0][0].toString(), QStringLiteral("/data/sequence_length"));
    QSignalSpy presets(&session, &Session::presetRequested);
    search(QStringLiteral("mqar tiny preset"));
    QTRY_COMPARE(presets.size(), 1);
    QVERIFY2(presets[0][0].toString().endsWith(QStringLiteral("mqar-tiny.json")), qPrintable(presets[0][0].toString()));
    QCOMPARE(window.page(), QStringLiteral("configure"));
    search(QStringLiteral("theme dark").mid(6));
    QTRY_VERIFY(isDark(QApplication::palette()));
    window.setTheme(Theme::light);
    window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : &window, Qt::Key_K, Qt::ControlModifier);
    auto* palette = window.findChild<CommandPalette*>();
    QVERIFY(palette);
    QTest::keyClicks(palette->findChild<QLineEdit*>(), QStringLiteral("no such thing"));
    QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Return);  // does nothing
    QVERIFY(palette->isVisible());
    QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Escape);
    QTRY_VERIFY(!window.findChild<CommandPalette*>());
  }

  /// That a run was started is no news any more when it has ended.
  void a_start_is_told_until_the_run_ends() {
    const QTemporaryDir folder, programs;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {.end = RunState::stopped});
    QFile program(programs.filePath(QStringLiteral("program")));
    QVERIFY(program.open(QIODevice::WriteOnly) && program.write("#!/bin/sh\nexec sleep 1\n") > 0);
    program.close();
    QVERIFY(program.setPermissions(QFile::ReadOwner | QFile::ExeOwner));
    const QByteArray before = qgetenv("SACCADE_BINARY");
    qputenv("SACCADE_BINARY", program.fileName().toUtf8());
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.show();
    wait_for_runs(session);
    const auto* bar = window.findChild<MessageBar*>();
    const auto says = [&](const QString& text) {
      for (const QLabel* label : bar->findChildren<QLabel*>())
        if (bar->isVisible() && label->text().contains(text)) return true;
      return false;
    };
    session.resumeRun(folder.filePath(QStringLiteral("a")));
    QVERIFY(says(QStringLiteral("a was started. It goes on when this window is closed.")));
    QTRY_VERIFY_WITH_TIMEOUT(!bar->isVisible(), 6000);  // a note that nobody withdraws stays for 8 s
    qputenv("SACCADE_BINARY", before);
  }

  /// What is done to a run has keys, which menu and tool tips tell.
  void what_is_done_to_runs_has_keys() {
    const QTemporaryDir folder;
    Session session(folder.path());
    MainWindow window(session, nullptr);
    const auto* actions = window.findChild<RunActions*>();
    QSet<QString> known;
    for (const QAction* action : {actions->stop, actions->resume, actions->showOnly, actions->showAll, actions->baseline, actions->star,
                                  actions->duplicate, actions->fork, actions->trash, actions->restore, actions->copyPath}) {
      const QString keys = action->shortcut().toString(QKeySequence::NativeText);
      QVERIFY2(!keys.isEmpty() && action->toolTip().contains(keys) && !known.contains(keys), qPrintable(action->text()));
      known << keys;
    }
  }

  /// Runs go to the trash and come back as they were; one that is at work stays.
  void runs_go_to_the_trash_and_come_back() {
    const QTemporaryDir folder;
    const auto path = [&](const char* name) { return folder.filePath(QLatin1String(name)); };
    for (const char* name : {"first", "second", "third"}) write_fixture(path(name).toStdString(), {});
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.showPage(QStringLiteral("runs"));
    window.show();
    wait_for_runs(session);
    QVERIFY(QTest::qWaitForWindowActive(&window));
    session.setCurrentRun(path("first"));
    session.setChosen({path("first"), path("second")});
    QTest::keyClick(&window, Qt::Key_Delete, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(session.runs()->rowCount(), 1, 10000);
    QVERIFY(!QFileInfo::exists(path("first")) && !QFileInfo::exists(path("second")));
    QPushButton* undo = nullptr;
    for (QPushButton* each : window.findChildren<QPushButton*>())
      if (each->isVisible() && each->text() == QStringLiteral("Undo")) undo = each;
    QVERIFY(undo);
    undo->click();
    QTRY_COMPARE_WITH_TIMEOUT(session.runs()->rowCount(), 3, 10000);
    session.setChosen({path("first"), path("second")});
    QTest::keyClick(&window, Qt::Key_Delete, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(session.runs()->rowCount(), 1, 10000);
    QTest::keyClick(&window, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_COMPARE_WITH_TIMEOUT(session.runs()->rowCount(), 3, 10000);
    QVERIFY(session.runs()->run(path("second")));
    QVERIFY(QDir(path(".trash")).isEmpty());
    const RunLock lock(path("third").toStdString());
    session.setCurrentRun(path("third"));
    session.setChosen({path("third")});
    QSignalSpy failed(&session, &Session::failed);
    QTest::keyClick(&window, Qt::Key_Delete, Qt::ControlModifier);
    QCOMPARE(failed.size(), 1);
    QVERIFY(failed[0][0].toString().contains(QStringLiteral("third is running")) && QFileInfo::exists(path("third")));
    session.setChosen({path("first")});
    session.setCurrentRun(path("first"));
    QTest::keyClick(&window, Qt::Key_D, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(window.page(), QStringLiteral("configure"));
  }

  /// What differs by a name alone is one message: the newest whole, the names of the others, all of them on request.
  void messages_of_one_kind_are_one() {
    MessageBar bar;
    bar.show();
    auto* words = bar.findChild<QLabel*>();
    for (QLabel* label : bar.findChildren<QLabel*>())
      if (label->wordWrap()) words = label;
    auto* all = bar.findChildren<QToolButton*>().first();
    for (QToolButton* button : bar.findChildren<QToolButton*>())
      if (button->isCheckable()) all = button;
    const auto damaged = [](int i) { return QStringLiteral("/runs/run-%1/journal.jsonl: a line is damaged").arg(i); };
    bar.showError(damaged(0));
    QCOMPARE(words->text(), damaged(0));
    QVERIFY(!all->isVisible());
    bar.showError(damaged(1));
    QCOMPARE(words->text(), damaged(1) + QStringLiteral("\nThe same of run-0/journal.jsonl"));
    for (int i = 2; i < 12; ++i) bar.showError(damaged(i));
    QCOMPARE(words->text(), damaged(11) + QStringLiteral("\nThe same of 11 others: run-10/journal.jsonl, run-9/journal.jsonl, "
                                                         "run-8/journal.jsonl and 8 more"));
    QVERIFY(all->isVisible() && all->toolTip().contains(QStringLiteral("run-0/journal.jsonl")));
    all->click();
    QVERIFY(words->text().contains(QStringLiteral("\nrun-0/journal.jsonl")) && !words->text().contains(QStringLiteral("more")));
    all->click();
    bar.showError(QStringLiteral("The disk is full"));  // of another kind: another message
    QVERIFY(words->text().startsWith(QStringLiteral("The disk is full")) && words->text().endsWith(QStringLiteral("and 1 more")));
    bar.showError(damaged(3));  // known, of the first kind: it comes to the front
    QVERIFY(words->text().startsWith(damaged(3)) && words->text().contains(QStringLiteral("11 others")));
    for (QPushButton* button : bar.findChildren<QPushButton*>())
      if (button->accessibleName() == QStringLiteral("Copy details")) button->click();
    QCOMPARE(QGuiApplication::clipboard()->text().count(QStringLiteral("a line is damaged")), 12);
    bar.closeMessage();
    bar.closeMessage();
    QVERIFY(!bar.isVisible());
    bar.showOffer(QStringLiteral("The run a is in the trash"), {QStringLiteral("Undo"), [] {}});  // each has its own offer
    bar.showOffer(QStringLiteral("The run b is in the trash"), {QStringLiteral("Undo"), [] {}});
    QVERIFY(words->text().endsWith(QStringLiteral("and 1 more")));
  }

  void names_are_told_from_other_differences() {
    QCOMPARE(different_names({"avey-1 is not running.", "based-2 is not running."}), (QStringList{"avey-1", "based-2"}));
    QCOMPARE(different_names({"cannot read /a/b/x.json: gone", "cannot read /a/b/y.json: gone"}), (QStringList{"/a/b/x.json", "y.json"}));
    QCOMPARE(different_names({"No seeds of Top-1 Chunk were queued: full", "No seeds of Avey were queued: full"}),
             (QStringList{"Top-1 Chunk", "Avey"}));
    QVERIFY(!are_of_one_kind({"3 runs are queued now", "4 runs are queued now"}));          // numbers
    QVERIFY(!are_of_one_kind({"/a/x is damaged at line 3", "/a/y is damaged at line 4"}));  // more than a name
    QVERIFY(!are_of_one_kind({"It failed", "It worked"}));
    QVERIFY(!are_of_one_kind({"one two three", "one two three"}));
    QVERIFY(!are_of_one_kind({"alone"}) && !are_of_one_kind({}));
  }

  /// How far runs are read is told where it takes longer, and can be ended; what was read stays, and the rest comes when asked for.
  void reading_of_many_runs_can_be_cancelled() {
    const QTemporaryDir folder;
    const int runs = 400;  // far more than are read until the first are told, 25 ms
    for (int i = 0; i < runs; ++i)
      write_fixture(folder.filePath(QStringLiteral("run-%1").arg(i)).toStdString(), {.seed = i + 1, .steps = 20, .layers = 1, .heads = 1});
    RunList list(folder.path());
    ReadingBar bar(list);
    bool halted = false;
    connect(&list, &QAbstractItemModel::rowsInserted, &list, [&] {
      if (!std::exchange(halted, true)) list.halt();
    });
    QSignalSpy loaded(&list, &RunList::loaded);
    QTRY_VERIFY(halted);
    QVERIFY(!list.loading());
    QCOMPARE(loaded.size(), 1);
    const int there = list.rowCount();
    QVERIFY2(there > 0 && there < runs, qPrintable(QString::number(there)));
    QVERIFY(list.progress().halted && list.progress().all == runs && list.progress().read == there);
    QTRY_VERIFY(!bar.isHidden());
    QTest::qWait(2500);  // the search that comes every two seconds does not either
    QCOMPARE(list.rowCount(), there);
    auto* words = bar.findChild<QLabel*>();
    QCOMPARE(words->text(), QStringLiteral("%1 of %2 runs not read").arg(runs - there).arg(runs));
    auto* button = bar.findChild<QToolButton*>();
    QCOMPARE(button->text(), QStringLiteral("Read on"));
    button->click();
    QTRY_COMPARE(list.rowCount(), runs);
    QTRY_VERIFY(list.progress().done() && list.unread() == 0);
    QTRY_VERIFY(bar.isHidden());
    // Curves alone: shown again, they are read.
    list.setHidden({});
    RunList second(folder.path());
    QTRY_VERIFY(!second.loading());
    second.halt();
    if (second.unread() > 0) {
      QVERIFY(second.progress().halted);
      const int left = second.unread();
      QTest::qWait(500);
      QCOMPARE(second.unread(), left);
    }
    second.setFilter(QStringLiteral("seed:1"));
    QTRY_VERIFY(second.unread() == 0 && !second.progress().halted);
  }

  void an_empty_folder_says_what_to_do() {
    const QTemporaryDir folder;
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.showPage(QStringLiteral("runs"));
    window.show();
    wait_for_runs(session);
    const auto* empty = window.findChild<EmptyState*>();
    QVERIFY(empty && empty->isVisible());
    QVERIFY(empty->findChild<QAbstractButton*>());
    const auto to_studies = [&]() -> QAbstractButton* {
      for (auto* button : empty->findChildren<QAbstractButton*>())
        if (button->isVisible() && button->accessibleName() == QLatin1String("Studies")) return button;
      return nullptr;
    };
    QVERIFY(!to_studies());
    std::filesystem::create_directories(folder.filePath(QStringLiteral("grid/runs")).toStdString());
    std::ofstream(folder.filePath(QStringLiteral("grid/study.json")).toStdString()) << "{}";
    QTRY_VERIFY_WITH_TIMEOUT(to_studies(), 10000);
    to_studies()->click();
    QVERIFY(!empty->isVisible());
    window.showPage(QStringLiteral("runs"));
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {});
    QTRY_VERIFY_WITH_TIMEOUT(!empty->isVisible(), 10000);
  }

  void every_control_has_a_name() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {.mixer = "top1_chunk"});
    write_fixture(folder.filePath(QStringLiteral("b")).toStdString(), {.mixer = "avey", .seed = 2});
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.show();
    wait_for_runs(session);
    for (const Page& page : pages()) {
      window.showPage(page.id);
      QTest::qWait(50);
    }
    for (QWidget* widget : window.findChildren<QWidget*>()) {
      const bool internal =
          widget->window() != &window || widget->objectName().startsWith(QStringLiteral("qt_")) || qobject_cast<QMenu*>(widget);
      if (internal || !(widget->focusPolicy() & Qt::TabFocus) || widget->focusProxy()) continue;
      QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
      const QString where =
          QStringLiteral("%1 in %2")
              .arg(QLatin1String(widget->metaObject()->className()), QLatin1String(widget->parentWidget()->metaObject()->className()));
      QVERIFY2(accessible && !accessible->text(QAccessible::Name).isEmpty(), qPrintable(where));
    }
  }

  void messages_wait_and_close() {
    MessageBar bar;
    QVERIFY(bar.isHidden());
    bar.showError(QStringLiteral("the disk is full"));
    bar.showError(QStringLiteral("the disk is full"));
    bar.showError(QStringLiteral("no such run"));
    QVERIFY(!bar.isHidden());
    bar.closeMessage();
    QVERIFY(!bar.isHidden());
    bar.closeMessage();
    QVERIFY(bar.isHidden());
  }

  /// The button does what it says once, and the message goes with it.
  void messages_offer_what_comes_next() {
    MessageBar bar;
    int done = 0;
    bar.showError(QStringLiteral("the disk is full"));
    bar.showOffer(QStringLiteral("Moved to the trash: a"), {QStringLiteral("Undo"), [&] { ++done; }});
    const auto button = [&]() -> QPushButton* {
      for (QPushButton* each : bar.findChildren<QPushButton*>())
        if (each->accessibleName() == QStringLiteral("Undo") && !each->isHidden()) return each;
      return nullptr;
    };
    QVERIFY(button());
    button()->click();
    QCOMPARE(done, 1);
    QVERIFY(!bar.isHidden() && !button());  // the error is still there, and offers nothing
  }

  void remembers_where_it_was() {
    const QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("window.ini"));
    {
      Session session(folder.path());
      QSettings settings(file, QSettings::IniFormat);
      MainWindow window(session, &settings);
      window.showPage(QStringLiteral("configure"));
      session.runs()->setHidden({QStringLiteral("/x")});
      window.close();
    }
    Session session(folder.path());
    QSettings settings(file, QSettings::IniFormat);
    const MainWindow window(session, &settings);
    QCOMPARE(settings.value(QStringLiteral("page")).toString(), QStringLiteral("configure"));
    QCOMPARE(settings.value(QStringLiteral("folders")).toStringList(), QStringList{folder.path()});
    QCOMPARE(session.runs()->hidden(), QStringList{QStringLiteral("/x")});
  }

  /// A first window lies on its screen, however small that is.
  void a_first_window_fits_the_screen() {
    const QTemporaryDir folder;
    Session session(folder.path());
    const MainWindow window(session, nullptr);
    const QSize room = window.screen()->availableSize();
    QVERIFY2(window.width() <= room.width() && window.height() <= room.height(), qPrintable(QString::number(room.width())));
  }

  /// No page makes a small window larger than it is.
  void pages_fit_a_small_window() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {});
    Session session(folder.path());
    MainWindow window(session, nullptr);
    window.resize(1000, 700);
    window.show();
    QTRY_VERIFY_WITH_TIMEOUT(!session.runs()->loading() && session.runs()->unread() == 0, 20000);
    for (const Page& page : pages()) {
      window.showPage(page.id);
      QTest::qWait(300);  // it takes its place, and the panel what it leaves
      QVERIFY2(window.size() == QSize(1000, 700), qPrintable(QStringLiteral("%1: %2").arg(page.id).arg(window.width())));
    }
  }

  /// In a small window a dialog's buttons are not below the edge of the screen.
  void dialogs_fit_a_small_window() {
    QMainWindow window;
    window.resize(1000, 640);
    window.show();
    help::showKeyboard(&window);
    const auto* keys = window.findChild<QDialog*>();
    QVERIFY(keys && keys->height() <= 600 && keys->width() > 500);
    const JobScript script(QStringLiteral("study"), QStringLiteral("lab"), QStringLiteral("#!/bin/sh"), false, &window);
    QVERIFY(script.height() <= 600 && script.width() > 800);
    window.resize(1900, 1200);
    help::showKeyboard(&window);
    QCOMPARE(window.findChildren<QDialog*>().last()->height(), 680);
  }

  /// Kept as it changes: a window that is killed comes back as it was.
  void an_unclosed_window_is_remembered() {
    const QTemporaryDir folder;
    const QString file = folder.filePath(QStringLiteral("window.ini"));
    const auto panel = [](MainWindow& window) {
      for (QAction* top : window.menuBar()->actions())
        for (QAction* action : top->menu()->actions())
          if (action->shortcut() == QKeySequence(Qt::Key_F9)) return action;
      return static_cast<QAction*>(nullptr);
    };
    const auto kept = [&](const char* key) { return QSettings(file, QSettings::IniFormat).value(QLatin1String(key)).toByteArray(); };
    Session first(folder.path());
    QSettings settings(file, QSettings::IniFormat);
    MainWindow window(first, &settings);
    window.resize(1100, 720);
    window.show();
    QTRY_VERIFY(!kept("geometry").isEmpty());
    const QByteArray geometry = kept("geometry"), state = kept("state");
    panel(window)->trigger();
    QTRY_VERIFY(kept("state") != state);
    window.move(window.pos() + QPoint(40, 30));
    QTRY_VERIFY(kept("geometry") != geometry);
    const QPoint place = window.pos();
    Session second(folder.path());
    QSettings again(file, QSettings::IniFormat);
    MainWindow next(second, &again);
    next.show();
    QVERIFY(!next.findChild<RunsPanel*>()->isVisible());
    QCOMPARE(next.pos(), place);
  }

  void themes_can_be_read() {
    for (const Theme theme : {Theme::light, Theme::dark}) {
      applyTheme(theme);
      const QPalette palette = QApplication::palette();
      QCOMPARE(isDark(palette), theme == Theme::dark);
      const int difference = palette.color(QPalette::WindowText).lightness() - palette.color(QPalette::Window).lightness();
      QVERIFY(std::abs(difference) > 150);
      QCOMPARE(themeFromName(themeName(theme)), std::optional(theme));
    }
    QVERIFY(!themeFromName(QStringLiteral("pink")));
  }

  /// Boxes and lines that are empty are seen by their edges alone: 3 : 1 at least (WCAG 2.1, 1.4.11).
  void empty_fields_are_seen_on_dark_ground() {
    useStyle();
    applyTheme(Theme::dark);
    const auto luminance = [](const QColor& colour) {
      const auto part = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
      return 0.2126 * part(colour.redF()) + 0.7152 * part(colour.greenF()) + 0.0722 * part(colour.blueF());
    };
    QWidget ground;
    auto* box = new QCheckBox(&ground);
    auto* line = new QLineEdit(&ground);
    auto* number = new QSpinBox(&ground);
    box->setGeometry(10, 10, 40, 30), line->setGeometry(60, 10, 80, 30), number->setGeometry(150, 10, 80, 30);
    ground.resize(240, 50);
    const QImage picture = ground.grab().toImage();
    const double base = luminance(QApplication::palette().color(QPalette::Base));
    for (const QWidget* field : {static_cast<QWidget*>(box), static_cast<QWidget*>(line), static_cast<QWidget*>(number)}) {
      double brightest = 0;  // along its middle, from the left into it
      for (int x = field->x(); x < field->x() + 8; ++x) brightest = std::max(brightest, luminance(picture.pixelColor(x, 25)));
      QVERIFY2((brightest + 0.05) / (base + 0.05) >= 3, field->metaObject()->className());
    }
    applyTheme(Theme::light);
  }

 private:
  QTemporaryDir data_;
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::ShellTest)
#include "shell_test.moc"
