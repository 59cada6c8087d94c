#include "ui/session.h"

#include <unistd.h>
#include <QFile>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "tests/analysis/fixture.h"
#include "ui/run_list.h"

namespace saccade::test {

using ui::Session;

class SessionTest : public QObject {
  Q_OBJECT

  /// A stand-in for the command line program: writes its arguments beside itself, then does what `script` says.
  static void put_program(const QTemporaryDir& folder, const QByteArray& script) {
    QFile program(folder.filePath(QStringLiteral("program")));
    QVERIFY(program.open(QIODevice::WriteOnly));
    program.write("#!/bin/sh\necho \"$@\" > \"" + folder.path().toUtf8() + "/arguments\"\n" + script);
    program.close();
    QVERIFY(program.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    qputenv("SACCADE_BINARY", program.fileName().toUtf8());
  }
  static QString content(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()).trimmed() : QString();
  }

 private Q_SLOTS:
  void tells_changes_once() {
    const QTemporaryDir folder;
    Session session(folder.path());
    QSignalSpy heads(&session, &Session::headChanged), queries(&session, &Session::queryChanged);
    session.setHead(1, 2);
    session.setHead(1, 2);
    QCOMPARE(heads.size(), 1);
    session.setQuery(7);
    session.setCurrentRun(QStringLiteral("/elsewhere"));
    QCOMPARE(session.query(), 7);  // what one compares runs at
    QCOMPARE(session.layer(), 1);
    QCOMPARE(session.head(), 2);
    QCOMPARE(queries.size(), 1);
  }

  void chooses_a_run_when_there_are_some() {
    const QTemporaryDir folder;
    write_fixture(folder.filePath(QStringLiteral("a")).toStdString(), {});
    Session session(folder.path());
    QSignalSpy chosen(&session, &Session::currentRunChanged);
    QVERIFY(chosen.wait());
    QCOMPARE(session.currentRun(), folder.filePath(QStringLiteral("a")));
  }

  /// A cooldown branch is newer than its run, and is not what one looks at first; alone it is.
  void chooses_a_run_before_its_branches() {
    const QTemporaryDir folder, other;
    const QString trunk = folder.filePath(QStringLiteral("a")), branch = trunk + QStringLiteral("/branches/step-50");
    write_fixture(trunk.toStdString(), {});
    write_fixture(branch.toStdString(), {.seed = 2});
    {
      Session session(folder.path());
      QSignalSpy chosen(&session, &Session::currentRunChanged);
      QTRY_COMPARE(session.runs()->rowCount(), 2);
      QTRY_COMPARE(session.currentRun(), trunk);
      session.setCurrentRun(branch);
      QTest::qWait(500);
      QCOMPARE(session.currentRun(), branch);  // who chooses one has it
      for (const QList<QVariant>& each : chosen.mid(0, chosen.size() - 1)) QCOMPARE(each.first().toString(), trunk);
    }
    const QString alone = other.filePath(QStringLiteral("a/branches/step-50"));
    write_fixture(alone.toStdString(), {});
    QVERIFY(QFile::copy(alone + QStringLiteral("/run.json"), other.filePath(QStringLiteral("a/run.json"))));
    QFile damaged(other.filePath(QStringLiteral("a/run.json")));
    QVERIFY(damaged.open(QIODevice::WriteOnly) && damaged.write("{") == 1);
    damaged.close();
    Session session(other.path());
    QTRY_COMPARE(session.currentRun(), alone);
  }

  void starts_a_process_of_its_own() {
    const QTemporaryDir folder, programs;
    put_program(programs, "ps -o sid= -p $$ > \"$4.sid\"\n");
    Session session(folder.path());
    QSignalSpy started(&session, &Session::runStarted);
    session.startRun(R"({"name": "My run!", "training": {"seed": 3}})");
    QCOMPARE(started.size(), 1);
    const QString directory = started.first().first().toString();
    QVERIFY2(directory.endsWith(QStringLiteral("-my-run-s3")), qPrintable(directory));
    QTRY_VERIFY(!content(directory + QStringLiteral(".sid")).isEmpty());
    QVERIFY(content(directory + QStringLiteral(".sid")).toLongLong() != getsid(0));
    const QStringList arguments = content(programs.filePath(QStringLiteral("arguments"))).split(QLatin1Char(' '));
    QCOMPARE(arguments.value(0), QStringLiteral("train"));
    QVERIFY(content(arguments.value(1)).contains(QStringLiteral("My run!")));
    QCOMPARE(arguments.value(3), directory);
  }

  void says_why_a_run_did_not_begin() {
    const QTemporaryDir folder, programs;
    put_program(programs, "echo 'saccade: there is no corpus of that name' >&2\nexit 3\n");
    Session session(folder.path());
    QSignalSpy failed(&session, &Session::failed);
    session.startRun("{}");
    QVERIFY(failed.wait(5000));
    QCOMPARE(failed.first().first().toString(), QStringLiteral("saccade: there is no corpus of that name"));
  }

  /// As it was, though nothing was closed: kept as it changes.
  void the_next_session_begins_where_this_one_is() {
    const QTemporaryDir folder, state;
    for (const char* name : {"a", "b"}) write_fixture(folder.filePath(QLatin1String(name)).toStdString(), {});
    const QString file = state.filePath(QStringLiteral("workbench.ini")), b = folder.filePath(QStringLiteral("b"));
    {
      QSettings settings(file, QSettings::IniFormat);
      Session session(folder.path());
      session.remember(&settings);
      QTRY_VERIFY(!session.currentRun().isEmpty());
      session.setCurrentRun(b);
      session.setHead(2, 3);
      session.setQuery(11);
      session.setXAxis(XAxis::flops);
      session.runs()->setFilter(QStringLiteral("seed:1"));
      session.runs()->setHidden({folder.filePath(QStringLiteral("a"))});
      session.runs()->setBaseline(b);
      session.runs()->setColour({b}, QColor(0x12, 0x34, 0x56));
      session.place().set("live/log_x", true);
      settings.sync();
      QSettings other(file, QSettings::IniFormat);
      QCOMPARE(other.value(QStringLiteral("place/query")).toInt(), 11);
    }
    QSettings settings(file, QSettings::IniFormat);
    Session session(folder.path());
    session.remember(&settings);
    QCOMPARE(session.layer(), 2);
    QCOMPARE(session.head(), 3);
    QCOMPARE(session.query(), 11);
    QCOMPARE(session.xAxis(), XAxis::flops);
    QCOMPARE(session.runs()->selection().filter(), QStringLiteral("seed:1"));
    QCOMPARE(session.runs()->hidden(), QStringList(folder.filePath(QStringLiteral("a"))));
    QCOMPARE(session.runs()->selection().baseline(), b);
    QVERIFY(session.place().value("live/log_x").toBool());
    QTRY_COMPARE(session.currentRun(), b);
    const auto colour = [&] { return session.runs()->index(session.runs()->row(b)).data(ui::RunList::ColourRole).value<QColor>(); };
    QTRY_COMPARE(colour(), QColor(0x12, 0x34, 0x56));
  }

  void refuses_what_it_cannot_start() {
    const QTemporaryDir folder;
    Session session(folder.path());
    QSignalSpy failed(&session, &Session::failed);
    session.startRun("[1");
    session.stopRun(folder.filePath(QStringLiteral("none")));
    QCOMPARE(failed.size(), 2);
  }

  void a_started_run_becomes_the_current_one() {
    const QTemporaryDir folder, programs;
    write_fixture(folder.filePath(QStringLiteral("old")).toStdString(), {});
    put_program(programs, "");
    Session session(folder.path());
    QVERIFY(QSignalSpy(&session, &Session::currentRunChanged).wait());
    QSignalSpy started(&session, &Session::runStarted);
    session.startRun(R"({"name": "new"})");
    const QString directory = started.first().first().toString();
    write_fixture(directory.toStdString(), {.seed = 2});
    QTRY_COMPARE_WITH_TIMEOUT(session.currentRun(), directory, 10000);
  }
};

}  // namespace saccade::test

QTEST_MAIN(saccade::test::SessionTest)
#include "session_test.moc"
