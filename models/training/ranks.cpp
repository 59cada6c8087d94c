#include "models/training/ranks.h"

#include "kernels/engine/device.h"

namespace saccade {

int ranks_of_device(const std::string& device) {
  const std::optional<GpuRange> range = gpu_range(device);
  return range ? range->last - range->first + 1 : 1;
}

std::string rank_device(const std::string& wanted, const Ranks& ranks) {
  if (!ranks.device.empty()) return ranks.device;
  const std::string device = ranks.on_gpus && wanted == "auto" ? "cuda" : wanted;
  const auto nth = [](int index) { return "cuda:" + std::to_string(index); };
  if (const std::optional<GpuRange> range = gpu_range(device)) {
    if (range->last - range->first + 1 != ranks.local_count)
      throw UsageError("/device is \"" + device + "\" for " + std::to_string(ranks.local_count) +
                       " ranks on one host; expected one GPU for each");
    return nth(range->first + ranks.local);
  }
  if (ranks.count == 1 || device == "cpu") return device;
  if (device != "auto" && device != "cuda")
    throw UsageError("/device is \"" + device + "\" for " + std::to_string(ranks.count) +
                     " ranks; expected auto, cpu, cuda or as many GPUs, like cuda:0-" + std::to_string(ranks.count - 1));
  if (!ranks.communicator) return device;  // a plan is for any of them
  const auto there = static_cast<int>(gpus().size());
  if (there == 0) return device;  // parse_device says why
  if (there == 1) return nth(0);
  if (ranks.local >= there)
    throw DeviceError(std::to_string(ranks.local_count) + " ranks on this host need as many GPUs, and there are " + std::to_string(there));
  return nth(ranks.local);
}

void require_divisible(const TrainingConfig& training, int ranks) {
  if (ranks == 1) return;
  const auto require = [&](int64_t count, const std::string& what) {
    if (count % ranks != 0)
      throw UsageError(what + " micro-batches of " + std::to_string(micro_batch_tokens(training)) + " tokens; expected a multiple of the " +
                       std::to_string(ranks) + " ranks, for a rank takes whole ones (set /training/gradient_accumulation)");
  };
  require(training.gradient_accumulation,
          "/training/gradient_accumulation cuts a step into " + std::to_string(training.gradient_accumulation));
  if (training.batch_warmup_steps > 0) {
    const int64_t first = training.batch_warmup_tokens / micro_batch_tokens(training);
    require(first, "/training/batch_warmup_tokens are " + std::to_string(first));
  }
}

}  // namespace saccade
