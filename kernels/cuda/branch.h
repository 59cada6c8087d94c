#pragma once
#include <functional>
#include <memory>

#include "kernels/cuda/runtime.h"

namespace saccade::cuda {

/// Work that goes on beside a device's stream: after what the stream holds when it starts, before what follows `join`. In a
/// recorded step it is a branch of the graph. Whoever starts one keeps what it reads and writes alive until `join`.
class Branch {
 public:
  Branch();
  ~Branch();  ///< joins
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  /// While the work is begun, stream(device) is the one it is given. All branches of a device share a stream, in order.
  void start(int device, const std::function<void(Stream)>& work);
  /// The device's stream waits for it. Nothing where nothing was started.
  void join();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace saccade::cuda
