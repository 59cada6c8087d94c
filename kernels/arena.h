#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "kernels/tensor.h"

namespace saccade {

/// One address range per device, handed out lowest-fit and taken back as tensors end. The same sequence of requests
/// yields the same addresses, so a step that was run once can be replayed (CUDA Graph), and on `plan` the very same
/// bookkeeping runs on offsets alone: its peak is the peak of the run.
///
/// Tensors keep the arena's state alive; one thread at a time may allocate.
class Arena {
 public:
  explicit Arena(Device device);

  Device device() const;
  /// Contents undefined (NaN when poisoning). Throws DeviceError when the range is exhausted.
  Tensor allocate(const Shape& shape, DType dtype);

  int64_t used() const;         ///< bytes in live tensors
  int64_t peak_used() const;    ///< most bytes in live tensors so far
  int64_t peak_extent() const;  ///< highest address used so far: what the device must provide
  void reset_peak();

  /// Tests fill fresh memory with NaN bytes so that reading what nobody wrote shows.
  static void set_poison(bool on);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace saccade
