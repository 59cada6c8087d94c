#pragma once
#include <QApplication>
#include <QElapsedTimer>
#include <QObject>
#include <QThreadPool>
#include <QTimer>
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "ui/threads/hand_over.h"
#include "ui/threads/step_back.h"

namespace saccade::ui {

/// Works something out in a thread and delivers it here. One job at a time; of those asked for meanwhile only the last is done. Jobs of
/// data that keep coming take at most a small share of a core: the longer one takes, the longer the next waits.
template <class Result>
class LatestJob {
 public:
  using Work = std::function<Result()>;
  using Deliver = std::function<void(Result)>;

  LatestJob(QObject* owner, Deliver deliver) : deliver_(std::move(deliver)) {
    pause_.setSingleShot(true);
    QObject::connect(&pause_, &QTimer::timeout, owner, [this] { start(); });
  }
  ~LatestJob() {
    *alive_ = false;
    wait_for(pool_);
  }

  /// `urgent`: someone waits for it, so it does not wait.
  void ask(Work work, bool urgent) {
    waiting_ = std::move(work);
    if (running_) {
      urgent_ = urgent_ || urgent;
      return;
    }
    const int left = urgent ? 0 : static_cast<int>(std::max<qint64>(0, rest_ms_ - (ended_.isValid() ? ended_.elapsed() : rest_ms_)));
    if (left == 0) return start();
    if (!pause_.isActive()) pause_.start(left);
  }
  bool busy() const { return running_ || waiting_.has_value(); }

 private:
  void start() {
    pause_.stop();
    if (running_ || !waiting_) return;
    running_ = true;
    urgent_ = false;
    start_in(pool_, [this, alive = alive_, work = *std::exchange(waiting_, {})] {
      step_back();
      QElapsedTimer clock;
      clock.start();
      auto result = std::make_shared<Result>(work());
      const qint64 took = clock.elapsed();
      if (!*alive) return;
      hand_over(qApp, [this, alive, result, took] {
        if (*alive) end(std::move(*result), took);
      });
    });
  }
  void end(Result result, qint64 took) {
    constexpr qint64 kShare = 100, kMost = 5000;  // 1 % of a core; drawing the result takes as much again and more
    running_ = false;
    rest_ms_ = std::min(kShare * took, kMost);
    ended_.start();
    deliver_(std::move(result));
    if (waiting_) urgent_ ? start() : pause_.start(static_cast<int>(rest_ms_));
  }

  Deliver deliver_;
  QThreadPool pool_;
  QTimer pause_;
  QElapsedTimer ended_;
  std::optional<Work> waiting_;
  std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
  bool running_ = false, urgent_ = false;
  qint64 rest_ms_ = 0;
};

}  // namespace saccade::ui
