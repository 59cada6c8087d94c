#include "kernels/engine/cuda_side_stream.h"

#ifdef SACCADE_CUDA
#include <cuda_runtime.h>

#include <map>

#include "kernels/cuda/runtime/check.h"
#include "kernels/cuda/runtime/redirect.h"
#include "kernels/engine/plain.h"
#endif

namespace saccade::cuda {

#ifdef SACCADE_CUDA
namespace {

Stream side_stream(int device) {
  static std::map<int, cudaStream_t> streams;
  cudaStream_t& s = streams[device];
  if (!s) check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

}  // namespace

struct SideWork::State {
  int device;
  cudaEvent_t begin = nullptr, end = nullptr;

  explicit State(int index) : device(index) {
    check(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
    check(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  }
  ~State() {
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

void SideWork::start(int device, const std::function<void(Stream)>& work) {
  join();
  if (plain_kernels()) return work(stream(device));
  Stream main = stream(device), side = side_stream(device);
  auto state = std::make_unique<State>(device);
  check(cudaEventRecord(state->begin, main));
  check(cudaStreamWaitEvent(side, state->begin));
  {
    const Redirect redirect(device, side);
    work(side);
  }
  check(cudaEventRecord(state->end, side));
  state_ = std::move(state);
}

void SideWork::join() {
  if (!state_) return;
  const auto state = std::move(state_);
  check(cudaStreamWaitEvent(stream(state->device), state->end));
}

SideWork::~SideWork() {
  if (state_) (void)cudaStreamWaitEvent(stream(state_->device), state_->end);
}

#else

struct SideWork::State {};
void SideWork::start(int, const std::function<void(Stream)>&) {}
void SideWork::join() {}
SideWork::~SideWork() = default;

#endif

SideWork::SideWork() = default;

}  // namespace saccade::cuda
