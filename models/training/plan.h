#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/engine/device.h"
#include "models/config/config.h"
#include "models/probe.h"
#include "models/training/ranks.h"

namespace saccade {

/// Neighbouring layers of a hybrid stack that are alike, `first` to `last` from 0, and what each of them takes.
struct PlannedLayers {
  int64_t first = 0, last = 0;
  std::string mixer;  ///< what they mix with, as layer_titles() calls it
  int64_t parameters = 0;
  int64_t state_bytes_per_token = 0;  ///< as of the whole plan
};

/// What a run will take, from running its step on the plan device: nothing is allocated. It is made once and passed along, and
/// with it the choice of the device.
struct Plan {
  int64_t vocabulary = 0;
  int64_t parameters = 0;
  int ranks = 1;  ///< that share the work; bytes are of one of them, FLOPs of all together
  int64_t weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  int64_t sum_bytes = 0;             ///< of sums of gradients over micro-batches and ranks
  int64_t activation_bytes = 0;      ///< at the peak, beyond the four above
  int64_t peak_bytes = 0;            ///< all together, in steps and in evaluations between them
  int64_t evaluation_bytes = 0;      ///< the same at the peak of evaluations alone, those beyond the trained length included
  int64_t probe_bytes = 0;           ///< the same at the peak of statistics and captures, which come between steps
  int64_t probe_host_bytes = 0;      ///< of the CPU: what statistics and captures are made of, in passing
  int64_t capture_bytes = 0;         ///< of the CPU: captured maps until they are written
  int64_t runtime_bytes = 0;         ///< what CUDA takes in addition: context, code, workspace of products, captured graphs
  double flops_per_step = 0;         ///< forward, backward and update of one optimizer step of a whole batch
  double flops_per_micro_batch = 0;  ///< forward and backward of a micro-batch after the first
  double bytes_per_step = 0;         ///< least memory traffic of a step
  double flops_per_evaluation = 0;   ///< of all domains, each at its own length
  int64_t steps = 0, tokens_per_step = 0;
  int64_t micro_batches = 1;                      ///< of a whole batch
  int64_t tokens = 0;                             ///< of all steps, the smaller batches of a warm-up included
  double run_flops = 0;                           ///< likewise
  int64_t state_bytes_per_token = 0;              ///< what decoding must keep per token of context (keys and values; embeddings for Avey)
  Engine engine = Engine::cpu;                    ///< what it was made for
  std::optional<Device> where;                    ///< the device it is for; nothing for a GPU that the config names and this machine lacks
  std::string device;                             ///< its name: "cpu", "cuda:0"
  std::vector<std::string> without_tensor_cores;  ///< ops of a GPU that has no kernel for tensor cores at their sizes
  std::string why_not_gpu;                        ///< why `auto` left a GPU alone; empty otherwise
  MemoryState memory;                             ///< of that device when the plan was made, in bytes; 0 when it is not there
  std::vector<PlannedLayers> layers;              ///< of a hybrid stack, else empty
  /// What the device must provide; on the CPU captured maps are written while training goes on.
  int64_t device_bytes() const;
  /// What the CPU must provide beside a GPU.
  int64_t host_bytes() const { return probe_host_bytes + capture_bytes + std::min(capture_bytes, kMostLateBytes); }
  double total_flops() const { return run_flops; }
  /// Of a step of so many micro-batches.
  double flops_of(int64_t count) const { return flops_per_step - static_cast<double>(micro_batches - count) * flops_per_micro_batch; }
};
/// For the device that the config names, also for a GPU that this machine lacks. `auto` is the GPU with the most free memory when
/// CUDA computes in the precision and its engine refuses no op of the plan (Tape::refuse), else the CPU: that takes a second plan.
/// Throws UsageError, also where the model does not take the length of a domain of a generated task; DeviceError when the engine of a named
/// device refuses an op.
/// With several ranks it is that of `ranks.rank`; throws UsageError where they cannot share the config's steps.
Plan make_plan(const RunConfig& config, int64_t vocabulary, const Ranks& ranks = {});

/// Steps that this process has planned so far.
int64_t plans_made();

/// Where a config's run goes, as make_plan says; a plan is made only for `auto`. Throws UsageError, DeviceError.
Device run_device(const RunConfig& config, int64_t vocabulary);

/// Throws DeviceError when the config's device is missing, and UsageError for a precision that it does not compute in: what can be
/// told without a vocabulary.
void require_precision(const RunConfig& config, const Ranks& ranks = {});

/// Bytes that evaluating sequences of `length` tokens takes at the peak, weights included, in pieces of the config's micro-batch:
/// an EvaluationPass on an InferenceModel. Throws UsageError where the model does not take that length, DeviceError where the
/// engine refuses an op.
int64_t planned_evaluation_bytes(const RunConfig& config, int64_t vocabulary, Engine engine, int64_t length);

/// Memory of a device, and what of it is free now; 0 when it is not there.
MemoryState device_memory(Device device);

/// Throws DeviceError when the plan's device is missing or has less memory available now than the plan needs. Allocates nothing.
void require_device(const RunConfig& config, const Plan& plan);

nlohmann::json to_json(const Plan& plan);

}  // namespace saccade
