#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace saccade {

/// Writes files while its owner does something else: a thread that does one piece of work after the other, in the order they came. After
/// an error nothing more is done; the owner hears of it at its next call. A piece of work may use nothing that the owner changes meanwhile.
class FileThread {
 public:
  FileThread();   ///< Throws DeviceError where the system starts no thread.
  ~FileThread();  ///< after all work is done; an error that nobody heard of is lost
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  /// Rethrows the error of earlier work, once.
  void add(std::function<void()> work);
  /// Until all is done. Rethrows likewise.
  void wait();
  /// Rethrows likewise, and waits for nothing.
  void check();
  bool busy();  ///< Whether work is under way or waits. Rethrows likewise.

 private:
  void run();
  void rethrow(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  ///< the first one is under way
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace saccade
