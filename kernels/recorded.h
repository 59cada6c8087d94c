#pragma once
#include <functional>
#include <memory>

#include "kernels/device.h"

namespace saccade::cuda {

/// Work that is the same every time, on the same memory. On a GPU it runs as it is the first time (which prepares products,
/// tables and memory), is recorded into a CUDA graph the second time, and is only replayed from then on. Elsewhere it always
/// runs. What the work does on the host is done the first two times only.
class Recorded {
 public:
  Recorded();
  ~Recorded();
  Recorded(Recorded&&) noexcept;
  void operator()(Device device, const std::function<void()>& work);

  /// Off: everything runs plainly, everywhere (profiles, looking for errors). On at start.
  static void set_enabled(bool on);

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
  [[maybe_unused]] int runs_ = 0;  ///< a build without CUDA never counts
};

}  // namespace saccade::cuda
