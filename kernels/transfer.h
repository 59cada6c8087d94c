#pragma once
#include <vector>

#include "kernels/arena.h"

namespace saccade {

/// Between a tensor on any device and plain (pageable) host memory of its size and type; copy_to_host waits for the device.
void copy_to_host(void* host, const Tensor& tensor);
void copy_from_host(const Tensor& tensor, const void* host);

/// All elements as doubles on the host, whatever the type (f32, f64, bf16, i32).
std::vector<double> to_doubles(const Tensor& tensor);
/// Values rounded to the tensor's type.
void from_doubles(const Tensor& tensor, const std::vector<double>& values);

/// to = from, rounded to the type of `to`; both on one device, f32 or bf16 each on a GPU, where it takes its place in the order of the
/// device's work. Nothing on `plan`.
void convert(const Tensor& to, const Tensor& from);

/// Until all work of a device is done.
void wait(Device device);
/// Every byte zero.
void fill_zero(const Tensor& tensor);
/// The tensor itself when it is on the CPU, else a copy of it in `host`, an arena on the CPU; bf16 becomes f32.
Tensor on_host(Arena& host, const Tensor& tensor);

}  // namespace saccade
