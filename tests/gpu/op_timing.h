#pragma once
// Times of an op on CUDA, forward and backward, for the --bench of check programs.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernels/engine/arena.h"
#include "kernels/engine/tape.h"
#include "kernels/engine/transfer.h"

namespace saccade::test {

/// Values from a small generator, spread over (center − √3, center + √3).
inline Tensor random_values(Arena& arena, const Shape& shape, DType dtype, uint64_t seed, double center = 0) {
  const Tensor x = arena.allocate(shape, dtype);
  std::vector<double> values(static_cast<size_t>(x.size()));
  uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15ull;
  for (double& v : values) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v = center + (static_cast<double>(state >> 11) * 0x1p-53 * 2 - 1) * 1.7320508;
  }
  from_doubles(x, values);
  return x;
}

struct OpTimes {
  double forward_ms, backward_ms;
  int64_t peak;
};

/// Medians over nine runs; the gradient of the output is random.
inline OpTimes time_op(Arena& arena, const std::function<Tensor(Tape&)>& op) {
  cudaEvent_t marks[3];
  for (cudaEvent_t& mark : marks) cudaEventCreate(&mark);
  Tensor seed;
  std::vector<double> forward, backward;
  for (int run = 0; run < 11; ++run) {
    Tape tape(arena, true);
    cudaEventRecord(marks[0], tape.stream());
    const Tensor y = op(tape);
    if (!seed) seed = random_values(arena, y.shape(), y.dtype(), 99);
    cudaEventRecord(marks[1], tape.stream());
    tape.backward({{y, seed}});
    cudaEventRecord(marks[2], tape.stream());
    cudaEventSynchronize(marks[2]);
    float first = 0, second = 0;
    cudaEventElapsedTime(&first, marks[0], marks[1]);
    cudaEventElapsedTime(&second, marks[1], marks[2]);
    if (run >= 2) forward.push_back(first), backward.push_back(second);
  }
  for (cudaEvent_t mark : marks) cudaEventDestroy(mark);
  std::sort(forward.begin(), forward.end());
  std::sort(backward.begin(), backward.end());
  return {forward[forward.size() / 2], backward[backward.size() / 2], arena.peak_extent()};
}

/// Costs: FLOPs of the matrix products; bytes of inputs, outputs and their gradients, each once.
inline void print_times(const std::string& name, const OpTimes& times, Cost forward, Cost backward) {
  std::printf("%-48s forward %8.3f ms (%4.0f TFLOP/s, %4.0f GB/s)  backward %8.3f ms (%4.0f TFLOP/s, %4.0f GB/s)  peak %.2f GiB\n",
              name.c_str(), times.forward_ms, forward.flops / times.forward_ms * 1e-9, forward.bytes / times.forward_ms * 1e-6,
              times.backward_ms, backward.flops / times.backward_ms * 1e-9, backward.bytes / times.backward_ms * 1e-6,
              static_cast<double>(times.peak) / (1 << 30));
  std::fflush(stdout);
}

}  // namespace saccade::test
