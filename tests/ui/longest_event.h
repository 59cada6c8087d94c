#pragma once
#include <QElapsedTimer>
#include <QFile>
#include <QTest>
#include <QTimer>
#include <algorithm>

namespace saccade::test {

/// How long this thread waited for a processor that others had, ms; 0 where the kernel does not tell.
inline double waited_for_processor() {
  QFile file(QStringLiteral("/proc/thread-self/schedstat"));
  if (!file.open(QIODevice::ReadOnly)) return 0;
  return 1e-6 * file.readAll().split(' ').value(1).toDouble();
}

/// The longest that the event loop was held up while it ran for `ms` milliseconds, other programs' share of the processor apart; ms.
inline double longest_event(int ms) {
  QElapsedTimer clock;
  double longest = 0, waited = waited_for_processor();
  QTimer tick;
  QObject::connect(&tick, &QTimer::timeout, &tick, [&] {
    const double took = 1e-6 * static_cast<double>(clock.nsecsElapsed()), waited_now = waited_for_processor();
    longest = std::max(longest, took - (waited_now - waited));
    waited = waited_now;
    clock.start();
  });
  clock.start();
  tick.start(0);
  QTest::qWait(ms);
  return longest;
}

}  // namespace saccade::test
