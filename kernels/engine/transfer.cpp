#include "kernels/engine/transfer.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "kernels/engine/cuda_basic.h"
#include "kernels/engine/cuda_runtime.h"

namespace saccade {
namespace {

float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// Round to nearest, ties to even; NaN stays NaN.
uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T, class F>
void each(const Tensor& tensor, std::vector<char>& bytes, F&& f) {
  T* data = reinterpret_cast<T*>(bytes.data());
  for (int64_t i = 0; i < tensor.size(); ++i) f(data[i], static_cast<size_t>(i));
}

}  // namespace

void copy_to_host(void* host, const Tensor& tensor) {
#ifdef SACCADE_CUDA
  if (tensor.device().is_cuda()) return cuda::copy_to_host(tensor.device().index, host, tensor.raw(), tensor.bytes());
#endif
  std::memcpy(host, tensor.raw(), static_cast<size_t>(tensor.bytes()));
}

void copy_from_host(const Tensor& tensor, const void* host) {
#ifdef SACCADE_CUDA
  if (tensor.device().is_cuda()) return cuda::copy_to_device(tensor.device().index, tensor.raw(), host, tensor.bytes());
#endif
  std::memcpy(tensor.raw(), host, static_cast<size_t>(tensor.bytes()));
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
  copy_to_host(bytes.data(), tensor);
  std::vector<double> values(static_cast<size_t>(tensor.size()));
  switch (tensor.dtype()) {
    case DType::f32: each<float>(tensor, bytes, [&](float x, size_t i) { values[i] = static_cast<double>(x); }); break;
    case DType::f64: each<double>(tensor, bytes, [&](double x, size_t i) { values[i] = x; }); break;
    case DType::i32: each<int32_t>(tensor, bytes, [&](int32_t x, size_t i) { values[i] = x; }); break;
    case DType::bf16: each<uint16_t>(tensor, bytes, [&](uint16_t x, size_t i) { values[i] = static_cast<double>(from_bf16(x)); }); break;
  }
  return values;
}

void from_doubles(const Tensor& tensor, const std::vector<double>& values) {
  if (static_cast<int64_t>(values.size()) != tensor.size()) throw std::logic_error("from_doubles: sizes differ");
  std::vector<char> bytes(static_cast<size_t>(tensor.bytes()));
  switch (tensor.dtype()) {
    case DType::f32: each<float>(tensor, bytes, [&](float& x, size_t i) { x = static_cast<float>(values[i]); }); break;
    case DType::f64: each<double>(tensor, bytes, [&](double& x, size_t i) { x = values[i]; }); break;
    case DType::i32: each<int32_t>(tensor, bytes, [&](int32_t& x, size_t i) { x = static_cast<int32_t>(values[i]); }); break;
    case DType::bf16: each<uint16_t>(tensor, bytes, [&](uint16_t& x, size_t i) { x = to_bf16(static_cast<float>(values[i])); }); break;
  }
  copy_from_host(tensor, bytes.data());
}

void convert(const Tensor& to, const Tensor& from) {
#ifdef SACCADE_CUDA
  if (to.device().is_cuda()) return cuda::convert(cuda::stream(to.device().index), to, from);
#endif
  if (!to.device().is_plan()) from_doubles(to, to_doubles(from));
}

void wait([[maybe_unused]] Device device) {
#ifdef SACCADE_CUDA
  if (device.is_cuda()) cuda::synchronize(device.index);
#endif
}

void fill_zero(const Tensor& tensor) {
#ifdef SACCADE_CUDA
  if (tensor.device().is_cuda()) return cuda::fill_bytes(cuda::stream(tensor.device().index), tensor.raw(), 0, tensor.bytes());
#endif
  if (tensor.raw()) std::memset(tensor.raw(), 0, static_cast<size_t>(tensor.bytes()));
}

Tensor on_host(Arena& host, const Tensor& tensor) {
  if (!tensor || tensor.device().is_cpu()) return tensor;
  const Tensor copy = host.allocate(tensor.shape(), accumulation_dtype(tensor.dtype()));
  if (copy.dtype() == tensor.dtype())
    copy_to_host(copy.raw(), tensor);
  else
    from_doubles(copy, to_doubles(tensor));
  return copy;
}

}  // namespace saccade
