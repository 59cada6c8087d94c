// The queue of a host on the page Studies: seen, ordered, paused and worked off as if it were of this machine. In place of ssh stands a
// script that starts the agent on this machine, in folders of its own.
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QSignalSpy>
#include <QToolButton>

#include "analysis/remote/mirror.h"
#include "tests/app/host_fixture.h"
#include "tests/ui/longest_event.h"
#include "ui/mirror_keeper.h"
#include "ui/offer.h"
#include "ui/session.h"
#include "ui/studies/lines_table.h"
#include "ui/studies/studies_page.h"
#include "ui/theme.h"

namespace saccade::test {

using namespace ui;
using Json = nlohmann::json;

class HostQueueTest : public QObject {
  Q_OBJECT

  Program program_;
  std::optional<StandInHost> host_;

  struct Shown {
    explicit Shown(const QString& folder) : session(folder), page(session, nullptr) {
      page.resize(1100, 720);
      page.show();
    }
    template <class T>
    T* child(const QString& name) {
      for (T* each : page.findChildren<T*>())
        if (each->accessibleName() == name) return each;
      return nullptr;
    }
    LinesTable* table() { return child<LinesTable>(QStringLiteral("Queue")); }
    QString cell(int row, int column) { return table()->model()->index(row, column).data().toString(); }
    int rows() { return table()->isVisible() ? table()->model()->rowCount() : 0; }
    QString text() { return child<QLabel>(QStringLiteral("State of the queue"))->text(); }
    QToolButton* button(const QString& name) { return child<QToolButton>(name); }
    QComboBox* where() { return child<QComboBox>(QStringLiteral("Whose queue it is")); }
    void mark(int row) { table()->setCurrentIndex(table()->model()->index(row, 0)); }
    Session session;
    StudiesPage page;
  };

  /// With SACCADE_SHOTS set, pictures of the page go to that folder.
  static void shoot(Shown& shown, const QString& name) {
    const QString folder = qEnvironmentVariable("SACCADE_SHOTS");
    if (folder.isEmpty()) return;
    for (const Theme theme : {Theme::light, Theme::dark}) {
      applyTheme(theme);
      for (const QSize size : {QSize(860, 640), QSize(1700, 1000)}) {
        shown.page.resize(size);
        QTest::qWait(700);
        shown.page.grab().save(QString("%1/%2-%3-%4.png").arg(folder, name, theme == Theme::light ? "light" : "dark").arg(size.width()));
      }
    }
    applyTheme(Theme::light);
  }

  Json queue() const {
    const Json all = program_.run({"--json", "queue", "list", "--on", "server"}).json();
    return all.empty() ? Json::object() : all[0];
  }
  QString first() const {
    const std::string folder = queue()["entries"][0]["directory"];
    return QFileInfo(QString::fromStdString(folder)).fileName();
  }

  /// Two studies that wait on the host, whose queue is paused.
  void queue_two() const {
    Json study{{"question", "Which width?"},
               {"base", Program::config()},
               {"axes", Json::array({{{"setting", "architecture.width"}, {"values", {8, 16}}}})},
               {"seeds", {1}},
               {"set", {{"training.steps", 20000}}}};
    for (const char* name : {"early", "late"}) {
      program_.write(QString("%1.json").arg(name), QByteArray::fromStdString(study.dump()));
      const auto started = program_.run({"study", "start", program_.path(QString("%1.json").arg(name)), "--on", "server"});
      QVERIFY2(started.code == 0, qPrintable(started.err));
      QCOMPARE(program_.run({"queue", "pause", "--now", "--on", "server"}).code, 0);
    }
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    host_.emplace(program_, true);
    save_host("server", {{"ssh", "alias"}}, false);
    queue_two();
  }
  void cleanupTestCase() {
    program_.run({"queue", "pause", "--now", "--on", "server"});
    QTRY_VERIFY_WITH_TIMEOUT(queue()["worker"].is_null(), 60000);
  }

  void a_host_that_is_not_connected_is_told() {
    Shown shown(program_.path("runs"));
    QTRY_VERIFY(shown.where()->isVisible());
    QTRY_VERIFY(shown.text().contains("Nothing has been queued on this machine"));
    const int before = host_->logins();
    shown.where()->setCurrentIndex(1);
    QTRY_VERIFY2(shown.text().contains("server is ") && shown.text().contains("shown when it is connected"), qPrintable(shown.text()));
    QTest::qWait(1500);
    QCOMPARE(host_->logins(), before);  // nobody logs in for it
    QVERIFY(!shown.button("Pause")->isEnabled() && !shown.button("Go on with the queue")->isEnabled());
    shoot(shown, "not-connected");
  }

  void it_is_ordered_paused_and_worked_off() {
    auto keeper = std::make_unique<MirrorKeeper>(nullptr);
    Shown shown(program_.path("runs"));
    QSignalSpy failed(&shown.session, &Session::failed);
    QTRY_VERIFY(shown.where()->isVisible());
    shown.where()->setCurrentIndex(1);
    QTRY_COMPARE_WITH_TIMEOUT(shown.rows(), 2, 60000);
    const int logins = host_->logins();
    QCOMPARE(shown.cell(0, 1), QString("early"));
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell(1, 3), QString("paused"), 60000);  // its mirror has come
    QVERIFY2(shown.text().startsWith("cpu: paused"), qPrintable(shown.text()));
    shown.mark(1);
    QTest::keyClick(&shown.page, Qt::Key_Up, Qt::AltModifier);
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell(0, 1), QString("late"), 20000);
    QCOMPARE(first(), QString("late"));

    Offer undo;
    connect(&shown.session, &Session::offered, &shown.page, [&](const QString& text, const Offer& offer) {
      QVERIFY2(text.contains("queue of server"), qPrintable(text));
      undo = offer;
    });
    shown.mark(0);
    QTest::mouseClick(shown.button("Take out"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(shown.rows(), 1, 20000);
    QCOMPARE(first(), QString("early"));
    QVERIFY(undo.act);
    undo.act();
    QTRY_COMPARE_WITH_TIMEOUT(shown.rows(), 2, 20000);
    QCOMPARE(first(), QString("late"));

    QTest::mouseClick(shown.button("Go on with the queue"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.text().contains("at work"), 20000);
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell(0, 3), QString("running"), 60000);
    QTRY_VERIFY_WITH_TIMEOUT(shown.cell(0, 5).contains("left"), 60000);
    shoot(shown, "at-work");
    QTest::mouseClick(shown.button("Pause now"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(shown.text().startsWith("cpu: paused"), 20000);
    QTRY_COMPARE_WITH_TIMEOUT(shown.cell(0, 3), QString("paused"), 60000);
    QCOMPARE(host_->logins(), logins);  // all over the connection that stands
    QVERIFY2(failed.isEmpty(), qPrintable(failed.value(0).value(0).toString()));

    shown.where()->setCurrentIndex(0);
    QTRY_VERIFY(shown.text().contains("Nothing has been queued on this machine"));
    QCOMPARE(shown.rows(), 0);
    shown.where()->setCurrentIndex(1);
    QTRY_COMPARE_WITH_TIMEOUT(shown.rows(), 2, 20000);
    keeper.reset();
    QTRY_VERIFY_WITH_TIMEOUT(shown.text().contains("server is offline, as of") && shown.text().contains("said last"), 60000);
    QCOMPARE(shown.rows(), 2);
    shown.mark(0);
    for (const char* name : {"Pause", "Pause now", "Go on with the queue", "Up", "Down", "Take out"})
      QVERIFY2(!shown.button(name)->isEnabled(), name);
    shoot(shown, "offline");
  }

  /// What a host says goes on being asked for beside the event loop.
  void asking_holds_no_event_up() {
    MirrorKeeper keeper(nullptr);
    Shown shown(program_.path("runs"));
    QTRY_VERIFY(shown.where()->isVisible());
    shown.where()->setCurrentIndex(1);
    QTRY_COMPARE_WITH_TIMEOUT(shown.rows(), 2, 60000);
    const double longest = longest_event(7000);  // two questions and more
    QVERIFY2(longest < 100, qPrintable(QString::number(longest)));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::HostQueueTest)
#include "host_queue_test.moc"
