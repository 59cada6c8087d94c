#pragma once
#include <memory>

#include "kernels/engine/tensor.h"

namespace saccade {

/// Fills a tensor repeatedly from CPU memory. On a GPU it has two buffers of pinned memory: one is filled while the other is still being
/// copied. On the CPU the tensor itself is filled; on `plan` there is nothing to fill.
class Staging {
 public:
  explicit Staging(const Tensor& tensor);
  ~Staging();
  Staging(Staging&&) noexcept;

  void* next();  ///< memory to fill, of the tensor's size and type; the same until it is sent. Null on `plan`
  void ahead();  ///< starts the copy to the GPU on a side stream; the tensor does not change before `send`
  void send();   ///< copies what was filled since the last `send` into the tensor, in stream order; nothing where nothing was filled

 private:
  struct Buffers;
  Tensor tensor_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace saccade
