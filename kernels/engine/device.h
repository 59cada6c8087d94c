#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace saccade {

/// The code that an op runs: its CPU body or its CUDA kernels. They take different scratch memory.
enum class Engine { cpu, cuda };

/// Where tensors live and ops run. On `plan` an op only computes shapes, bytes and FLOPs and nothing is allocated, so the estimate before a
/// run comes from the code that will run.
struct Device {
  enum class Kind { cpu, plan, cuda };
  Kind kind = Kind::cpu;
  Engine engine = Engine::cpu;  ///< what runs there; for `plan`, what is planned
  int index = 0;                ///< which GPU; 0 for the CPU and for a plan

  static Device cpu() { return {}; }
  static Device plan(Engine engine = Engine::cpu) { return {Kind::plan, engine, 0}; }
  static Device cuda(int index) { return {Kind::cuda, Engine::cuda, index}; }

  bool is_cpu() const { return kind == Kind::cpu; }
  bool is_plan() const { return kind == Kind::plan; }
  bool is_cuda() const { return kind == Kind::cuda; }
  /// Runs on, or plans for, the CUDA engine.
  bool targets_cuda() const { return engine == Engine::cuda; }
  bool operator==(const Device&) const = default;
};

/// "cpu", "plan", "cuda:0".
std::string to_string(Device device);

/// GPUs first … last.
struct GpuRange {
  int first = 0, last = 0;
};
/// What "cuda:0-3" names; nothing for other words.
std::optional<GpuRange> gpu_range(const std::string& text);

/// Reads "auto", "cpu", "cuda", "cuda:N", and "cuda:0-3" as the first of these GPUs. `auto` takes the GPU with the most free memory of
/// those this build can use, else the CPU. Throws UsageError on other words and DeviceError when the named GPU is not there.
Device parse_device(const std::string& text);
/// The same, but nothing, with the reason, for a GPU that is not there.
std::optional<Device> find_device(const std::string& text, std::string* why_missing = nullptr);

/// Physical memory of this machine, and what of it is available now, in bytes.
struct MemoryState {
  int64_t total = 0;
  int64_t available = 0;
};
MemoryState cpu_memory();

/// A GPU that this build can use, and its memory now in bytes.
struct Gpu {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  int64_t memory_total = 0, memory_free = 0;
};
/// Of compute capability 8.0 and up. Empty with a reason when there are none: no driver, driver too old, unsupported GPUs, built
/// without CUDA.
std::vector<Gpu> gpus(std::string* why_none = nullptr);

/// Version of the cuDNN that this process runs with, such as "9.14.0"; empty with a reason where there is none.
std::string cudnn_version(std::string* why_none = nullptr);

/// Name of the processor as the system gives it.
std::string cpu_name();
/// Name of a GPU as its driver gives it; empty for other devices.
std::string gpu_name(Device device);

}  // namespace saccade
