#include "kernels/engine/device.h"

#include <algorithm>
#include <fstream>

#include "kernels/engine/cuda_runtime.h"
#include "kernels/engine/error.h"

namespace saccade {

std::string to_string(Device device) {
  switch (device.kind) {
    case Device::Kind::cpu: return "cpu";
    case Device::Kind::plan: return "plan";
    case Device::Kind::cuda: return "cuda:" + std::to_string(device.index);
  }
  return "unknown";
}

namespace {

/// The GPU with the most free memory; nothing when this build or machine has none, with the reason.
std::optional<int> best_gpu(std::string* why_none) {
  const std::vector<cuda::Gpu> gpus = cuda::gpus(why_none);
  if (gpus.empty()) return std::nullopt;
  return std::max_element(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) { return a.memory_free < b.memory_free; })->index;
}

}  // namespace

std::optional<GpuRange> gpu_range(const std::string& text) {
  constexpr std::string_view kPrefix = "cuda:";
  const size_t dash = text.find('-');
  if (!text.starts_with(kPrefix) || dash == std::string::npos) return {};
  const std::string first = text.substr(kPrefix.size(), dash - kPrefix.size()), last = text.substr(dash + 1);
  for (const std::string& number : {first, last})
    if (number.empty() || number.size() > 4 || number.find_first_not_of("0123456789") != std::string::npos) return {};
  const GpuRange range{std::stoi(first), std::stoi(last)};
  return range.first <= range.last ? std::optional(range) : std::nullopt;
}

std::optional<Device> find_device(const std::string& text, std::string* why_missing) {
  if (const std::optional<GpuRange> range = gpu_range(text)) return find_device("cuda:" + std::to_string(range->first), why_missing);
  if (text == "cpu") return Device::cpu();
  std::string why_none;
  const auto missing = [&](const std::string& why) -> std::optional<Device> {
    if (why_missing) *why_missing = "device \"" + text + "\": " + why + "; use \"cpu\" or \"auto\"";
    return std::nullopt;
  };
  if (text == "auto" || text == "cuda") {
    if (const std::optional<int> index = best_gpu(&why_none)) return Device::cuda(*index);
    return text == "auto" ? Device::cpu() : missing(why_none);
  }
  if (text.rfind("cuda:", 0) == 0 && text.size() > 5 && text.find_first_not_of("0123456789", 5) == std::string::npos && text.size() < 10) {
    const int index = std::stoi(text.substr(5));
    const std::vector<cuda::Gpu> gpus = cuda::gpus(&why_none);
    if (std::any_of(gpus.begin(), gpus.end(), [&](const auto& gpu) { return gpu.index == index; })) return Device::cuda(index);
    return missing(gpus.empty() ? why_none : "there are " + std::to_string(gpus.size()) + " usable GPUs, counted from 0");
  }
  throw UsageError("device is \"" + text + "\", expected auto, cpu, cuda, cuda:N or cuda:N-M");
}

Device parse_device(const std::string& text) {
  std::string why_missing;
  if (const std::optional<Device> device = find_device(text, &why_missing)) return *device;
  throw DeviceError(why_missing);
}

MemoryState cpu_memory() {
  MemoryState state;
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemTotal:") state.total = kib * 1024;
    if (key == "MemAvailable:") state.available = kib * 1024;
  }
  // A container can allow less than the machine has.
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  int64_t limit = 0;
  if (limit_file >> limit && limit > 0 && limit < state.total) {
    int64_t used = 0;
    std::ifstream("/sys/fs/cgroup/memory.current") >> used;
    state.total = limit;
    state.available = std::min(state.available, limit - used);
  }
  return state;
}

std::vector<Gpu> gpus(std::string* why_none) { return cuda::gpus(why_none); }

std::string cudnn_version(std::string* why_none) { return cuda::cudnn_version(why_none); }

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string gpu_name(Device device) {
  if (device.is_cuda())
    for (const cuda::Gpu& gpu : cuda::gpus())
      if (gpu.index == device.index) return gpu.name;
  return "";
}

}  // namespace saccade
