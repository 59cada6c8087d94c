#pragma once
// Times of an op forward and backward on a GPU, with the bytes it moves at least.
#include <cuda_runtime.h>

#include <algorithm>

#include "tests/gpu/op_table.h"

namespace saccade::test {

/// An input with normal values around a center.
struct Timed {
  Shape shape;
  DType dtype;
  double center = 0;
};

/// Milliseconds that `work` takes on the device of the tape.
inline double milliseconds(Tape& tape, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  cudaEventRecord(begin, tape.stream());
  work();
  cudaEventRecord(end, tape.stream());
  cudaEventSynchronize(end);
  float ms = 0;
  cudaEventElapsedTime(&ms, begin, end);
  cudaEventDestroy(begin), cudaEventDestroy(end);
  return ms;
}

/// Values that repeat after a while, so that large tensors are made quickly.
inline void fill(const Tensor& x, uint64_t seed, double center) {
  std::vector<double> values(static_cast<size_t>(x.size()));
  const Random random(seed, "values");
  for (size_t i = 0; i < values.size(); ++i) values[i] = i < 65521 ? center + random.normal(static_cast<uint64_t>(i)) : values[i - 65521];
  from_doubles(x, values);
}

/// Medians of 5, forward and backward; bytes that each moves at least, as an achieved rate.
inline void time_op(const std::string& name, Device device, const std::vector<Timed>& given, double forward_bytes, double backward_bytes,
                    const std::function<Tensor(Tape&, const std::vector<Tensor>&)>& op) {
  Arena arena(device);
  Tape tape(arena, true);
  std::vector<Tensor> x;
  for (const Timed& in : given) {
    x.push_back(arena.allocate(in.shape, in.dtype));
    fill(x.back(), x.size(), in.center);
    x.back().set_differentiable(true);
    tape.bind_grad(x.back(), arena.allocate(in.shape, in.dtype));
  }
  std::vector<double> forward, backward;
  Tensor seed;
  for (int i = 0; i < 7; ++i) {
    Tensor y;
    const double f = milliseconds(tape, [&] { y = op(tape, x); });
    if (!seed) seed = arena.allocate(y.shape(), y.dtype()), fill(seed, 99, 0);
    tape.fresh_grads();
    const double b = milliseconds(tape, [&] { tape.backward({{y, seed}}); });
    if (i > 1) forward.push_back(f), backward.push_back(b);
  }
  std::sort(forward.begin(), forward.end()), std::sort(backward.begin(), backward.end());
  const double f = forward[2], b = backward[2];
  std::printf("%-16s forward %.3f ms (%.2f TB/s), backward %.3f ms (%.2f TB/s), both %.3f ms, peak %.0f MiB\n", name.c_str(), f,
              forward_bytes / f / 1e9, b, backward_bytes / b / 1e9, f + b, static_cast<double>(arena.peak_extent()) / 1048576);
  std::fflush(stdout);
}

}  // namespace saccade::test
