#pragma once
// Times an op on a GPU in bf16, forward alone and with backward.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>

#include "tests/gpu/op_table.h"

namespace saccade::test {

/// The median over some runs, in ms.
inline double median_ms(const Tape& tape, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    cudaEventRecord(begin, tape.stream());
    work();
    cudaEventRecord(end, tape.stream());
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 2) times.push_back(static_cast<double>(ms));
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Prints a line; FLOPs and bytes are those that the op reports to the plan. The first output of the op is taken back.
inline void bench_case(const OpCase& c, Device device) {
  Arena arena(device);
  Tape inputs(arena, false);
  std::vector<Tensor> x;
  for (const Input& in : c.inputs) {
    x.push_back(inputs.empty(in.shape, in.kind == Input::Kind::activation ? DType::bf16 : DType::f32));
    from_doubles(x.back(), in.values);
    x.back().set_differentiable(true);
  }
  Cost forward, both;
  const double forward_ms = median_ms(inputs, [&] {
    Tape tape(arena, false);
    c.op(tape, x);
    forward = tape.cost();
  });
  const double both_ms = median_ms(inputs, [&] {
    Tape tape(arena, true);
    const std::vector<Tensor> y = c.op(tape, x);
    tape.backward({{y[0], y[0]}});
    both = tape.cost();
  });
  const auto print = [](double ms, const Cost& cost) {
    std::printf("  %7.3f ms %6.1f TFLOP/s %6.0f GB/s", ms, cost.flops / ms * 1e-9, cost.bytes / ms * 1e-6);
  };
  std::printf("%-36s forward", c.name.c_str()), print(forward_ms, forward);
  std::printf("   with backward"), print(both_ms, both);
  std::printf("   peak %.2f GiB\n", static_cast<double>(arena.peak_extent()) / (1 << 30));
  std::fflush(stdout);
}

}  // namespace saccade::test
