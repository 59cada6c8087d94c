#pragma once
#include "kernels/cuda/runtime.h"

namespace saccade::cuda {

/// While it lives, stream(device) of this thread is another one: so what a branch does is written as anywhere else.
class Redirect {
 public:
  Redirect(int device, Stream to);
  ~Redirect();
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;
};

}  // namespace saccade::cuda
