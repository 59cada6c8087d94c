#include "kernels/cuda/device/device_code.cuh"
#include "kernels/cuda/gemm/gemm_choice.h"

namespace saccade::cuda {
namespace {

constexpr int kRepeats = 5, kTogether = 4;
constexpr float kShort = 0.1f;        ///< milliseconds of a run that is repeated before it is timed: else the launch is what takes long
constexpr float kWorthwhile = 0.98f;  ///< of the best time so far: what a later version must beat

/// different = 1 where a word of x is not that of y.
__global__ void compare_kernel(const uint32_t* x, const uint32_t* y, int64_t n, int* different) {
  bool same = true;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += int64_t{gridDim.x} * blockDim.x) same &= x[i] == y[i];
  if (!same) *different = 1;
}

/// Memory for the results of two versions and the verdict; empty when there is none.
struct Trial {
  void *truth = nullptr, *result = nullptr;
  int* different = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;

  explicit Trial(int64_t bytes) {
    const auto size = static_cast<size_t>(bytes);
    if (cudaMalloc(&truth, size) != cudaSuccess || cudaMalloc(&result, size) != cudaSuccess || cudaMalloc(&different, 4) != cudaSuccess)
      (void)cudaGetLastError();
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
  }
  ~Trial() {
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
    for (void* memory : {truth, result, static_cast<void*>(different)}) (void)cudaFree(memory);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  explicit operator bool() const { return different != nullptr; }
};

bool recording(Stream stream) {
  cudaStreamCaptureStatus status;
  check(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

bool same_result(Stream stream, const Trial& trial, int64_t bytes) {
  check(cudaMemsetAsync(trial.different, 0, 4, stream));
  compare_kernel<<<528, 256, 0, stream>>>(static_cast<const uint32_t*>(trial.truth), static_cast<const uint32_t*>(trial.result), bytes / 4,
                                          trial.different);
  check_launch();
  int different = 1;
  check(cudaMemcpyAsync(&different, trial.different, 4, cudaMemcpyDeviceToHost, stream));
  check(cudaStreamSynchronize(stream));
  return different == 0;
}

/// The shortest of some times of `together` runs: whatever else the GPU does only makes one longer.
float milliseconds(Stream stream, const Trial& trial, int together, const std::function<void()>& work) {
  float shortest = INFINITY;
  for (int i = 0; i < kRepeats; ++i) {
    check(cudaEventRecord(trial.begin, stream));
    for (int k = 0; k < together; ++k) work();
    check(cudaEventRecord(trial.end, stream));
    check(cudaEventSynchronize(trial.end));
    float time = 0;
    check(cudaEventElapsedTime(&time, trial.begin, trial.end));
    shortest = fminf(shortest, time);
  }
  return shortest;
}

}  // namespace

std::optional<int> fastest_of_equal(Stream stream, int count, int64_t bytes, const std::function<bool(int, void*)>& run) {
  if (count < 2 || bytes % 4 != 0 || recording(stream)) return {};
  check(cudaDeviceSynchronize());  // nothing runs beside what is measured
  const Trial trial(bytes);
  if (!trial || !run(0, trial.truth)) return {};
  int best = 0;
  const int together = milliseconds(stream, trial, 1, [&] { run(0, trial.truth); }) < kShort ? kTogether : 1;
  float best_time = milliseconds(stream, trial, together, [&] { run(0, trial.truth); });
  for (int version = 1; version < count; ++version) {
    if (!run(version, trial.result) || !same_result(stream, trial, bytes)) continue;
    const float time = milliseconds(stream, trial, together, [&] { run(version, trial.result); });
    if (time < kWorthwhile * best_time) best = version, best_time = time;
  }
  return best;
}

}  // namespace saccade::cuda
