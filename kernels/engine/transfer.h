#pragma once
#include <vector>

#include "kernels/engine/arena.h"

namespace saccade {

/// Copies between a tensor on any device and CPU memory of its size and dtype; copy_to_host waits for the device. Where copy_from_host is
/// given memory whose pages are locked (kernels/engine/host_copies.h) it waits too.
void copy_to_host(void* host, const Tensor& tensor);
void copy_from_host(const Tensor& tensor, const void* host);

/// All elements as doubles in CPU memory, whatever the dtype (f32, f64, bf16, i32).
std::vector<double> to_doubles(const Tensor& tensor);
/// Writes values rounded to the tensor's dtype. Throws std::logic_error where the sizes differ.
void from_doubles(const Tensor& tensor, const std::vector<double>& values);

/// to = from, rounded to the dtype of `to`; both on one device, f32 or bf16 each on a GPU, where it takes its place in the order of the
/// device's work. Nothing on `plan`.
void convert(const Tensor& to, const Tensor& from);

/// Waits until all work of a device is done.
void wait(Device device);
/// Sets every byte to zero.
void fill_zero(const Tensor& tensor);
/// The tensor itself when it is on the CPU, else a copy in `host`, an arena on the CPU; bf16 becomes f32.
Tensor on_host(Arena& host, const Tensor& tensor);

}  // namespace saccade
