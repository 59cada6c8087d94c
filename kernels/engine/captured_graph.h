#pragma once
#include <functional>
#include <memory>

#include "kernels/engine/device.h"

namespace saccade::cuda {

/// Work that is the same every time, on the same memory, as a captured graph. On a GPU the first call runs it plainly (which prepares
/// products, tables and memory), the second one captures a CUDA graph, and later ones replay the graph. Elsewhere every call runs it. The
/// host code of the work runs in the first two calls only.
class CapturedGraph {
 public:
  CapturedGraph();
  ~CapturedGraph();
  CapturedGraph(CapturedGraph&&) noexcept;
  void operator()(Device device, const std::function<void()>& work);

  /// Off: every call of every object runs plainly (profiles, debugging). On by default.
  static void set_enabled(bool on);

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
  [[maybe_unused]] int runs_ = 0;  ///< unused in a build without CUDA
};

}  // namespace saccade::cuda
