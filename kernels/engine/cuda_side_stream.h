#pragma once
#include <functional>
#include <memory>

#include "kernels/engine/cuda_runtime.h"

namespace saccade::cuda {

/// Work on a side stream: after the work that the device's stream holds when it starts, before the work that follows `join`. In a captured
/// graph it is a branch. The caller keeps the tensors that it reads and writes alive until `join`.
class SideWork {
 public:
  SideWork();
  ~SideWork();  ///< joins
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;

  /// While `work` runs on the host, stream(device) is the side stream. All branches of a device share one side stream, in order.
  void start(int device, const std::function<void(Stream)>& work);
  /// The device's stream waits for the work. Does nothing where none was started.
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace saccade::cuda
