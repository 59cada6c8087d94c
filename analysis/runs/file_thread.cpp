#include "analysis/runs/file_thread.h"

#include <pthread.h>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include "kernels/engine/error.h"

namespace saccade {

FileThread::FileThread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the owner's
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw DeviceError(std::string("no thread can be started that writes files: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

FileThread::~FileThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FileThread::rethrow(std::unique_lock<std::mutex>& lock) {
  if (!error_) return;
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}

void FileThread::add(std::function<void()> work) {
  std::unique_lock lock(mutex_);
  rethrow(lock);
  work_.push_back(std::move(work));
  changed_.notify_all();
}

void FileThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty(); });
  rethrow(lock);
}

void FileThread::check() {
  std::unique_lock lock(mutex_);
  rethrow(lock);
}

bool FileThread::busy() {
  std::unique_lock lock(mutex_);
  rethrow(lock);
  return !work_.empty();
}

void FileThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());  // what it holds may be large
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      error_ = error;
      work_.clear();
    } else {
      work_.pop_front();
    }
    changed_.notify_all();
  }
}

}  // namespace saccade
