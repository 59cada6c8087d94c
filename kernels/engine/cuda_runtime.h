#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/device.h"

struct CUstream_st;

/// The CUDA runtime as the rest of the program sees it; no CUDA header is needed to include this. In a build without CUDA
/// (SACCADE_CUDA undefined) only `gpus` and `cudnn_version` are defined, and say so; nothing else is called (Tape::run).
namespace saccade::cuda {

using Stream = CUstream_st*;

using saccade::Gpu;

/// See saccade::gpus.
std::vector<Gpu> gpus(std::string* why_none = nullptr);

/// Version of the loaded cuDNN, such as "9.14.0"; empty with a reason where there is none.
std::string cudnn_version(std::string* why_none = nullptr);

/// The one stream of a device, in program order (but for side streams, cuda_side_stream.h).
Stream stream(int index);
void synchronize(int index);

/// A reserved address range whose beginning is backed by memory and grows in place: addresses never change.
class MemoryRange {
 public:
  MemoryRange(int index, int64_t capacity);
  ~MemoryRange();
  MemoryRange(const MemoryRange&) = delete;
  MemoryRange& operator=(const MemoryRange&) = delete;
  char* base() const;
  int64_t capacity() const;
  /// Backs [0, bytes) with memory; throws DeviceError with the numbers where the GPU has too little.
  void ensure(int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void copy_to_device(int index, void* device, const void* host, int64_t bytes);  ///< host: pageable CPU memory, may change afterwards
void copy_to_host(int index, void* host, const void* device, int64_t bytes);    ///< waits for the stream
void copy_on_device(Stream stream, void* to, const void* from, int64_t bytes);
void fill_bytes(Stream stream, void* device, int value, int64_t bytes);

}  // namespace saccade::cuda
