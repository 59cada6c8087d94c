#pragma once
#include <atomic>
#include <cstdint>

namespace saccade {

/// How far the thread that computes for a rank is. That thread writes it, and the rank's watch (RankWatch) tells the other ranks, so that a
/// thread that hangs is found out. What is not done in common with the other ranks may take any time and counts for nothing.
class Progress {
 public:
  /// What the thread is at, which says how long it may go without a raise.
  enum class Pace : uint8_t {
    aside,     ///< something of its own, like text and files: as long as it likes
    first,     ///< work in common for the first time, when algorithms are chosen, graphs made and connections opened
    settling,  ///< for the second time, when graphs are recorded
    steady,    ///< what it has done before
    waiting    ///< for other ranks, in a call; it raises the count meanwhile
  };
  /// Of something that was done so many times before.
  static Pace pace_after(int64_t times) { return times == 0 ? Pace::first : times == 1 ? Pace::settling : Pace::steady; }

  struct Seen {
    Pace pace = Pace::aside;
    uint64_t count = 0;     ///< raises so far
    uint64_t meetings = 0;  ///< calls of all ranks that it has come to: the same number at the same call on each of them
  };

  void raise() { count_.fetch_add(1, std::memory_order_relaxed); }
  void come_to_meeting() { meetings_.fetch_add(1, std::memory_order_relaxed), raise(); }
  /// Gives the pace before.
  Pace set(Pace pace) { return raise(), pace_.exchange(pace, std::memory_order_relaxed); }
  Seen seen() const {
    return {pace_.load(std::memory_order_relaxed), count_.load(std::memory_order_relaxed), meetings_.load(std::memory_order_relaxed)};
  }

  /// Of the rank that this thread computes for; null where it computes for none (one process, threads that write files).
  static Progress* of_thread() { return of_thread_; }
  static void set_of_thread(Progress* progress) { of_thread_ = progress; }

 private:
  static inline thread_local Progress* of_thread_ = nullptr;
  std::atomic<Pace> pace_ = Pace::aside;
  std::atomic<uint64_t> count_ = 0, meetings_ = 0;
};

/// This thread has done a bit of its work: every op says so, and what replays recorded ones.
inline void raise_progress() {
  if (Progress* progress = Progress::of_thread()) progress->raise();
}
/// This thread has come to a call that all ranks make; what carries it need not know of `Progress`.
inline void come_to_meeting() {
  if (Progress* progress = Progress::of_thread()) progress->come_to_meeting();
}

/// As long as it lives a rank's thread is at something of this pace.
class AtPace {
 public:
  explicit AtPace(Progress::Pace pace, Progress* progress = Progress::of_thread()) : progress_(progress) {
    if (progress_) before_ = progress_->set(pace);
  }
  ~AtPace() {
    if (progress_) progress_->set(before_);
  }
  AtPace(const AtPace&) = delete;
  AtPace& operator=(const AtPace&) = delete;

 private:
  Progress* const progress_;
  Progress::Pace before_ = Progress::Pace::aside;
};

}  // namespace saccade
