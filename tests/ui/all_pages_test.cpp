#include <QAbstractButton>
#include <QAbstractItemModelTester>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QHeaderView>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QTemporaryDir>
#include <QTreeView>
#include <QtTest>

#include "tests/analysis/fixture.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/main_window.h"
#include "ui/shell/palette.h"

namespace saccade::test {

using namespace ui;

/// What holds on every page there is: whole models, keys, names.
class AllPagesTest : public QObject {
  Q_OBJECT

  QTemporaryDir data_, folder_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<MainWindow> window_;

  QString path(const char* name) const { return folder_.filePath(QLatin1String(name)); }

  static bool takes_tab(const QWidget* widget) {
    return widget->isVisible() && widget->isEnabled() && (widget->focusPolicy() & Qt::TabFocus) && !widget->focusProxy();
  }
  QRect place(const QWidget* widget) const { return {widget->mapTo(window_.get(), QPoint()), widget->size()}; }
  static QString name_of(QWidget* widget) {
    QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
    return accessible ? accessible->text(QAccessible::Name) : QString();
  }
  QString describe(QWidget* widget) const {
    const QRect at = place(widget);
    return QStringLiteral("%1 “%2” at %3, %4 (%5 × %6)")
        .arg(QLatin1String(widget->metaObject()->className()), name_of(widget))
        .arg(at.x())
        .arg(at.y())
        .arg(at.width())
        .arg(at.height());
  }
  /// What Tab goes through on the page that is seen, in order.
  QList<QWidget*> tab_order(const QWidget* page) const {
    QList<QWidget*> order;
    QWidget* first = window_.get();
    for (QWidget* widget = first->nextInFocusChain(); widget != first; widget = widget->nextInFocusChain())
      if (page->isAncestorOf(widget) && takes_tab(widget)) order << widget;
    return order;
  }
  QWidget* page_seen() const {
    for (QWidget* widget : window_->findChildren<QWidget*>())
      if (widget->isVisible() && widget->parentWidget() && widget->parentWidget()->inherits("QStackedWidget") &&
          widget->parentWidget()->parentWidget() == window_->centralWidget())
        return widget;
    return nullptr;
  }
  static void each_page_data() {
    QTest::addColumn<QString>("page");
    for (const Page& page : pages()) QTest::newRow(qPrintable(page.id)) << page.id;
  }

 private Q_SLOTS:
  void initTestCase() {
    qputenv("SACCADE_DATA", data_.path().toUtf8());
    write_fixture(path("a").toStdString(), {.mixer = "top1_chunk"});
    write_fixture(path("b").toStdString(), {.mixer = "avey"});
    write_fixture(path("c").toStdString(), {});
    write_fixture(path("d").toStdString(), {.seed = 2});
  }
  void init() {
    session_ = std::make_unique<Session>(folder_.path());
    window_ = std::make_unique<MainWindow>(*session_, nullptr);
    window_->resize(1600, 1000);
    window_->show();
    QTRY_VERIFY(!session_->runs()->loading() && session_->runs()->unread() == 0);
    session_->setCurrentRun(path("a"));
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
  }
  void cleanup() {
    window_.reset();
    session_.reset();
  }

  /// Every view and every list of choices of every page, while runs are filtered, hidden, opened, sorted, added and removed.
  void every_model_holds() {
    for (const Page& page : pages()) {
      window_->showPage(page.id);
      QTest::qWait(100);
    }
    std::vector<std::unique_ptr<QAbstractItemModelTester>> testers;  // gone before the views are
    QSet<QAbstractItemModel*> seen;
    const auto watch = [&](QAbstractItemModel* model) {
      if (!model || seen.contains(model)) return;
      seen << model;
      testers.push_back(std::make_unique<QAbstractItemModelTester>(model, QAbstractItemModelTester::FailureReportingMode::QtTest));
    };
    const auto watch_all = [&] {
      for (const QAbstractItemView* view : window_->findChildren<QAbstractItemView*>()) watch(view->model());
      for (const QComboBox* box : window_->findChildren<QComboBox*>()) watch(box->model());
    };
    watch_all();
    QVERIFY2(testers.size() > 30, qPrintable(QString::number(testers.size())));
    RunList& runs = *session_->runs();
    for (const char* filter : {"mixer:attention", "nothing at all", "seed>1", ""}) {
      runs.setFilter(QLatin1String(filter));
      QTest::qWait(20);
    }
    runs.setHidden({path("b")});
    for (const ShownGroup& group : runs.selection().groups()) runs.setOpened(group.key, true);
    QTest::qWait(20);
    runs.setHidden({});
    for (const QTreeView* view : window_->findChildren<QTreeView*>())
      for (int column = 0; view->isSortingEnabled() && column < view->model()->columnCount(); ++column) {
        view->header()->setSortIndicator(column, Qt::AscendingOrder);
        view->header()->setSortIndicator(column, Qt::DescendingOrder);
      }
    write_fixture(path("e").toStdString(), {.mixer = "top1_element"});
    runs.refresh();
    QTRY_VERIFY_WITH_TIMEOUT(runs.run(path("e")) && runs.unread() == 0, 20000);
    session_->setCurrentRun(path("e"));
    for (const Page& page : pages()) {
      window_->showPage(page.id);
      QTest::qWait(50);
    }
    watch_all();
    QVERIFY(QDir(path("e")).removeRecursively());
    runs.refresh();
    QTRY_VERIFY_WITH_TIMEOUT(!runs.run(path("e")), 20000);
    QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : window_.get(), Qt::Key_K, Qt::ControlModifier);
    auto* palette = window_->findChild<CommandPalette*>();
    QVERIFY(palette);
    watch(palette->findChild<QListWidget*>()->model());
    QTest::keyClicks(palette->findChild<QLineEdit*>(), QStringLiteral("run a"));
    QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Escape);
  }

  /// From one control to the next Tab goes on to the right or down; back up only to a column that lies further right.
  void tab_follows_reading_data() { each_page_data(); }
  void tab_follows_reading() {
    QFETCH(QString, page);
    window_->showPage(page);
    QTest::qWait(300);
    QWidget* seen = page_seen();
    QVERIFY(seen);
    const QList<QWidget*> order = tab_order(seen);
    QVERIFY(!order.isEmpty());
    QStringList faults;
    for (qsizetype i = 1; i < order.size(); ++i) {
      const QRect before = place(order[i - 1]), next = place(order[i]);
      if (before.contains(next) || next.contains(before)) continue;
      const bool above = next.bottom() < before.top(), left = next.right() < before.left();
      const bool same_row = !above && next.top() <= before.bottom();
      if ((above && next.left() <= before.left()) || (left && same_row))
        faults << QStringLiteral("%1, then %2").arg(describe(order[i - 1]), describe(order[i]));
    }
    QVERIFY2(faults.isEmpty(), qPrintable(faults.join(QLatin1Char('\n'))));
  }

  /// A wheel that scrolls a page changes nothing of what it passes over, and gives it no focus either.
  void wheels_change_nothing_data() { each_page_data(); }
  void wheels_change_nothing() {
    QFETCH(QString, page);
    window_->showPage(page);
    QTest::qWait(100);
    QWidget* seen = page_seen();
    QVERIFY(seen);
    const auto choices = seen->findChildren<QComboBox*>();
    const auto numbers = seen->findChildren<QAbstractSpinBox*>();
    QList<QWidget*> fields(choices.begin(), choices.end());
    for (QAbstractSpinBox* box : numbers) fields << box;
    if (page == QStringLiteral("configure")) QVERIFY(fields.size() > 4);
    const auto value = [](QWidget* field) {
      const auto* choice = qobject_cast<QComboBox*>(field);
      return choice ? QString::number(choice->currentIndex()) : qobject_cast<QAbstractSpinBox*>(field)->text();
    };
    for (QWidget* field : fields) {
      QVERIFY2(field->focusPolicy() != Qt::WheelFocus, qPrintable(describe(field)));
      field->clearFocus();
      const QString before = value(field);
      for (const int turn : {-120, 120}) {  // one of both would go on where a choice stands at its end
        QWheelEvent wheel(QPointF(4, 4), field->mapToGlobal(QPointF(4, 4)), {}, {0, turn}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase,
                          false);
        QCoreApplication::sendEvent(field, &wheel);
        QVERIFY2(value(field) == before, qPrintable(describe(field)));
      }
    }
  }

  /// Tab comes to every control that is seen on a page and takes the focus, each with a name.
  void tab_comes_to_all_with_names_data() { each_page_data(); }
  void tab_comes_to_all_with_names() {
    QFETCH(QString, page);
    window_->showPage(page);
    QTest::qWait(300);
    QWidget* seen = page_seen();
    QVERIFY(seen);
    const QList<QWidget*> order = tab_order(seen);
    QSet<QString> exports;  // each is of its own figure
    for (QWidget* widget : seen->findChildren<QWidget*>()) {
      if (!takes_tab(widget) || widget->objectName().startsWith(QStringLiteral("qt_"))) continue;
      QVERIFY2(order.contains(widget), qPrintable(describe(widget)));
      QVERIFY2(!name_of(widget).isEmpty(), qPrintable(describe(widget)));
      if (!name_of(widget).startsWith(QStringLiteral("Export: "))) continue;
      QVERIFY2(!exports.contains(name_of(widget)), qPrintable(name_of(widget)));
      exports << name_of(widget);
    }
    if (page == QStringLiteral("live")) QVERIFY(exports.size() > 4);
  }

  /// Whatever a menu or a page offers has keys of its own or is found with Ctrl+K.
  void every_action_has_keys_or_is_found_data() { each_page_data(); }
  void every_action_has_keys_or_is_found() {
    QFETCH(QString, page);
    window_->showPage(page);
    QTest::qWait(300);
    QWidget* seen = page_seen();
    QVERIFY(seen);
    QList<QAction*> actions = seen->actions();
    const std::function<void(const QMenu*)> take = [&](const QMenu* menu) {
      for (QAction* action : menu->actions())
        if (action->menu())
          take(action->menu());
        else if (!action->isSeparator())
          actions << action;
    };
    for (const QAction* top : window_->menuBar()->actions()) take(top->menu());
    QVERIFY(actions.size() > 20);
    QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : window_.get(), Qt::Key_K, Qt::ControlModifier);
    auto* palette = window_->findChild<CommandPalette*>();
    QVERIFY(palette);
    auto* line = palette->findChild<QLineEdit*>();
    const auto* list = palette->findChild<QListWidget*>();
    for (const QAction* action : actions) {
      if (!action->isEnabled() || !action->isVisible()) continue;
      const QString keys = action->shortcut().toString(QKeySequence::NativeText);
      const QString shown = action->toolTip() + action->text();
      const QString words = (seen->actions().contains(const_cast<QAction*>(action)) ? action->iconText() : action->text())
                                .remove(QLatin1Char('&'))
                                .remove(QStringLiteral(" …"));
      line->setText(words);
      bool found = false;
      for (int row = 0; row < list->count(); ++row) found = found || list->item(row)->text().startsWith(words);
      QVERIFY2(found || !keys.isEmpty(), qPrintable(QStringLiteral("%1 (%2)").arg(words, shown)));
    }
    QTest::keyClick(line, Qt::Key_Escape);
  }

  /// Keys of a page's own actions stand where they are pressed: in tool tips of the page or in the help.
  void page_keys_are_visible_data() { each_page_data(); }
  void page_keys_are_visible() {
    QFETCH(QString, page);
    window_->showPage(page);
    QTest::qWait(100);
    QWidget* seen = page_seen();
    QVERIFY(seen);
    for (const QAction* action : seen->actions()) {
      const QString keys = action->shortcut().toString(QKeySequence::NativeText);
      QVERIFY2(keys.isEmpty() || action->toolTip().contains(keys), qPrintable(action->text()));
    }
    for (const QAbstractButton* button : seen->findChildren<QAbstractButton*>()) {
      const QString keys = button->shortcut().toString(QKeySequence::NativeText);
      const bool mnemonic = keys.startsWith(QStringLiteral("Alt+"));
      QVERIFY2(keys.isEmpty() || mnemonic || button->toolTip().contains(keys) || button->text().contains(keys),
               qPrintable(QStringLiteral("%1: %2, told: %3").arg(button->text(), keys, button->toolTip())));
    }
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::AllPagesTest)
#include "all_pages_test.moc"
