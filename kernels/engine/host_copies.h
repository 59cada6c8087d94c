#pragma once
#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "kernels/engine/tensor.h"

namespace saccade {

/// Copies of a GPU's tensors on the CPU. The GPU makes them in the order of its work while the program goes on, in memory whose pages are
/// locked so that it writes there by itself; where the system locks none, the driver carries them, which takes longer and keeps the program
/// waiting. Memory is kept for later copies when the tensors on it have ended.
///
/// One thread at a time may call this; tensors and marks may be used, and may end, on any thread and after it.
class HostCopies {
 public:
  /// `most_bytes`: what `has_room` goes by.
  explicit HostCopies(Device gpu, int64_t most_bytes = INT64_MAX);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  /// Has another thread make memory for the first `bytes` of copies, since locking pages takes time; the first copy waits for it. Where
  /// that fails memory is made when it is needed.
  void reserve(int64_t bytes);
  /// What a copy takes of it.
  static int64_t bytes_of(const Tensor& tensor) {
    return (std::max<int64_t>(tensor.bytes(), 1) + kAlignment - 1) / kAlignment * kAlignment;
  }
  /// Whether so many bytes more are within what may be held.
  bool has_room(int64_t bytes);

  /// Begins to copy a tensor of the GPU, which may change or end by later work of the device. The copy, of the same type, may be read
  /// behind a mark that was made after this. Throws DeviceError where there is no memory.
  Tensor begin(const Tensor& tensor);

  /// A place in the order of the GPU's work.
  class Mark {
   public:
    Mark() = default;
    void wait() const;  ///< until the GPU has come there; at once where there was no GPU

   private:
    friend class HostCopies;
    struct Event;
    std::shared_ptr<const Event> event_;
  };
  Mark mark();

 private:
  static constexpr int64_t kAlignment = 256;
  struct Block;
  Block& block_with(int64_t bytes);
  void take_reserved();

  Device gpu_;
  [[maybe_unused]] int64_t most_bytes_;  ///< unused in a build without CUDA
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Block> current_;
  std::future<std::shared_ptr<Block>> reserved_;
};

}  // namespace saccade
