// Trains presets on a GPU and compares the memory that the driver says is taken with the plan's (within 5 %); then runs out of
// memory on purpose. Needs a GPU that nobody else uses; without one it ends with code 77 (skipped) and says so.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "kernels/engine/cuda_runtime.h"
#include "models/evaluation/evaluation_pass.h"
#include "models/training/plan.h"
#include "models/training/training_step.h"
#include "tests/gpu/first_gpu.h"

using namespace saccade;
using nlohmann::json;

namespace {

int64_t memory_free(int index) {
  for (const cuda::Gpu& gpu : cuda::gpus())
    if (gpu.index == index) return gpu.memory_free;
  return 0;
}

double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

RunConfig config_of(const char* name, const json& architecture, int64_t length, int64_t batch, const char* precision, Device device) {
  return resolve_config({{"name", name},
                         {"architecture", architecture},
                         {"data", {{"sequence_length", length}}},
                         {"training", {{"batch_tokens", batch * length}}},
                         {"device", to_string(device)},
                         {"precision", precision}},
                        name);
}

void train(TrainingStep& step, int64_t vocabulary, int64_t steps) {
  for (int64_t s = 1; s <= steps; ++s) {
    for (auto tokens : {step.tokens(), step.targets()})
      for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(vocabulary));
    step.begin();
    step.forward_backward();
    step.gradient_norm();
    step.update(1e-4, s);
  }
  step.measures();
}

void evaluate(TrainingStep& step, int64_t vocabulary) {
  EvaluationPass evaluation(
      step.model(), step.arena(), [&](Tape& tape) { step.prepare(tape); }, step.sequences() * step.length());
  std::vector<int32_t> tokens(static_cast<size_t>(step.sequences() * step.length()));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i % static_cast<size_t>(vocabulary));
  for (int i = 0; i < 3; ++i) evaluation.evaluate({"", tokens, tokens, step.sequences(), step.length()});
}

/// `before`: free before this program used the GPU.
bool check(const char* name, const json& architecture, int64_t vocabulary, int64_t length, int64_t batch, const char* precision,
           Device device, int64_t before) {
  const RunConfig config = config_of(name, architecture, length, batch, precision, device);
  const Plan plan = make_plan(config, vocabulary);
  TrainingStep step(config, vocabulary, device);
  train(step, vocabulary, 3);
  const int64_t trained = before - memory_free(device.index);
  evaluate(step, vocabulary);
  const int64_t used = before - memory_free(device.index);
  const double error = static_cast<double>(plan.device_bytes() - used) / static_cast<double>(used);
  const bool ok = std::abs(error) <= 0.05;
  std::printf("%-22s %-4s planned %9.1f MiB (tensors %9.1f), used %9.1f (%.1f before evaluation), %+5.1f %%  %s\n", name, precision,
              mebibytes(plan.device_bytes()), mebibytes(plan.peak_bytes), mebibytes(used), mebibytes(trained), 100 * error,
              ok ? "ok" : "FAILED");
  std::fflush(stdout);
  return ok;
}

/// The message of the DeviceError that `work` ends with; empty without one.
template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return {};
}

/// With nearly all memory taken, a run is refused before it starts, and one that starts all the same ends with what to reduce.
bool check_full(const json& architecture, Device device) {
  const RunConfig config = config_of("full", architecture, 2048, 32, "bf16", device);
  Arena rest(device);
  const Tensor taken = rest.allocate({(memory_free(device.index) - (int64_t{3} << 30)) / 4}, DType::f32);
  const std::string foreseen = refusal([&] { require_device(config, make_plan(config, 32000)); });
  const std::string met = refusal([&] {
    TrainingStep step(config, 32000, device);
    train(step, 32000, 1);
  });
  std::printf("foreseen: %s\nmet: %s\n", foreseen.c_str(), met.c_str());
  const auto names_what_helps = [](const std::string& message) { return message.find("reduce") != std::string::npos; };
  return names_what_helps(foreseen) && names_what_helps(met);
}

json llama(int64_t width, int64_t layers, int64_t heads, int64_t mlp) {
  return {{"block", "llama"}, {"mixer", "attention"}, {"width", width}, {"layers", layers}, {"heads", heads}, {"mlp_width", mlp}};
}

}  // namespace

int main() {
  const cuda::Gpu gpu = test::first_gpu();
  const Device device = Device::cuda(gpu.index);
  const int64_t before = gpu.memory_free;
  if (gpu.memory_total - before > int64_t{1} << 30) {
    std::printf("SKIPPED: somebody else uses this GPU (%.0f MiB are taken)\n", mebibytes(gpu.memory_total - before));
    return 77;
  }
  bool ok = true;
  const json chunks{{"block", "llama"}, {"mixer", "top1_chunk"}, {"width", 320}, {"layers", 6}, {"heads", 5}, {"chunk", 32}};
  const json avey{{"block", "avey"}, {"width", 256}, {"layers", 8}, {"split", 32}, {"top_k", 3}};
  ok &= check("Transformer++ 1.87 M", llama(192, 4, 3, 512), 512, 512, 32, "bf16", device, before);
  ok &= check("Transformer++ 8.75 M", llama(320, 6, 5, 864), 4096, 1024, 32, "bf16", device, before);
  ok &= check("Transformer++ 8.75 M", llama(320, 6, 5, 864), 4096, 1024, 32, "f32", device, before);
  ok &= check("Top-1 Chunk", chunks, 4096, 512, 32, "bf16", device, before);
  ok &= check("Avey 4.9 M", avey, 4096, 512, 32, "bf16", device, before);
  ok &= check("Transformer++ 110 M", llama(768, 12, 12, 2048), 32000, 2048, 32, "bf16", device, before);
  ok &= check_full(llama(768, 12, 12, 2048), device);
  return ok ? 0 : 1;
}
