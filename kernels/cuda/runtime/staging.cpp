#include "kernels/engine/staging.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>

#include "kernels/cuda/runtime/check.h"
#include "kernels/engine/cuda_runtime.h"
#endif

namespace saccade {

#ifdef SACCADE_CUDA

struct Staging::Buffers {
  void* host[2] = {};
  cudaEvent_t copied[2] = {};   ///< out of host[i]
  void* device_copy = nullptr;  ///< on the GPU: what was copied ahead
  cudaEvent_t taken = nullptr;  ///< out of `device_copy`
  cudaStream_t stream = nullptr;
  int current = 0;
  bool filled = false, is_ahead = false;

  explicit Buffers(int64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    for (int i = 0; i < 2; ++i) cuda::check(cudaMallocHost(&host[i], size));
    for (cudaEvent_t* event : {&copied[0], &copied[1], &taken}) cuda::check(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    cuda::check(cudaMalloc(&device_copy, size));
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Buffers() {
    for (cudaEvent_t event : {copied[0], copied[1], taken}) {
      (void)cudaEventSynchronize(event);
      (void)cudaEventDestroy(event);
    }
    for (void* h : host) (void)cudaFreeHost(h);
    (void)cudaFree(device_copy);
    (void)cudaStreamDestroy(stream);
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
  cuda::check(cudaEventSynchronize(buffers_->copied[buffers_->current]));
  buffers_->filled = true;
  buffers_->is_ahead = false;
  return buffers_->host[buffers_->current];
}

void Staging::ahead() {
  if (!buffers_ || !buffers_->filled) return;
  Buffers& b = *buffers_;
  cuda::check(cudaStreamWaitEvent(b.stream, b.taken));
  cuda::check(cudaMemcpyAsync(b.device_copy, b.host[b.current], static_cast<size_t>(tensor_.bytes()), cudaMemcpyHostToDevice, b.stream));
  cuda::check(cudaEventRecord(b.copied[b.current], b.stream));
  b.is_ahead = true;
}

void Staging::send() {
  if (!buffers_ || !buffers_->filled) return;
  Buffers& b = *buffers_;
  cuda::Stream stream = cuda::stream(tensor_.device().index);
  if (b.is_ahead) {
    cuda::check(cudaStreamWaitEvent(stream, b.copied[b.current]));
    cuda::copy_on_device(stream, tensor_.raw(), b.device_copy, tensor_.bytes());
    cuda::check(cudaEventRecord(b.taken, stream));
  } else {
    cuda::check(cudaMemcpyAsync(tensor_.raw(), b.host[b.current], static_cast<size_t>(tensor_.bytes()), cudaMemcpyHostToDevice, stream));
    cuda::check(cudaEventRecord(b.copied[b.current], stream));
  }
  b.current = 1 - b.current;
  b.filled = b.is_ahead = false;
}

#else

struct Staging::Buffers {};
Staging::Staging(const Tensor& tensor) : tensor_(tensor) {}
void* Staging::next() { return tensor_.raw(); }
void Staging::ahead() {}
void Staging::send() {}

#endif

Staging::~Staging() = default;
Staging::Staging(Staging&&) noexcept = default;

}  // namespace saccade
