#pragma once
#include <QMetaObject>
#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <utility>

/// How work goes from one thread to another. Qt's queues see to it that what was written before is seen there. ThreadSanitizer cannot know,
/// because Qt comes without instrumentation: in programs built with it, an atomic number that both threads touch says the same.
namespace saccade::ui {

namespace between_threads {

#ifdef __SANITIZE_THREAD__
inline std::atomic<unsigned> handed{0};
inline void give() { handed.fetch_add(1, std::memory_order_release); }
inline void take() { static_cast<void>(handed.load(std::memory_order_acquire)); }
#else
inline void give() {}
inline void take() {}
#endif

/// Calls `work` once it has been handed over. It may also go unused, in any thread.
template <class Work>
class Handed {
 public:
  explicit Handed(Work work) : work_(std::move(work)) { give(); }
  Handed(const Handed& other) : work_(other.work_) { give(); }
  Handed(Handed&& other) noexcept : work_(std::move(other.work_)) { give(); }
  Handed& operator=(const Handed&) = delete;
  Handed& operator=(Handed&&) = delete;
  ~Handed() { take(); }
  void operator()() {
    take();
    work_();
    give();
  }

 private:
  Work work_;
};

}  // namespace between_threads

/// Calls `work` in a thread of the pool.
template <class Work>
void start_in(QThreadPool& pool, Work work, int priority = 0) {
  pool.start([handed = between_threads::Handed<Work>(std::move(work))]() mutable { handed(); }, priority);
}

/// Waits until the pool has nothing left to do; what it did is seen behind that.
inline void wait_for(QThreadPool& pool) {
  pool.waitForDone();
  between_threads::take();
}

/// Calls `work` between two events of the receiver's thread; not at all when the receiver has ended by then.
template <class Work>
void hand_over(QObject* receiver, Work work) {
  QMetaObject::invokeMethod(
      receiver, [handed = between_threads::Handed<Work>(std::move(work))]() mutable { handed(); }, Qt::QueuedConnection);
}

}  // namespace saccade::ui
