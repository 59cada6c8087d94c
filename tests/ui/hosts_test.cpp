// Hosts in the window: the page with their profiles, their runs in the list, and runs that are begun and stopped there. In place of ssh
// stands a script that starts the agent on this machine, in folders of its own.
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScopeGuard>
#include <QScrollArea>
#include <QScrollBar>
#include <QSignalSpy>
#include <QThread>
#include <algorithm>

#include "analysis/remote/channel.h"
#include "analysis/remote/host_profile.h"
#include "analysis/remote/mirror.h"
#include "tests/app/host_fixture.h"
#include "tests/app/program.h"
#include "ui/hosts/hosts_now.h"
#include "ui/hosts/hosts_page.h"
#include "ui/mirror_keeper.h"
#include "ui/run_actions.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/session.h"
#include "ui/where_choice.h"

namespace saccade::test {

using namespace ui;

class HostsTest : public QObject {
  Q_OBJECT

  Program program_;
  std::optional<StandInHost> host_;

  template <class T>
  static T* child(QWidget& page, const QString& name) {
    for (T* each : page.findChildren<T*>())
      if (each->accessibleName() == name) return each;
    return nullptr;
  }
  static QPushButton* push(QWidget& page, const QString& text) {
    for (QPushButton* each : page.findChildren<QPushButton*>())
      if (each->text() == text) return each;
    return nullptr;
  }

  static const Run* run_of(const Session& session, RunState state) {
    for (const Run* run : session.runs()->runs())
      if (run->info().host == "server" && run->info().state == state) return run;
    return nullptr;
  }

  /// Of the event loop within so many ms, in ms.
  static qint64 longest_turn(qint64 milliseconds) {
    qint64 longest = 0;
    QElapsedTimer clock, turn;
    for (clock.start(); clock.elapsed() < milliseconds;) {
      turn.start();
      QCoreApplication::processEvents();
      longest = std::max(longest, turn.elapsed());
      QThread::msleep(1);
    }
    return longest;
  }

 private Q_SLOTS:
  void initTestCase() {
    program_.share_folders();
    host_.emplace(program_);
  }

  void cleanup() {
    for (const std::string& host : host_names()) remove_host(host);
  }

  void a_host_is_written_tested_and_removed() {
    Session session(program_.path("runs"));
    HostsPage page(session, nullptr);
    page.show();
    auto* list = child<QListWidget>(page, QStringLiteral("Hosts"));
    QCOMPARE(list->count(), 0);
    QVERIFY(!push(page, QStringLiteral("Save"))->isEnabled());
    QTest::keyClicks(child<QLineEdit>(page, QStringLiteral("Name")), QStringLiteral("server"));
    QTest::mouseClick(push(page, QStringLiteral("Save")), Qt::LeftButton);
    auto* facts = child<QLabel>(page, QStringLiteral("What was found there"));
    QVERIFY2(facts->text().contains(QStringLiteral("/ssh")), qPrintable(facts->text()));  // said, and nothing written
    QVERIFY(host_names().empty());
    QTest::keyClicks(child<QLineEdit>(page, QStringLiteral("ssh alias")), QStringLiteral("alias"));
    QTest::mouseClick(push(page, QStringLiteral("Save")), Qt::LeftButton);
    QCOMPARE(list->count(), 1);
    QCOMPARE(load_host("server").ssh, std::string("alias"));
    QVERIFY(list->item(0)->text().contains(QStringLiteral("not connected yet")));

    QTest::mouseClick(push(page, QStringLiteral("Test")), Qt::LeftButton);
    QVERIFY(!push(page, QStringLiteral("Test")));
    QTest::mouseClick(push(page, QStringLiteral("Cancel the test")), Qt::LeftButton);
    QCOMPARE(facts->text(), QStringLiteral("Cancelled."));
    QTest::mouseClick(push(page, QStringLiteral("Test")), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(facts->text().contains(QStringLiteral("GPU:")), 60000);
    QVERIFY2(facts->text().contains(QStringLiteral("saccade 0.")) && facts->text().contains(QStringLiteral("Slurm:")),
             qPrintable(facts->text()));

    auto* alias = child<QLineEdit>(page, QStringLiteral("ssh alias"));
    alias->selectAll();
    QTest::keyClicks(alias, QStringLiteral("elsewhere"));
    QTest::mouseClick(push(page, QStringLiteral("Save")), Qt::LeftButton);
    QTest::mouseClick(push(page, QStringLiteral("Test")), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(facts->text().contains(QStringLiteral("no such machine: elsewhere")), 60000);
    Offer undo;
    connect(&session, &Session::offered, &page, [&](const QString&, const Offer& offer) { undo = offer; });
    QTest::mouseClick(push(page, QStringLiteral("Remove")), Qt::LeftButton);
    QCOMPARE(list->count(), 0);
    QVERIFY(host_names().empty());
    QVERIFY(undo.act);
    undo.act();
    QCOMPARE(load_host("server").ssh, std::string("elsewhere"));
    QCOMPARE(list->count(), 1);
  }

  /// ssh that ends at once has said why: nobody waits as long as an answer may take.
  void a_host_that_refuses_is_told_at_once() {
    HostProfile profile;
    profile.ssh = "elsewhere", profile.answer_seconds = 60;
    QElapsedTimer clock;
    clock.start();
    QVERIFY_THROWS_EXCEPTION(ChannelLost, Channel::open_ssh(profile));
    QVERIFY2(clock.elapsed() < 20000, qPrintable(QString::number(clock.elapsed())));
  }

  /// A host that lets one wait while it is logged in to does not hold the window up when its profile is changed or removed.
  void one_that_does_not_answer_holds_nothing_up() {
    program_.write("waits", "#!/bin/sh\nexec sleep 60\n");
    QFile::setPermissions(program_.path("waits"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    const QByteArray usual = qgetenv("SACCADE_SSH");
    qputenv("SACCADE_SSH", program_.path("waits").toUtf8());
    const auto again = qScopeGuard([&] { qputenv("SACCADE_SSH", usual); });
    save_host("server", {{"ssh", "alias"}}, false);
    MirrorKeeper keeper(nullptr);
    QCOMPARE(keeper.kept(), 1);
    QTest::qWait(1500);  // it logs in
    save_host("server", {{"ssh", "other"}}, true);
    qint64 longest = longest_turn(5000);
    QCOMPARE(keeper.kept(), 1);  // another one, with the new profile
    remove_host("server");
    longest = std::max(longest, longest_turn(5000));
    QCOMPARE(keeper.kept(), 0);
    QVERIFY2(longest < 150, qPrintable(QStringLiteral("%1 ms").arg(longest)));
  }

  /// However long names are, pages stay as narrow as without them, and nothing moves while a host is asked.
  void long_names_take_no_more_room() {
    QWidget parent;
    WhereChoice none(&parent);
    const int usual = none.minimumSizeHint().width();
    const QString name = QStringLiteral("a-very-long-name-of-a-login-node.cluster.university.example");
    save_host(name.toStdString(), {{"ssh", "alias"}}, false);
    WhereChoice where(&parent);
    where.choose(name);
    QCOMPARE(where.place(), name);
    QCOMPARE(where.minimumSizeHint().width(), usual);
    QVERIFY(where.sizeHint().width() < 2 * usual);

    Session session(program_.path("runs"));
    HostsPage page(session, nullptr);
    page.resize(560, 560);
    page.show();
    auto* list = child<QListWidget>(page, QStringLiteral("Hosts"));
    QTRY_COMPARE(list->count(), 1);
    QCOMPARE(list->textElideMode(), Qt::ElideMiddle);
    QVERIFY(list->horizontalScrollBar()->maximum() == 0 || !list->horizontalScrollBar()->isVisible());
    QVERIFY(list->item(0)->toolTip().startsWith(name));
    QTRY_VERIFY(!child<QLineEdit>(page, QStringLiteral("Name"))->text().isEmpty());
    QCOMPARE(child<QLineEdit>(page, QStringLiteral("Name"))->cursorPosition(), 0);
    QWidget *test = push(page, QStringLiteral("Test")), *remove = push(page, QStringLiteral("Remove"));
    QTest::qWait(50);  // laid out
    const QRect before = test->geometry(), beside = remove->geometry();
    QTest::mouseClick(test, Qt::LeftButton);
    QTest::qWait(50);
    QCOMPARE(test->geometry(), before);
    QCOMPARE(remove->geometry(), beside);
    for (const auto* scroll : page.findChildren<QScrollArea*>()) QVERIFY(scroll->horizontalScrollBar()->maximum() == 0);
  }

  /// What another window or the command line writes is seen.
  void what_is_written_elsewhere_is_seen() {
    save_host("early", {{"ssh", "alias"}}, false);
    Session session(program_.path("runs"));
    HostsPage page(session, nullptr);
    page.show();
    auto* list = child<QListWidget>(page, QStringLiteral("Hosts"));
    auto* alias = child<QLineEdit>(page, QStringLiteral("ssh alias"));
    QTRY_COMPARE(list->count(), 1);
    QTRY_COMPARE(alias->text(), QStringLiteral("alias"));
    save_host("early", {{"ssh", "other"}}, true);
    QTRY_COMPARE_WITH_TIMEOUT(alias->text(), QStringLiteral("other"), 10000);
    save_host("late", {{"ssh", "alias"}}, false);
    QTRY_COMPARE_WITH_TIMEOUT(list->count(), 2, 10000);
    alias->end(false);
    QTest::keyClicks(alias, QStringLiteral("2"));
    QTest::qWait(1500);
    QCOMPARE(alias->text(), QStringLiteral("other2"));  // what is being written stays
  }

  /// However long the files of hosts take to read, the page is not held up: no turn of the event loop takes half as long.
  void files_are_read_beside_the_event_loop() {
    QDir().mkpath(program_.path("config/hosts"));
    for (int i = 0; i < 800; ++i)
      program_.write(QStringLiteral("config/hosts/host%1.json").arg(i, 3, 10, QLatin1Char('0')), R"({"ssh": "alias"})");
    QElapsedTimer clock;
    clock.start();
    QCOMPARE(read_hosts().size(), size_t{800});
    const qint64 reading = clock.elapsed();
    Session session(program_.path("runs"));
    HostsPage page(session, nullptr);
    page.show();
    auto* list = child<QListWidget>(page, QStringLiteral("Hosts"));
    QTRY_COMPARE_WITH_TIMEOUT(list->count(), 800, 60000);
    const qint64 longest = longest_turn(3 * reading + 2500);  // two looks and more
    QVERIFY(QDir(program_.path("config/hosts")).removeRecursively());
    qInfo("800 hosts: read in %lld ms, longest turn %lld ms", static_cast<long long>(reading), static_cast<long long>(longest));
    QVERIFY2(longest < reading / 2, qPrintable(QStringLiteral("%1 of %2 ms").arg(longest).arg(reading)));
  }

  /// A run of a host, as if it were of this machine: it is begun there, seen at work, stopped, and stays when the connection is gone.
  void its_runs_are_in_the_list() {
    save_host("server", {{"ssh", "alias"}}, false);
    QWidget window;
    WhereChoice where(&window);
    window.show();
    QTRY_COMPARE(where.count(), 2);
    where.setCurrentIndex(1);
    QCOMPARE(where.place(), QStringLiteral("server"));
    QVERIFY(where.isHost());

    Session session(program_.path("runs"));
    RunActions actions(session);
    QSignalSpy failed(&session, &Session::failed), began(&session, &Session::runBegan);
    auto keeper = std::make_unique<MirrorKeeper>(nullptr);
    QCOMPARE(keeper->kept(), 1);
    nlohmann::json config = Program::config();
    config["training"].update(
        {{"steps", 2'000'000}, {"evaluate_every", 2'000'000}, {"probe_every", 2'000'000}, {"checkpoint_every", 2'000'000}});
    session.startRun(QByteArray::fromStdString(config.dump()), where.place());
    QTRY_VERIFY_WITH_TIMEOUT(began.count() == 1 || failed.count() > 0, 90000);
    QVERIFY2(failed.isEmpty(), qPrintable(failed.value(0).value(0).toString()));
    QTRY_VERIFY_WITH_TIMEOUT(run_of(session, RunState::running), 60000);
    const QString directory = QString::fromStdString(run_of(session, RunState::running)->info().directory.string());
    QVERIFY(directory.startsWith(program_.path("runs/server/")));
    QVERIFY2(summary_of(*run_of(session, RunState::running)).contains(QStringLiteral("on server")),
             qPrintable(summary_of(*session.runs()->run(directory))));

    keeper.reset();  // the window's connection ends; the run does not
    QTRY_VERIFY_WITH_TIMEOUT(session.runs()->run(directory) && !session.runs()->run(directory)->info().as_of.empty(), 60000);
    QVERIFY(summary_of(*session.runs()->run(directory)).contains(QStringLiteral("offline, as of")));
    QCOMPARE(session.runs()->run(directory)->info().state, RunState::running);
    keeper = std::make_unique<MirrorKeeper>(nullptr);
    session.setCurrentRun(directory);
    QTRY_VERIFY(actions.stop->isEnabled());
    actions.stop->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(run_of(session, RunState::stopped), 60000);
    QVERIFY2(failed.isEmpty(), qPrintable(failed.value(0).value(0).toString()));
    actions.trash->trigger();
    QCOMPARE(failed.count(), 1);
    QVERIFY(failed[0][0].toString().contains(QStringLiteral("mirrored from a host")));
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::HostsTest)
#include "hosts_test.moc"
