#pragma once
#include <functional>

#include "kernels/cuda/runtime.h"

namespace saccade::cuda {

/// Which of `count` versions of a piece of work is fastest, among those whose result equals version 0's bit for bit.
/// `run(version, output)` starts one on the stream and returns whether it could; it must write all `bytes` of `output` and
/// nothing else. Version 0 where there is no memory to try, or while the stream records a graph.
int fastest_of_equal(Stream stream, int count, int64_t bytes, const std::function<bool(int version, void* output)>& run);

}  // namespace saccade::cuda
