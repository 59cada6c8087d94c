#include "kernels/engine/parallel.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace saccade {
namespace {

thread_local bool inside_task = false;

/// A fixed set of workers; tasks are taken from a shared counter. Workers spin briefly before they sleep, because a
/// training step issues thousands of short parallel regions. A worker that wakes late is not waited for: the caller waits
/// only for those that have entered, so a busy machine costs speed but never a whole time slice a region.
class Pool {
 public:
  static Pool& instance() {
    static Pool pool;
    return pool;
  }

  int threads() const { return threads_; }

  void resize(int threads) {
    if (inside_task) throw std::logic_error("set_thread_count inside a parallel task");
    std::lock_guard region(region_mutex_);
    stop_workers();
    start_workers(threads - 1);
  }

  void run(int64_t tasks, const std::function<void(int64_t)>& body) {
    if (tasks <= 0) return;
    if (tasks == 1 || inside_task || threads_ == 1) {
      for (int64_t i = 0; i < tasks; ++i) body(i);
      return;
    }
    std::lock_guard region(region_mutex_);
    body_ = &body;
    tasks_ = tasks;
    next_ = 0;
    error_ = nullptr;
    open_ = true;
    ++generation_;
    if (sleepers_ > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }
    work();
    open_ = false;  // whoever enters from now on leaves again without looking at the tasks
    for (int spin = 0; entered_ != 0; ++spin) pause(spin);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr int kSpins = 4000;

  Pool() {
    int threads = static_cast<int>(std::thread::hardware_concurrency());
    if (const char* wanted = std::getenv("SACCADE_THREADS")) threads = std::atoi(wanted);
    start_workers(std::max(threads, 1) - 1);
  }
  ~Pool() { stop_workers(); }

  static void pause(int spin) {
    if (spin > kSpins) return std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  void start_workers(int count) {
    stopping_ = false;
    const uint64_t now = generation_;
    try {
      for (int i = 0; i < count; ++i) workers_.emplace_back([this, now] { loop(now); });
    } catch (const std::system_error&) {  // a limit of memory or of processes: the results are the same with fewer
    }
    threads_ = static_cast<int>(workers_.size()) + 1;
  }

  void stop_workers() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      ++generation_;
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
    workers_.clear();
  }

  void loop(uint64_t seen) {
    while (true) {
      for (int spin = 0; spin < kSpins && generation_ == seen; ++spin) pause(spin);
      if (generation_ == seen) {
        std::unique_lock lock(mutex_);
        ++sleepers_;
        wake_.wait(lock, [&] { return generation_ != seen; });
        --sleepers_;
      }
      seen = generation_;
      if (stopping_) return;
      ++entered_;
      if (open_) work();
      --entered_;
    }
  }

  void work() {
    inside_task = true;
    for (int64_t i; (i = next_.fetch_add(1)) < tasks_;) {
      try {
        (*body_)(i);
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_ = tasks_;
      }
    }
    inside_task = false;
  }

  std::vector<std::thread> workers_;
  std::mutex region_mutex_;  ///< one parallel region at a time
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> threads_{1};
  std::atomic<uint64_t> generation_{0};  ///< counts regions; sequentially consistent with sleepers_, open_ and entered_
  std::atomic<bool> stopping_{false};
  std::atomic<bool> open_{false};  ///< whether the tasks below may be taken
  std::atomic<int> entered_{0}, sleepers_{0};
  std::atomic<int64_t> next_{0};
  int64_t tasks_ = 0;
  const std::function<void(int64_t)>* body_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace

int thread_count() { return Pool::instance().threads(); }
void set_thread_count(int threads) { Pool::instance().resize(std::max(threads, 1)); }

void parallel_for(int64_t tasks, const std::function<void(int64_t)>& body) { Pool::instance().run(tasks, body); }

void parallel_ranges(int64_t size, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t blocks = (size + grain - 1) / grain;
  parallel_for(blocks, [&](int64_t i) { body(i * grain, std::min(size, (i + 1) * grain)); });
}

}  // namespace saccade
