// A session as a person has it: the whole window with the real program, by keys and clicks, from an empty folder to quitting and coming
// back. With SACCADE_SHOTS set, pictures of every page go to that folder, light and dark, small and large.
#include <QAbstractItemView>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QToolButton>
#include <QWheelEvent>

#include "tests/app/program.h"
#include "tests/support/instrumented.h"
#include "ui/charts/figure_view.h"
#include "ui/configure/configure_page.h"
#include "ui/configure/json_view.h"
#include "ui/page.h"
#include "ui/run_list.h"
#include "ui/session.h"
#include "ui/shell/empty_state.h"
#include "ui/shell/main_window.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

/// The window with what it remembers in a file, as app/workbench opens it.
class OpenWindow {
 public:
  OpenWindow(const QString& runs, const QString& file, const QSize& size) : settings_(file, QSettings::IniFormat), session(runs) {
    window = std::make_unique<MainWindow>(session, &settings_);
    window->setTheme(themeFromName(settings_.value("theme").toString()).value_or(Theme::light));
    if (size.isValid()) window->resize(size);
    const QString page = settings_.value("page").toString();
    window->showPage(page.isEmpty() ? QStringLiteral("live") : page);
    window->show();
  }
  ~OpenWindow() {
    if (window) quit();
  }
  void quit() {
    window->close();
    window.reset();
  }

  template <class T>
  T* child(const QString& name) const {
    for (T* each : window->findChildren<T*>())
      if (each->accessibleName() == name && each->isVisible()) return each;
    return nullptr;
  }
  FigureView* figure(const char* id) const {
    for (FigureView* view : window->findChildren<FigureView*>())
      if (view->isVisible() && view->figure().id == id) return view;
    return nullptr;
  }
  void key(int key, Qt::KeyboardModifiers modifiers = {}) const {
    window->activateWindow();
    if (!QTest::qWaitForWindowActive(window.get())) qFatal("the window does not become active");
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus ? focus : window.get(), static_cast<Qt::Key>(key), modifiers);
  }
  /// Ctrl and the page's number.
  void open(const QString& page) const {
    for (size_t i = 0; i < pages().size(); ++i)
      if (pages()[i].id == page) key(Qt::Key_1 + static_cast<int>(i), Qt::ControlModifier);
    QTRY_COMPARE(window->page(), page);
  }
  /// Chooses an entry with the keyboard.
  void choose(const QString& box, const QString& entry) const {
    auto* combo = child<QComboBox>(box);
    QVERIFY2(combo, qPrintable(box));
    combo->setFocus();
    for (int i = 0; i < combo->count() && combo->currentText() != entry; ++i) QTest::keyClick(combo, Qt::Key_Down);
    for (int i = 0; i < combo->count() && combo->currentText() != entry; ++i) QTest::keyClick(combo, Qt::Key_Up);
    QCOMPARE(combo->currentText(), entry);
  }
  void zoom(FigureView* view) const {
    const QPointF centre(0.6 * view->width(), 0.5 * view->height());
    for (int i = 0; i < 3; ++i) {
      QWheelEvent wheel(centre, view->mapToGlobal(centre), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
      QCoreApplication::sendEvent(view, &wheel);
    }
  }
  /// Waits until nothing is read or drawn any more.
  void settle() const {
    QTest::qWait(300);
    QTRY_VERIFY_WITH_TIMEOUT(!session.runs()->loading() && session.runs()->unread() == 0, 20000 * kSlower);
    for (const FigureView* view : window->findChildren<FigureView*>())
      QTRY_VERIFY_WITH_TIMEOUT(!view->isVisible() || !view->drawing(), 20000 * kSlower);
  }

 private:
  QSettings settings_;

 public:
  Session session;
  std::unique_ptr<MainWindow> window;
};

class DrivenSessionTest : public QObject {
  Q_OBJECT

  Program program_;
  QString state_;

  static Json config(const char* name, const char* mixer, int steps) {
    Json json = Program::config();
    json["name"] = name;
    json["architecture"]["mixer"] = mixer;
    if (std::string(mixer) == "top1_chunk") json["architecture"]["chunk"] = 16;
    json["training"].update(
        {{"steps", steps}, {"evaluate_every", 20}, {"probe_every", 40}, {"checkpoint_every", 100}, {"capture_tokens", 64}});
    return json;
  }

  /// Pastes a config into the JSON view and starts it; the page Live follows.
  static void start(OpenWindow& open, const Json& config) {
    open.key(Qt::Key_N, Qt::ControlModifier);
    QCOMPARE(open.window->page(), QString("configure"));
    QTest::mouseClick(open.child<QToolButton>("Show the config as JSON"), Qt::LeftButton);
    auto* text = open.window->findChild<JsonView*>()->findChild<QPlainTextEdit*>();
    QVERIFY(text && text->isVisible());
    text->setFocus();
    QApplication::clipboard()->setText(QString::fromStdString(config.dump(2)));
    QTest::keyClick(text, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClick(text, Qt::Key_V, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(open.child<QPushButton>("Start run")->isEnabled(), 10000);
    shoot(open, "configure-json");
    const int before = open.session.runs()->rowCount();
    open.key(Qt::Key_Return, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(open.window->page(), QString("live"), 20000 * kSlower);
    QTRY_COMPARE_WITH_TIMEOUT(open.session.runs()->rowCount(), before + 1, 20000 * kSlower);
  }

  static RunState state(const OpenWindow& open) {
    const Run* run = open.session.runs()->run(open.session.currentRun());
    return run ? run->info().state : RunState::created;
  }

  static void shoot(const OpenWindow& open, const QString& name) {
    const QString folder = qEnvironmentVariable("SACCADE_SHOTS");
    if (folder.isEmpty()) return;
    const QSize size = open.window->size();
    for (const Theme theme : {Theme::dark, Theme::light})
      for (const QSize& each : {QSize(1000, 700), QSize(1920, 1200)}) {
        open.window->setTheme(theme);
        open.window->resize(each);
        QTest::qWait(900);
        open.window->grab().save(
            QStringLiteral("%1/%2-%3-%4.png").arg(folder, name, theme == Theme::dark ? "dark" : "light").arg(each.width()));
      }
    open.window->resize(size);
  }

  /// Everything that one would miss.
  static QVariantMap place(const OpenWindow& open) {
    const Session& session = open.session;
    QVariantMap all{{"page", open.window->page()},
                    {"run", session.currentRun()},
                    {"hidden", session.runs()->hidden()},
                    {"filter", session.runs()->selection().filter()},
                    {"step", session.captureStep()},
                    {"layer", session.layer()},
                    {"head", session.head()},
                    {"query", session.query()},
                    {"x", static_cast<int>(session.xAxis())},
                    {"size", open.window->size()}};
    return all;
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    qputenv("XDG_CONFIG_HOME", program_.path("config").toUtf8());
    QApplication::setOrganizationName("saccade");
    QStandardPaths::setTestModeEnabled(true);
    state_ = program_.path("workbench.ini");
  }

  /// Start, configure, start two runs, watch, inspect, compare, export, quit, start again.
  void from_an_empty_folder_to_coming_back() {
    QVariantMap before, zoomed;
    Json draft;
    {
      OpenWindow open(program_.path("runs"), state_, {1200, 800});
      QTRY_VERIFY(open.window->findChild<EmptyState*>()->isVisible());
      shoot(open, "empty");
      start(open, config("first", "attention", 400));
      if (QTest::currentTestFailed()) return;
      QTRY_VERIFY_WITH_TIMEOUT(open.figure("loss"), 20000 * kSlower);
      shoot(open, "live-running");
      watch(open);
      if (QTest::currentTestFailed()) return;
      start(open, config("second", "top1_chunk", 200));
      if (QTest::currentTestFailed()) return;
      QTRY_COMPARE_WITH_TIMEOUT(state(open), RunState::finished, 60000 * kSlower);
      look(open, zoomed);
      if (QTest::currentTestFailed()) return;
      inspect(open);
      if (QTest::currentTestFailed()) return;
      compare(open);
      if (QTest::currentTestFailed()) return;
      draft = write(open);
      open.open("inspect");
      before = place(open);
      open.quit();
    }
    OpenWindow open(program_.path("runs"), state_, {});
    open.settle();
    QTRY_COMPARE(place(open), before);
    back(open, zoomed, draft);
  }

 private:
  /// The run is drawn while it goes on, and ends.
  static void watch(OpenWindow& open) {
    const auto drawn = [&] {
      const auto& curves = open.figure("loss")->figure().curves;
      return curves.empty() ? size_t{0} : curves.front().x.size();
    };
    QTRY_VERIFY_WITH_TIMEOUT(drawn() > 1, 20000 * kSlower);
    const size_t points = drawn();
    if (state(open) == RunState::running) QTRY_VERIFY_WITH_TIMEOUT(drawn() > points || state(open) == RunState::finished, 20000 * kSlower);
    QTRY_COMPARE_WITH_TIMEOUT(state(open), RunState::finished, 60000 * kSlower);
  }

  static QVariantMap axes(const OpenWindow& open) {
    const FigureView* view = open.figure("loss");
    const Figure figure = view->shownFigure();
    QVariantMap all{{"log y", figure.y.logarithmic}, {"x", QString::fromStdString(figure.x.title)}};
    if (figure.x.range) all["from"] = (*figure.x.range)[0], all["to"] = (*figure.x.range)[1];
    if (figure.y.range) all["low"] = (*figure.y.range)[0], all["high"] = (*figure.y.range)[1];
    for (const char* name : {"Smoothing of what is recorded at every step", "Bands over seeds"})
      all[name] = open.child<QComboBox>(name)->currentText();
    all["reach"] = open.child<QComboBox>("Reach of the smoothing, in units of the x axis")->currentText();
    return all;
  }

  /// Axes, smoothing and zoom of Live, and a run that is hidden.
  static void look(OpenWindow& open, QVariantMap& zoomed) {
    open.open("live");
    open.settle();
    shoot(open, "live");
    open.choose("What the x axis shows", "x: step");
    open.choose("Smoothing of what is recorded at every step", "EMA");
    open.figure("loss")->setFocus();
    open.key(Qt::Key_L);
    QTRY_VERIFY(open.figure("loss")->figure().y.logarithmic);
    open.settle();
    open.zoom(open.figure("loss"));
    QVERIFY(open.figure("loss")->zoomed());
    open.settle();
    shoot(open, "live-zoomed");
    zoomed = axes(open);
    QVERIFY(zoomed.contains("from") && zoomed.contains("high"));
  }

  static void inspect(OpenWindow& open) {
    open.open("inspect");
    open.settle();
    FigureView* map = nullptr;
    QTRY_VERIFY_WITH_TIMEOUT((map = [&]() -> FigureView* {
                               for (FigureView* view : open.window->findChildren<FigureView*>())
                                 if (view->isVisible() && view->figure().map && view->figure().map->rows > 16) return view;
                               return nullptr;
                             }()),
                             20000 * kSlower);
    map->setFocus();
    open.key(Qt::Key_Home);
    for (int i = 0; i < 20; ++i) open.key(Qt::Key_Right);
    open.key(Qt::Key_PageDown);
    open.key(Qt::Key_Right, Qt::ShiftModifier);
    QCOMPARE(open.session.query(), 20);
    QCOMPARE(std::pair(open.session.layer(), open.session.head()), std::pair(1, 1));
    open.settle();
    shoot(open, "inspect");
  }

  /// The trajectories, saved through the dialog.
  void compare(OpenWindow& open) const {
    open.open("compare");
    open.settle();
    FigureView* view = nullptr;
    QTRY_VERIFY_WITH_TIMEOUT((view = open.figure("ood-against-pretraining")) && view->figure().curves.size() >= 2, 20000 * kSlower);
    shoot(open, "compare");
    const QString path = program_.path("trajectories.pdf");
    for (QAction* action : view->exportMenu()->actions())
      if (action->text().contains("PDF")) action->trigger();
    QFileDialog* dialog = nullptr;
    QTRY_VERIFY((dialog = view->findChild<QFileDialog*>()) && dialog->isVisible());
    dialog->selectFile(path);
    auto* save = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save);
    QTRY_VERIFY(save->isEnabled());
    QTest::mouseClick(save, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo(path).size() > 2000, 10000);
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly) && file.readAll().startsWith("%PDF"));
  }

  /// A config that is begun and not started; it is typed into the form.
  static Json write(OpenWindow& open) {
    open.open("configure");
    QTest::mouseClick(open.child<QToolButton>("Show the config as a form"), Qt::LeftButton);
    open.settle();
    shoot(open, "configure");
    QLineEdit* steps = nullptr;
    for (QLineEdit* each : open.window->findChildren<QLineEdit*>())
      if (each->isVisible() && each->text() == "200") steps = each;
    if (!steps) qFatal("no field of the steps");
    steps->setFocus();
    steps->selectAll();
    QTest::keyClicks(steps, "4321");
    QTest::keyClick(steps, Qt::Key_Tab);
    const Json draft = written(open);
    if (draft.at("training").value("steps", 0) != 4321) qFatal("%s", draft.dump().c_str());
    shoot(open, "study");
    return draft;
  }

  static Json written(const OpenWindow& open) {
    return Json::parse(open.window->findChild<JsonView*>()->findChild<QPlainTextEdit*>()->toPlainText().toStdString());
  }

  /// Each page is as it was left.
  static void back(OpenWindow& open, const QVariantMap& zoomed, const Json& draft) {
    open.open("live");
    open.settle();
    QTRY_VERIFY_WITH_TIMEOUT(open.figure("loss"), 20000 * kSlower);
    QTRY_COMPARE_WITH_TIMEOUT(axes(open), zoomed, 10000);
    open.open("configure");
    QCOMPARE(written(open), draft);
    QVERIFY(open.child<QToolButton>("Show the config as a form")->isChecked());
    open.open("compare");
    open.settle();
    QTRY_VERIFY_WITH_TIMEOUT(open.figure("ood-against-pretraining"), 20000 * kSlower);
    open.open("runs");
    open.settle();
    shoot(open, "runs");
    open.open("figures");
    open.settle();
    shoot(open, "figures");
    open.open("studies");
    open.settle();
    shoot(open, "studies");
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::DrivenSessionTest)
#include "driven_session_test.moc"
