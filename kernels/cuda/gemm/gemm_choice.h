#pragma once
#include <functional>
#include <optional>

#include "kernels/engine/cuda_runtime.h"

namespace saccade::cuda {

/// Index of the fastest of `count` versions of a kernel, among those whose result equals version 0's bit for bit.
/// `run(version, output)` starts one on the stream and returns whether it could; it must write all `bytes` of `output` and
/// nothing else. Nothing where there is no memory for a trial, or during graph capture.
std::optional<int> fastest_of_equal(Stream stream, int count, int64_t bytes, const std::function<bool(int version, void* output)>& run);

}  // namespace saccade::cuda
