#pragma once
#include "kernels/device.h"
#include "models/config/config.h"

namespace saccade {

/// Tokens in a frozen batch of evaluation (at least one sequence).
constexpr int64_t kEvaluationBatchTokens = 4096;

/// What a run will take, from running its step on the plan device: nothing is allocated.
struct Plan {
  int64_t parameters = 0;
  int64_t weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  int64_t activation_bytes = 0;  ///< at the peak, beyond the three above
  int64_t peak_bytes = 0;        ///< all together
  int64_t runtime_bytes = 0;     ///< what CUDA takes besides: context, code, workspace of products, recorded steps
  double flops_per_step = 0;     ///< forward, backward and update of one optimizer step
  double bytes_per_step = 0;     ///< least memory traffic of a step
  double flops_per_evaluation = 0;
  int64_t steps = 0, tokens_per_step = 0;
  int64_t state_bytes_per_token = 0;  ///< what decoding must keep per token of context (keys and values; embeddings for Avey)
  std::string device;                 ///< what it is for: "cpu", "cuda:0"
  MemoryState memory;                 ///< of that device now, in bytes; 0 when it is not there
  int64_t device_bytes() const { return peak_bytes + runtime_bytes; }  ///< what the device must provide
  double total_flops() const { return flops_per_step * static_cast<double>(steps); }
};
/// For the device that run_device names, or for a GPU that the config names and this machine lacks. Throws DeviceError when
/// an op of the config has no version for it.
Plan make_plan(const RunConfig& config, int64_t vocabulary);

/// Where a config's run goes. `auto` takes the GPU with the most free memory when all ops of the config have a CUDA version and
/// the precision is one of CUDA's, else the CPU. Throws UsageError, DeviceError.
struct RunDevice {
  Device device;
  std::string why_not_gpu;  ///< for `auto` on a machine with a GPU that is not used
};
RunDevice run_device(const RunConfig& config, int64_t vocabulary);

/// Memory of a device, and what of it is free now; 0 when it is not there.
MemoryState device_memory(Device device);

/// Throws DeviceError when the config's device is missing or has less memory available than the plan needs, and UsageError
/// for a precision that the device does not compute in. Allocates nothing.
void require_device(const RunConfig& config, int64_t vocabulary, const Plan& plan);

/// Seconds per optimizer step, measured by really running `steps` steps on random tokens on the config's device.
double measure_step_seconds(const RunConfig& config, int64_t vocabulary, int steps = 2);

nlohmann::json to_json(const Plan& plan);

}  // namespace saccade
