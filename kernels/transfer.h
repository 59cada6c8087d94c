#pragma once
#include "kernels/tensor.h"

namespace saccade {

/// Between a tensor on any device and plain host memory of the tensor's size and type. Waits for the device.
void copy_to_host(void* host, const Tensor& tensor);
void copy_from_host(const Tensor& tensor, const void* host);

/// All elements as doubles on the host, whatever the type (f32, f64, bf16, i32).
std::vector<double> to_doubles(const Tensor& tensor);
/// Values rounded to the tensor's type.
void from_doubles(const Tensor& tensor, const std::vector<double>& values);

}  // namespace saccade
