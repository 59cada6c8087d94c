#include "models/training/plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "kernels/random.h"
#include "models/training/evaluation_pass.h"

namespace saccade {
namespace {

/// Costs of an optimizer step: all micro-batches after the first cost the same.
Cost step_cost(TrainingStep& step, int64_t micro_batches) {
  Tape& tape = step.tape();
  const auto measured = [&](auto&& action) {
    tape.reset_cost();
    action();
    return tape.cost();
  };
  step.begin();
  Cost total = measured([&] { step.forward_backward(); });
  if (micro_batches > 1) {
    const Cost more = measured([&] { step.forward_backward(); });
    total.flops += static_cast<double>(micro_batches - 1) * more.flops;
    total.bytes += static_cast<double>(micro_batches - 1) * more.bytes;
  }
  const Cost update = measured([&] {
    step.gradient_norm();
    step.update(1e-3, 1);
  });
  return {total.flops + update.flops, total.bytes + update.bytes};
}

/// Forward passes over the frozen batches of every domain.
double evaluation_flops(const RunConfig& config, TrainingStep& step) {
  const int64_t sequences = config.training.evaluation_batches * std::max<int64_t>(1, kEvaluationBatchTokens / step.length());
  EvaluationPass evaluation(step);
  evaluation.losses({}, {}, step.sequences(), step.length());
  const auto domains = static_cast<double>(config.data.train.size() + config.data.ood.size());
  return evaluation.cost().flops / static_cast<double>(step.sequences()) * static_cast<double>(sequences) * domains;
}

/// Measured on an H200 with CUDA 13.0 (tests/gpu/memory_check.cpp); tensors come in pieces of kGrowth.
int64_t cuda_runtime_bytes(int64_t peak) {
  constexpr int64_t kContext = int64_t{664} << 20, kGrowth = int64_t{64} << 20;
  return kContext + (kGrowth - peak % kGrowth) % kGrowth;
}

/// The plan of the engine that a device names; a GPU need not be there.
Plan plan_of(const RunConfig& config, int64_t vocabulary, bool for_cuda) {
  TrainingStep step(config, vocabulary, Device::plan(for_cuda));
  Plan plan;
  plan.parameters = step.model().parameter_count();
  for (const AdamWSlot& slot : step.slots()) {
    plan.weight_bytes += slot.value.bytes() + (slot.compute_copy ? slot.compute_copy.bytes() : 0);
    plan.gradient_bytes += slot.grad.bytes();
    plan.optimizer_bytes += slot.first_moment.bytes() + slot.second_moment.bytes();
  }
  const Cost cost = step_cost(step, config.training.accumulate);
  plan.flops_per_step = cost.flops;
  plan.bytes_per_step = cost.bytes;
  plan.flops_per_evaluation = evaluation_flops(config, step);
  plan.peak_bytes = step.arena().peak_extent();
  plan.activation_bytes = plan.peak_bytes - plan.weight_bytes - plan.gradient_bytes - plan.optimizer_bytes;
  if (for_cuda) plan.runtime_bytes = cuda_runtime_bytes(plan.peak_bytes);
  plan.steps = config.training.steps;
  plan.tokens_per_step = config.training.batch_tokens;
  plan.state_bytes_per_token =
      std::llround(step.model().state_values_per_token() * static_cast<double>(byte_size(step.precision().activations)));
  return plan;
}

}  // namespace

RunDevice run_device(const RunConfig& config, int64_t vocabulary) {
  const Device device = parse_device(config.device);
  if (config.device != "auto" || !device.is_cuda()) return {device, ""};
  try {
    plan_of(config, vocabulary, true);
  } catch (const Error& error) {
    return {Device::cpu(), error.what()};
  }
  return {device, ""};
}

Plan make_plan(const RunConfig& config, int64_t vocabulary) {
  std::optional<Device> device;
  try {
    device = run_device(config, vocabulary).device;
  } catch (const DeviceError&) {
    if (config.device.rfind("cuda", 0) != 0) throw;
  }
  Plan plan = plan_of(config, vocabulary, !device || device->is_cuda());
  plan.device = device ? to_string(*device) : config.device;
  if (device) plan.memory = device_memory(*device);
  return plan;
}

MemoryState device_memory(Device device) {
  if (!device.is_cuda()) return cpu_memory();
  for (const Gpu& gpu : gpus())
    if (gpu.index == device.index) return {gpu.memory_total, gpu.memory_free};
  return {};
}

void require_device(const RunConfig& config, int64_t vocabulary, const Plan& plan) {
  const Device device = run_device(config, vocabulary).device;
  parse_precision(config.precision, device);
  const auto mebibytes = [](int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; };
  if (const int64_t available = device_memory(device).available; plan.device_bytes() > available)
    throw DeviceError("the run needs " + mebibytes(plan.device_bytes()) + " of memory on " + to_string(device) + ", " +
                      mebibytes(available) +
                      " are available; set /training/recompute, reduce /training/batch_tokens, raise /training/accumulate, or reduce "
                      "/architecture/width");
}

double measure_step_seconds(const RunConfig& config, int64_t vocabulary, int steps) {
  use_threads(config.threads);
  TrainingStep step(config, vocabulary, run_device(config, vocabulary).device);
  const Random random(0, "tokens of a measured step");
  const auto fill = [&](std::span<int32_t> tokens, uint64_t first) {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary), first + i));
  };
  fill(step.tokens(), 0);
  fill(step.targets(), step.tokens().size());
  const auto run = [&](int64_t number) {
    step.begin();
    for (int64_t i = 0; i < config.training.accumulate; ++i) step.forward_backward();
    step.gradient_norm();
    step.update(config.training.learning_rate, number);
  };
  run(1);  // touches the memory
  run(2);  // records the step on a GPU
  step.measures();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) run(3 + i);
  step.measures();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / std::max(steps, 1);
}

nlohmann::json to_json(const Plan& plan) {
  return {{"device", plan.device},
          {"memory_available_bytes", plan.memory.available},
          {"parameters", plan.parameters},
          {"weight_bytes", plan.weight_bytes},
          {"gradient_bytes", plan.gradient_bytes},
          {"optimizer_bytes", plan.optimizer_bytes},
          {"activation_bytes", plan.activation_bytes},
          {"peak_bytes", plan.peak_bytes},
          {"runtime_bytes", plan.runtime_bytes},
          {"device_bytes", plan.device_bytes()},
          {"flops_per_step", plan.flops_per_step},
          {"bytes_per_step", plan.bytes_per_step},
          {"flops_per_evaluation", plan.flops_per_evaluation},
          {"steps", plan.steps},
          {"tokens_per_step", plan.tokens_per_step},
          {"state_bytes_per_token", plan.state_bytes_per_token},
          {"total_flops", plan.total_flops()}};
}

}  // namespace saccade
