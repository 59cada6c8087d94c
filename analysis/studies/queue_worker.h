#pragma once
#include <atomic>
#include <memory>

#include "analysis/studies/queue.h"

namespace saccade {

/// Works a queue off: starts the runs of its entries in their order, as processes of their own (`program` train, resume), several at a
/// time where the queue's jobs and the device's memory allow, until nothing is left, the queue is paused, or `stop`. Runs go on when this
/// ends, however it ends; whoever works the queue next finds them by their locks and starts none of them again. Returns at once when
/// another process works it. A study may stand in the queues of several devices: each of its runs is begun by one of their workers, on its
/// device (claim_log).
class QueueWorker {
 public:
  /// `by_pace`: also on the CPU, kJobsAsPays goes by what runs make together.
  QueueWorker(DeviceQueue queue, std::filesystem::path program, std::function<void(const std::string&)> say, bool by_pace = false);
  ~QueueWorker();
  void work(const std::atomic<bool>& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade
