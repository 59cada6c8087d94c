#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/engine/cuda_runtime.h"

namespace saccade::test {

/// The GPU to test on. Without one the program says why and ends with 77, which ctest counts as skipped.
inline cuda::Gpu first_gpu() {
  std::string why_none;
  const std::vector<cuda::Gpu> gpus = cuda::gpus(&why_none);
  if (!gpus.empty()) return gpus.front();
  std::printf("SKIPPED: %s\n", why_none.c_str());
  std::exit(77);
}

}  // namespace saccade::test
