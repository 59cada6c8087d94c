#pragma once
#include "kernels/engine/cuda_runtime.h"

namespace saccade::cuda {

/// While it lives, stream(device) of this thread is another stream, so that code of a side stream is written as any other.
class Redirect {
 public:
  Redirect(int device, Stream to);
  ~Redirect();
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;
};

}  // namespace saccade::cuda
