#pragma once
#include "kernels/engine/token_position.h"

namespace saccade::cuda {

/// A TokenPosition as a kernel argument.
struct StartPosition {
  int64_t first;
  const int32_t* on_device;
  bool differs;  ///< each sequence has its own
  /// Of sequence b.
  __device__ __forceinline__ int64_t operator()(int64_t b) const { return on_device ? on_device[differs ? b : 0] : first; }
};
inline StartPosition start_position(const TokenPosition& position) {
  return {position.first, position.on_device ? static_cast<const int32_t*>(position.on_device.raw()) : nullptr, position.differs()};
}

}  // namespace saccade::cuda
