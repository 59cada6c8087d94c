#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "kernels/engine/tensor.h"

namespace saccade {

/// One address range per device, allocated lowest-fit and freed as tensors are destroyed. The same sequence of requests yields the same
/// addresses, so a captured graph of a step can be replayed, and on `plan` the same bookkeeping runs on offsets alone: its peak is the peak
/// of the run.
///
/// Tensors keep the arena's state alive; one thread at a time may allocate.
class Arena {
 public:
  explicit Arena(Device device);

  Device device() const;
  /// Contents undefined (NaN with set_poison). Throws DeviceError when the range is exhausted.
  Tensor allocate(const Shape& shape, DType dtype);

  int64_t used() const;         ///< bytes in live tensors
  int64_t peak_used() const;    ///< most bytes in live tensors so far
  int64_t peak_extent() const;  ///< highest address used so far: what the device must provide
  void reset_peak();

  /// For tests: new memory is filled with NaN, so that reads before the first write show.
  static void set_poison(bool on);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace saccade
