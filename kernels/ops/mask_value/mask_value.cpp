#include "kernels/ops/mask_value/mask_value.h"

#include <algorithm>

namespace saccade {

Tensor mask_value(Tape& tape, const Tensor& v, int64_t head, int64_t token) {
  if (head < 0 || head >= v.dim(2) || token < 0 || token >= v.dim(1))
    throw UsageError("[mask_value] has no token " + std::to_string(token) + " of head " + std::to_string(head));
  const Tensor masked = tape.empty(v.shape(), v.dtype());
  tape.run("mask_value", {0, 2 * static_cast<double>(v.bytes())}, [&] {
    dispatch(v.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::copy_n(v.data<T>(), v.size(), masked.data<T>());
      std::fill_n(masked.data<T>() + (token * v.dim(2) + head) * v.dim(3), v.dim(3), T(0));
    });
  });
  return masked;
}

}  // namespace saccade
