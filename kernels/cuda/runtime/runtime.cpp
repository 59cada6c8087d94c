#include "kernels/engine/cuda_runtime.h"

#ifdef SACCADE_CUDA
#include <cuda.h>
#include <cuda_runtime.h>

#include <map>
#include <mutex>

#include "kernels/cuda/runtime/check.h"
#include "kernels/cuda/runtime/cublas.h"
#include "kernels/cuda/runtime/nvml.h"
#include "kernels/cuda/runtime/redirect.h"
#endif

namespace saccade::cuda {

#ifndef SACCADE_CUDA

std::vector<Gpu> gpus(std::string* why_none) {
  if (why_none) *why_none = "this build has no CUDA engine";
  return {};
}

#else
namespace {

/// The driver's functions, found at run time so that the program starts on machines without a driver.
template <class F>
F driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) throw DeviceError(std::string("CUDA: the driver has no ") + name);
  return reinterpret_cast<F>(function);
}

void check_driver(CUresult status, const char* what) {
  if (status != CUDA_SUCCESS) throw DeviceError(std::string("CUDA: ") + what + " failed with driver error " + std::to_string(status));
}

constexpr int64_t kGrowth = int64_t{64} << 20;

int64_t free_memory(int index) {
  char bus_id[32] = "";
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) == cudaSuccess)
    if (const std::optional<int64_t> bytes = nvml_free_memory(bus_id)) return *bytes;
  int current = 0;
  (void)cudaGetDevice(&current);
  size_t free = 0, total = 0;
  const bool known = cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess;
  (void)cudaSetDevice(current);
  return known ? static_cast<int64_t>(free) : 0;
}

/// What does not change while a process lives; the runtime takes 20 ms to tell it.
struct KnownGpus {
  std::vector<Gpu> usable;
  std::string refused;  ///< names of the others

  explicit KnownGpus(int count) {
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp p{};
      if (cudaGetDeviceProperties(&p, i) != cudaSuccess) continue;
      if (p.major >= 8)
        usable.push_back({i, p.name, p.major, p.minor, p.multiProcessorCount, static_cast<int64_t>(p.totalGlobalMem), 0});
      else
        refused += std::string(refused.empty() ? "" : ", ") + p.name + " (compute capability " + std::to_string(p.major) + "." +
                   std::to_string(p.minor) + ")";
    }
  }
};

}  // namespace

std::vector<Gpu> gpus(std::string* why_none) {
  std::vector<Gpu> list;
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    (void)cudaGetLastError();
    if (why_none)
      *why_none = status == cudaErrorInsufficientDriver
                      ? "the NVIDIA driver is missing or too old for CUDA " + std::to_string(CUDART_VERSION / 1000) + "." +
                            std::to_string(CUDART_VERSION / 10 % 100)
                      : std::string("no usable GPU: ") + cudaGetErrorString(status);
    return list;
  }
  static const KnownGpus known(count);
  for (const Gpu& gpu : known.usable) {
    list.push_back(gpu);
    list.back().memory_free = free_memory(gpu.index);
  }
  const std::string& refused = known.refused;
  if (list.empty() && why_none) *why_none = refused.empty() ? "no GPU" : "no supported GPU (8.0 and up are): " + refused;
  if (!list.empty())
    if (const std::string problem = cublas_problem(); !problem.empty()) {
      if (why_none) *why_none = problem;
      return {};
    }
  return list;
}

namespace {
thread_local int redirected = -1;
thread_local Stream redirected_to = nullptr;
}  // namespace

Redirect::Redirect(int device, Stream to) { redirected = device, redirected_to = to; }
Redirect::~Redirect() { redirected = -1; }

Stream stream(int index) {
  if (index == redirected) return redirected_to;
  static std::mutex mutex;
  static std::map<int, cudaStream_t> streams;
  std::lock_guard lock(mutex);
  check(cudaSetDevice(index));
  cudaStream_t& s = streams[index];
  if (!s) check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

void synchronize(int index) {
  stream(index);  // makes the device current
  check(cudaDeviceSynchronize());
}

struct MemoryRange::State {
  int index = 0;
  int64_t capacity = 0, backed = 0;
  CUdeviceptr base = 0;
  std::vector<std::pair<CUmemGenericAllocationHandle, int64_t> > pieces;
  CUmemAllocationProp properties{};
};

MemoryRange::MemoryRange(int index, int64_t capacity) : state_(std::make_unique<State>()) {
  stream(index);  // makes the context
  State& s = *state_;
  s.index = index;
  s.capacity = (capacity + kGrowth - 1) / kGrowth * kGrowth;
  s.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  s.properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  s.properties.location.id = index;
  static const auto reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  check_driver(reserve(&s.base, static_cast<size_t>(s.capacity), 0, 0, 0), "reserving addresses");
}

MemoryRange::~MemoryRange() {
  State& s = *state_;
  static const auto unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  static const auto release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  static const auto free_addresses = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  (void)cudaStreamSynchronize(stream(s.index));
  CUdeviceptr at = s.base;
  for (auto& [handle, bytes] : s.pieces) {
    unmap(at, static_cast<size_t>(bytes));
    release(handle);
    at += static_cast<CUdeviceptr>(bytes);
  }
  free_addresses(s.base, static_cast<size_t>(s.capacity));
}

char* MemoryRange::base() const { return reinterpret_cast<char*>(state_->base); }
int64_t MemoryRange::capacity() const { return state_->capacity; }

void MemoryRange::ensure(int64_t bytes) {
  State& s = *state_;
  if (bytes <= s.backed) return;
  static const auto create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  static const auto map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  static const auto set_access = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  const int64_t piece = (bytes - s.backed + kGrowth - 1) / kGrowth * kGrowth;
  CUmemGenericAllocationHandle handle = 0;
  if (s.backed + piece > s.capacity || create(&handle, static_cast<size_t>(piece), &s.properties, 0) != CUDA_SUCCESS) {
    size_t free = 0, total = 0;
    (void)cudaMemGetInfo(&free, &total);
    throw DeviceError(
        "out of memory on cuda:" + std::to_string(s.index) + ": " + std::to_string((s.backed + piece) >> 20) + " MiB wanted, " +
        std::to_string(free >> 20) + " of " + std::to_string(total >> 20) +
        " MiB free; set activation_checkpointing, reduce batch_tokens (or raise gradient_accumulation), sequence_length or width");
  }
  const CUdeviceptr at = s.base + static_cast<CUdeviceptr>(s.backed);
  check_driver(map(at, static_cast<size_t>(piece), 0, handle, 0), "mapping memory");
  const CUmemAccessDesc access{s.properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check_driver(set_access(at, static_cast<size_t>(piece), &access, 1), "setting memory access");
  s.pieces.emplace_back(handle, piece);
  s.backed += piece;
}

void copy_to_device(int index, void* device, const void* host, int64_t bytes) {
  check(cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream(index)));
  cudaPointerAttributes from{};
  check(cudaPointerGetAttributes(&from, host));
  if (from.type != cudaMemoryTypeUnregistered) check(cudaStreamSynchronize(stream(index)));  // locked memory is read where it is
}

void copy_to_host(int index, void* host, const void* device, int64_t bytes) {
  check(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream(index)));
  synchronize(index);
}

void copy_on_device(Stream s, void* to, const void* from, int64_t bytes) {
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, s));
}

void fill_bytes(Stream s, void* device, int value, int64_t bytes) { check(cudaMemsetAsync(device, value, static_cast<size_t>(bytes), s)); }

#endif

}  // namespace saccade::cuda
