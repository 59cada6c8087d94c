#pragma once
#include <QElapsedTimer>
#include <QTest>
#include <QTimer>
#include <algorithm>

namespace saccade::test {

/// The longest that the event loop was held up while it ran for `ms` milliseconds; ms.
inline qint64 longest_event(int ms) {
  QElapsedTimer clock;
  qint64 longest = 0;
  QTimer tick;
  QObject::connect(&tick, &QTimer::timeout, &tick, [&] { longest = std::max(longest, clock.restart()); });
  clock.start();
  tick.start(0);
  QTest::qWait(ms);
  return longest;
}

}  // namespace saccade::test
