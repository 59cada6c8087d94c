#pragma once
#include <stdexcept>
#include <string>

#include "kernels/engine/tensor.h"

namespace saccade {

namespace detail {
inline std::string text(const Tensor& x) { return x ? to_string(x.shape()) : "empty"; }
inline std::string text(const Shape& shape) { return to_string(shape); }
inline std::string text(DType dtype) { return to_string(dtype); }
inline std::string text(int64_t number) { return std::to_string(number); }
inline std::string text(const char* words) { return words; }
}  // namespace detail

/// Checks the arguments of an op: unless `ok`, throws std::invalid_argument "[linear] x is [2, 8], weight is [4, 9]". Tensors print as
/// their shape.
template <class... Parts>
void expect(bool ok, const char* op, const Parts&... parts) {
  if (!ok) throw std::invalid_argument(std::string("[") + op + "] " + (detail::text(parts) + ...));
}

}  // namespace saccade
