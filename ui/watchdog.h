#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QString>

class QEvent;

namespace saccade::ui {

/// Watches how long the event loop is busy with one event: debug builds and the benchmark ask QApplication::notify through it.
class Watchdog {
 public:
  struct Stall {
    double ms = 0, busy_ms = 0;  ///< on the clock, and of the processor: other programs may have had the rest
    QString receiver, event;     ///< class and type of what was at work
  };

  /// Reports on stderr every event that takes longer than `limit_ms`; 0: only keeps the longest.
  explicit Watchdog(double limit_ms = 0) : limit_ms_(limit_ms) {}

  /// Runs `deliver` and measures it, unless it is part of another event or waited in an event loop of its own.
  template <class F>
  bool watch(const QObject* receiver, const QEvent* event, F deliver) {
    const Place place = enter(receiver, event);
    const bool handled = deliver();
    leave(place);
    return handled;
  }

  Stall longest() const { return longest_; }
  void forget() { longest_ = {}; }

 private:
  struct Place {
    bool outermost = false;
    int level = 0;
    QString receiver, event;
  };
  Place enter(const QObject* receiver, const QEvent* event);
  void leave(const Place& place);

  double limit_ms_;
  int depth_ = 0, deepest_loop_ = 0;
  QElapsedTimer clock_;
  double busy_ = 0;  ///< of this thread, when the event began
  Stall longest_;
};

}  // namespace saccade::ui
