#include "kernels/engine/arena.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/cuda_separate_memory.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kPage = 64 << 10, kOpenedAtOnce = int64_t{64} << 20;  ///< the first is one page or several on every system
std::atomic<bool> poison{false};

int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

struct Arena::State {
  Device device;
  char* base = nullptr;
  int64_t capacity = 0;
  std::map<int64_t, int64_t> free;  ///< offset → bytes of every gap below `extent`
  int64_t extent = 0;               ///< everything at and above is untouched or free
  int64_t opened = 0;               ///< memory of the CPU, not address space alone, is what lies below
  int64_t used = 0, peak_used = 0, peak_extent = 0;
  std::mutex mutex;  ///< tensors may end on another thread
#ifdef SACCADE_CUDA
  std::unique_ptr<cuda::MemoryRange> gpu_range;
#endif

  explicit State(Device d) : device(d) {
    if (device.is_plan()) {
      capacity = INT64_MAX;
    } else if (device.is_cpu()) {
      // Address space only, of which `open_up` makes memory: a limit of the process' data then counts what is used, not what could be.
      capacity = cpu_memory().total / kPage * kPage;
      while (true) {
        void* p = mmap(nullptr, static_cast<size_t>(capacity), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED) {
          base = static_cast<char*>(p);
          madvise(base, static_cast<size_t>(capacity), MADV_HUGEPAGE);
          break;
        }
        capacity = capacity / 2 / kPage * kPage;
        if (capacity < (int64_t{1} << 20)) throw DeviceError("no memory: the system refuses to reserve address space");
      }
    } else {
#ifdef SACCADE_CUDA
      for (const cuda::Gpu& gpu : cuda::gpus())
        if (gpu.index == device.index) capacity = gpu.memory_total;
      gpu_range = std::make_unique<cuda::MemoryRange>(device.index, capacity);
      base = gpu_range->base();
      capacity = gpu_range->capacity();
#else
      throw DeviceError("device " + to_string(device) + ": this build has no CUDA engine");
#endif
    }
  }
  ~State() {
    if (base && device.is_cpu()) munmap(base, static_cast<size_t>(capacity));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Memory below `end`, of the CPU. False when the system refuses it.
  bool open_up(int64_t end) {
    if (!device.is_cpu() || end <= opened) return true;
    for (const int64_t step : {kOpenedAtOnce, kPage}) {
      const int64_t upto = std::min((end + step - 1) / step * step, capacity);
      if (mprotect(base + opened, static_cast<size_t>(upto - opened), PROT_READ | PROT_WRITE) != 0) continue;
      opened = upto;
      return true;
    }
    return false;
  }

  int64_t take(int64_t bytes) {
    std::lock_guard lock(mutex);
    used += bytes;
    peak_used = std::max(peak_used, used);
    for (auto gap = free.begin(); gap != free.end(); ++gap) {
      if (gap->second < bytes) continue;
      const auto [offset, size] = *gap;
      free.erase(gap);
      if (size > bytes) free.emplace(offset + bytes, size - bytes);
      return offset;
    }
    if (bytes > capacity - extent || !open_up(extent + bytes)) {
      used -= bytes;
      throw DeviceError("out of memory on " + to_string(device) + ": " + std::to_string(bytes >> 20) + " MiB more than " +
                        std::to_string(extent >> 20) + " MiB in use do not fit in " +
                        (bytes > capacity - extent ? std::to_string(capacity >> 20) + " MiB" : "what the system allows this process") +
                        "; set activation_checkpointing, reduce batch_tokens, sequence_length or width");
    }
    const int64_t offset = extent;
#ifdef SACCADE_CUDA
    if (gpu_range) gpu_range->ensure(extent + bytes);
#endif
    extent += bytes;
    peak_extent = std::max(peak_extent, extent);
    return offset;
  }

  void fill_with_nan(void* data, int64_t bytes) const {
    constexpr int kNaN = 0xff;  // in every byte: NaN in every floating type
#ifdef SACCADE_CUDA
    if (device.is_cuda()) return cuda::fill_bytes(cuda::stream(device.index), data, kNaN, bytes);
#endif
    std::memset(data, kNaN, static_cast<size_t>(bytes));
  }

  void give_back(int64_t offset, int64_t bytes) {
    std::lock_guard lock(mutex);
    used -= bytes;
    auto [gap, inserted] = free.emplace(offset, bytes);
    if (auto next = std::next(gap); next != free.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      free.erase(next);
    }
    if (gap != free.begin()) {
      if (auto previous = std::prev(gap); previous->first + previous->second == gap->first) {
        previous->second += gap->second;
        free.erase(gap);
        gap = previous;
      }
    }
    if (gap->first + gap->second == extent) {
      extent = gap->first;
      free.erase(gap);
    }
  }
};

Arena::Arena(Device device) : state_(std::make_shared<State>(device)) {}

Device Arena::device() const { return state_->device; }
int64_t Arena::used() const { return state_->used; }
int64_t Arena::peak_used() const { return state_->peak_used; }
int64_t Arena::peak_extent() const { return state_->peak_extent; }
void Arena::reset_peak() {
  state_->peak_used = state_->used;
  state_->peak_extent = state_->extent;
}
void Arena::set_poison(bool on) { poison = on; }

Tensor Arena::allocate(const Shape& shape, DType dtype) {
  const int64_t wanted = shape.size() * byte_size(dtype);
  const int64_t bytes = std::max(kAlignment, align(wanted));
  const int64_t offset = state_->take(bytes);
  auto storage = std::make_shared<Storage>();
  storage->device = state_->device;
  storage->bytes = wanted;
#ifdef SACCADE_CUDA
  if (state_->device.is_cuda() && cuda::separate_memory()) {
    storage->data = cuda::allocate_separately(state_->device.index, std::max<int64_t>(wanted, 1));
    storage->owner = std::shared_ptr<void>(storage->data, [state = state_, offset, bytes](void* data) {
      cuda::free_separately(state->device.index, data);
      state->give_back(offset, bytes);
    });
    return Tensor(std::move(storage), shape, dtype);
  }
#endif
  if (state_->base) {
    storage->data = state_->base + offset;
    if (poison) state_->fill_with_nan(storage->data, bytes);
  }
  storage->owner = std::shared_ptr<void>(storage->data, [state = state_, offset, bytes](void*) { state->give_back(offset, bytes); });
  return Tensor(std::move(storage), shape, dtype);
}

}  // namespace saccade
