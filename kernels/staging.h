#pragma once
#include <memory>

#include "kernels/tensor.h"

namespace saccade {

/// Fills a tensor again and again from the host. On a GPU there are two buffers of pinned memory in turn: one is filled while
/// the other is still being copied. On the CPU the tensor itself is filled; on `plan` there is nothing to fill.
class Staging {
 public:
  explicit Staging(const Tensor& tensor);
  ~Staging();
  Staging(Staging&&) noexcept;

  void* next();  ///< memory to fill, of the tensor's size and type; the same until it is sent. Null on `plan`
  void ahead();  ///< starts carrying what was filled to the GPU, beside its work; the tensor stays as it is until `send`
  void send();   ///< puts what was filled since the last time into the tensor, in the order of the device's work; else nothing

 private:
  struct Buffers;
  Tensor tensor_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace saccade
