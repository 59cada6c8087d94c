#include "ui/watchdog.h"

#include <QEventLoop>
#include <QThread>
#include <QTimer>
#include <QtTest>

namespace saccade::test {

/// What debug builds and the benchmark say of the event loop.
class WatchdogTest : public QObject {
  Q_OBJECT

  ui::Watchdog dog_;
  const QEvent event_{QEvent::Timer};

  /// Whether it was delivered.
  bool deliver(const std::function<void()>& work) {
    return dog_.watch(this, &event_, [&] {
      work();
      return true;
    });
  }

 private Q_SLOTS:
  void init() { dog_.forget(); }

  void the_longest_event_is_known() {
    QVERIFY(deliver([] { QThread::msleep(5); }));
    QVERIFY(deliver([] { QThread::msleep(30); }));
    QVERIFY(deliver([] {}));
    const ui::Watchdog::Stall stall = dog_.longest();
    QVERIFY2(stall.ms >= 30 && stall.busy_ms < 25, qPrintable(QStringLiteral("%1, %2").arg(stall.ms).arg(stall.busy_ms)));  // it slept
    QCOMPARE(stall.receiver, QStringLiteral("saccade::test::WatchdogTest"));
    QCOMPARE(stall.event, QStringLiteral("Timer"));
    dog_.forget();
    QCOMPARE(dog_.longest().ms, 0.0);
  }

  /// An event within another is part of it.
  void one_within_another_counts_once() {
    const QEvent inner(QEvent::Paint);
    deliver([&] {
      dog_.watch(this, &inner, [] { return QThread::msleep(20), true; });
      QThread::msleep(20);
    });
    QVERIFY(dog_.longest().ms >= 40);
    QCOMPARE(dog_.longest().event, QStringLiteral("Timer"));
  }

  /// What waits in an event loop of its own holds nothing up: a menu, say.
  void a_loop_of_its_own_is_no_stall() {
    deliver([this] {
      QEventLoop loop;
      QTimer::singleShot(40, &loop, [&] {
        deliver([] {});  // as the application delivers what comes meanwhile
        loop.quit();
      });
      loop.exec();
    });
    QVERIFY2(dog_.longest().ms < 40, qPrintable(QString::number(dog_.longest().ms)));
  }
};

}  // namespace saccade::test

QTEST_GUILESS_MAIN(saccade::test::WatchdogTest)
#include "watchdog_test.moc"
