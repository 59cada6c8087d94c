#include "kernels/engine/host_copies.h"

#include <stdexcept>

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <system_error>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_runtime.h"
#endif

namespace saccade {

#ifdef SACCADE_CUDA
namespace {

constexpr int64_t kPage = 4096, kHugePage = int64_t{2} << 20, kBlock = int64_t{4} << 20;

int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

/// Memory for several copies, one behind the other; free again when all of them have ended.
struct HostCopies::Block {
  int gpu;
  int64_t bytes;
  char* data = nullptr;
  bool locked = false;
  int64_t next = 0;
  std::atomic<int64_t> copies{0};  ///< that have not ended

  Block(int index, int64_t wanted) : gpu(index), bytes(round_up(wanted, kHugePage)) {
    cuda::stream(gpu);  // makes the device current
    void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw DeviceError("no memory on the CPU for " + std::to_string(bytes >> 20) + " MiB of copies from " + to_string(Device::cuda(gpu)));
    data = static_cast<char*>(memory);
    madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    madvise(memory, static_cast<size_t>(bytes), MADV_DONTFORK);  // locked pages would be copied for a process that only starts another
    for (int64_t at = 0; at < bytes; at += kPage) data[at] = 0;  // pages that are there are locked sooner: the driver holds others up then
    locked = cudaHostRegister(data, static_cast<size_t>(bytes), cudaHostRegisterPortable) == cudaSuccess;
    if (!locked) (void)cudaGetLastError();
  }
  ~Block() {
    if (locked && cudaSetDevice(gpu) == cudaSuccess) (void)cudaHostUnregister(data);
    munmap(data, static_cast<size_t>(bytes));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  bool ended() const { return copies.load(std::memory_order_acquire) == 0; }
};

HostCopies::HostCopies(Device gpu, int64_t most_bytes) : gpu_(gpu), most_bytes_(most_bytes) {
  if (!gpu.is_cuda()) throw std::logic_error("copies from " + to_string(gpu) + ", which is no GPU");
}

void HostCopies::reserve(int64_t bytes) try {
  if (bytes <= 0 || reserved_.valid() || !blocks_.empty()) return;
  reserved_ = std::async(std::launch::async, [gpu = gpu_.index, bytes] { return std::make_shared<Block>(gpu, bytes); });
} catch (const std::system_error&) {  // no thread can be started: memory is made when it is needed
}

void HostCopies::take_reserved() {
  if (!reserved_.valid()) return;
  try {
    blocks_.push_back(reserved_.get());
  } catch (const std::exception&) {  // not all of it is to be had; whoever needs some makes it
  }
}

bool HostCopies::has_room(int64_t bytes) {
  take_reserved();
  int64_t held = bytes;
  for (const auto& block : blocks_) held += block->ended() ? 0 : block->next;
  return held <= most_bytes_;
}

/// The current block, else the smallest of those that are free and large enough, else a new one.
HostCopies::Block& HostCopies::block_with(int64_t bytes) {
  take_reserved();
  if (current_ && current_->ended()) current_->next = 0;
  if (current_ && current_->next + bytes <= current_->bytes) return *current_;
  std::shared_ptr<Block> free;
  for (const auto& block : blocks_)
    if (block->ended() && bytes <= block->bytes && (!free || block->bytes < free->bytes)) free = block;
  if (!free) blocks_.push_back(free = std::make_shared<Block>(gpu_.index, std::max(bytes, kBlock)));
  free->next = 0;
  current_ = free;
  return *current_;
}

Tensor HostCopies::begin(const Tensor& tensor) {
  if (tensor.device() != gpu_) throw std::logic_error("a copy of a tensor on " + to_string(tensor.device()) + " from " + to_string(gpu_));
  const int64_t bytes = bytes_of(tensor);
  Block& block = block_with(bytes);
  auto storage = std::make_shared<Storage>();
  storage->device = Device::cpu();
  storage->data = block.data + block.next;
  storage->bytes = tensor.bytes();
  ++block.copies;
  storage->owner = std::shared_ptr<void>(storage->data, [held = current_](void*) { held->copies.fetch_sub(1, std::memory_order_release); });
  block.next += bytes;
  cuda::check(
      cudaMemcpyAsync(storage->data, tensor.raw(), static_cast<size_t>(tensor.bytes()), cudaMemcpyDeviceToHost, cuda::stream(gpu_.index)));
  return {std::move(storage), tensor.shape(), tensor.dtype()};
}

/// On any thread: the device is made current first, since CUDA would otherwise begin to use the first one.
struct HostCopies::Mark::Event {
  int gpu;
  cudaEvent_t event = nullptr;

  explicit Event(int index) : gpu(index) {
    cuda::Stream stream = cuda::stream(gpu);
    cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cuda::check(cudaEventRecord(event, stream));
  }
  ~Event() {
    if (cudaSetDevice(gpu) == cudaSuccess) (void)cudaEventDestroy(event);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

HostCopies::Mark HostCopies::mark() {
  Mark mark;
  mark.event_ = std::make_shared<const Mark::Event>(gpu_.index);
  return mark;
}

void HostCopies::Mark::wait() const {
  if (!event_) return;
  cuda::check(cudaSetDevice(event_->gpu));
  cuda::check(cudaEventSynchronize(event_->event));
}

/// The GPU may still be writing into memory whose tensors have ended.
HostCopies::~HostCopies() {
  take_reserved();
  if (!blocks_.empty() && cudaSetDevice(gpu_.index) == cudaSuccess) (void)cudaDeviceSynchronize();
}

#else

struct HostCopies::Block {};
struct HostCopies::Mark::Event {};
HostCopies::HostCopies(Device gpu, int64_t most_bytes) : gpu_(gpu), most_bytes_(most_bytes) {
  throw std::logic_error("copies from " + to_string(gpu) + ": this build has no CUDA engine");
}
HostCopies::~HostCopies() = default;
void HostCopies::reserve(int64_t) {}
bool HostCopies::has_room(int64_t) { return false; }
Tensor HostCopies::begin(const Tensor& tensor) { return tensor; }
HostCopies::Mark HostCopies::mark() { return {}; }
void HostCopies::Mark::wait() const {}

#endif

}  // namespace saccade
