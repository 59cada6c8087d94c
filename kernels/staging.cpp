#include "kernels/staging.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>

#include "kernels/cuda/check.h"
#include "kernels/cuda/runtime.h"
#endif

namespace saccade {

#ifdef SACCADE_CUDA

struct Staging::Buffers {
  void* host[2] = {};
  cudaEvent_t copied[2] = {};
  int turn = 0;
  bool filled = false;

  explicit Buffers(int64_t bytes) {
    for (int i = 0; i < 2; ++i) {
      cuda::check(cudaMallocHost(&host[i], static_cast<size_t>(bytes)));
      cuda::check(cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming));
    }
  }
  ~Buffers() {
    for (int i = 0; i < 2; ++i) {
      (void)cudaEventSynchronize(copied[i]);
      (void)cudaEventDestroy(copied[i]);
      (void)cudaFreeHost(host[i]);
    }
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
};

Staging::Staging(const Tensor& tensor) : tensor_(tensor) {
  if (!tensor.device().is_cuda()) return;
  cuda::stream(tensor.device().index);  // makes the device current
  buffers_ = std::make_unique<Buffers>(tensor.bytes());
}

void* Staging::next() {
  if (!buffers_) return tensor_.raw();
  cuda::check(cudaEventSynchronize(buffers_->copied[buffers_->turn]));
  buffers_->filled = true;
  return buffers_->host[buffers_->turn];
}

void Staging::send() {
  if (!buffers_ || !buffers_->filled) return;
  cuda::Stream stream = cuda::stream(tensor_.device().index);
  const int turn = buffers_->turn;
  cuda::check(cudaMemcpyAsync(tensor_.raw(), buffers_->host[turn], static_cast<size_t>(tensor_.bytes()), cudaMemcpyHostToDevice, stream));
  cuda::check(cudaEventRecord(buffers_->copied[turn], stream));
  buffers_->turn = 1 - turn;
  buffers_->filled = false;
}

#else

struct Staging::Buffers {};
Staging::Staging(const Tensor& tensor) : tensor_(tensor) {}
void* Staging::next() { return tensor_.raw(); }
void Staging::send() {}

#endif

Staging::~Staging() = default;
Staging::Staging(Staging&&) noexcept = default;

}  // namespace saccade
