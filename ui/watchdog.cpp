#include "ui/watchdog.h"

#include <time.h>

#include <QApplication>
#include <QEvent>
#include <QMetaEnum>
#include <QThread>
#include <algorithm>
#include <cstdio>

namespace saccade::ui {
namespace {

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Watchdog::Place Watchdog::enter(const QObject* receiver, const QEvent* event) {
  const int level = QThread::currentThread()->loopLevel();
  deepest_loop_ = std::max(deepest_loop_, level);
  Place place{depth_++ == 0, level, {}, {}};
  if (!place.outermost) return place;
  deepest_loop_ = level;
  place.receiver = QString::fromLatin1(receiver->metaObject()->className());
  const char* name = QMetaEnum::fromType<QEvent::Type>().valueToKey(event->type());
  place.event = QString::fromLatin1(name ? name : "user event");
  busy_ = thread_ms();
  clock_.start();
  return place;
}

/// The receiver may be gone.
void Watchdog::leave(const Place& place) {
  --depth_;
  if (!place.outermost || deepest_loop_ > place.level) return;
  const double ms = static_cast<double>(clock_.nsecsElapsed()) * 1e-6;
  if (ms > longest_.ms) longest_ = {ms, thread_ms() - busy_, place.receiver, place.event};
  if (limit_ms_ > 0 && ms > limit_ms_)
    std::fprintf(stderr, "saccade-workbench: %s of %s took %.0f ms\n", qPrintable(place.event), qPrintable(place.receiver), ms);
}

}  // namespace saccade::ui
