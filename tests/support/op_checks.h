#pragma once
#include <cstring>

#include "kernels/engine/parallel.h"
#include "tests/support/gradient.h"

namespace saccade::test {

/// What one forward and backward pass leaves: outputs and gradients of the inputs, and what it took.
struct OpRun {
  std::vector<Array> values;
  Cost cost;
  int64_t peak = 0;
};

/// Runs `op` forward, and backward from random gradients, on the CPU or on `plan` (where there are no values).
inline OpRun run_op(const Op& op, const std::vector<Array>& inputs, DType dtype, Device device) {
  Arena::set_poison(true);
  Arena arena(device);
  Tape tape(arena, true);
  std::vector<Tensor> x, grads;
  for (const Array& input : inputs) {
    x.push_back(device.is_plan() ? arena.allocate(input.shape, input.integer ? DType::i32 : dtype) : to_tensor(input, dtype, arena));
    grads.push_back(input.integer ? Tensor() : arena.allocate(input.shape, dtype));
    if (input.integer) continue;
    x.back().set_differentiable(true);
    tape.bind_grad(x.back(), grads.back());
  }
  OpRun run;
  {
    const std::vector<Tensor> y = op(tape, x);
    std::vector<std::pair<Tensor, Tensor>> seeds;
    for (size_t i = 0; i < y.size(); ++i) {
      if (!device.is_plan()) run.values.push_back(to_array(y[i]));
      if (!y[i].differentiable()) continue;
      const Array seed = random_array(y[i].shape(), 1000 + i);
      seeds.emplace_back(y[i], device.is_plan() ? arena.allocate(seed.shape, dtype) : to_tensor(seed, dtype, arena));
    }
    tape.backward(seeds);
  }
  for (const Tensor& grad : grads)
    if (grad && !device.is_plan()) run.values.push_back(to_array(grad));
  run.cost = tape.cost();
  run.peak = arena.peak_extent();
  Arena::set_poison(false);
  return run;
}

/// Empty when outputs and gradients have the same bits with 1, 2 and 3 threads.
inline QString check_threads(const Op& op, const std::vector<Array>& inputs, DType dtype = DType::f32) {
  const int before = thread_count();
  std::vector<OpRun> runs;
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    runs.push_back(run_op(op, inputs, dtype, Device::cpu()));
  }
  set_thread_count(before);
  for (size_t r = 1; r < runs.size(); ++r)
    for (size_t i = 0; i < runs[0].values.size(); ++i) {
      const std::vector<double>&a = runs[0].values[i].values, &b = runs[r].values[i].values;
      if (std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) != 0)
        return QString("output or gradient %1 differs between 1 and %2 threads").arg(i).arg(r + 1);
    }
  return {};
}

/// Empty when `plan` counts the same FLOPs, bytes and peak memory as the run, and the costs are not nothing.
inline QString check_plan(const Op& op, const std::vector<Array>& inputs) {
  const OpRun real = run_op(op, inputs, DType::f32, Device::cpu()), plan = run_op(op, inputs, DType::f32, Device::plan());
  if (real.cost.bytes <= 0) return "no bytes are counted";
  if (real.cost.flops != plan.cost.flops) return QString("plan counts %1 FLOPs, the run %2").arg(plan.cost.flops).arg(real.cost.flops);
  if (real.cost.bytes != plan.cost.bytes) return QString("plan counts %1 bytes, the run %2").arg(plan.cost.bytes).arg(real.cost.bytes);
  if (real.peak != plan.peak) return QString("plan peaks at %1 bytes, the run at %2").arg(plan.peak).arg(real.peak);
  return {};
}

/// All of it: gradients, float against double, threads, plan. Empty when an op passes.
inline QString check_op(const Op& op, const std::vector<Array>& inputs, double float_tolerance = 2e-5) {
  for (const QString& problem :
       {check_gradient(op, inputs), check_float(op, inputs, float_tolerance), check_threads(op, inputs), check_plan(op, inputs)})
    if (!problem.isEmpty()) return problem;
  return {};
}

}  // namespace saccade::test

#define CHECK_OP(...)                                              \
  do {                                                             \
    const QString problem_ = saccade::test::check_op(__VA_ARGS__); \
    QVERIFY2(problem_.isEmpty(), qPrintable(problem_));            \
  } while (false)
