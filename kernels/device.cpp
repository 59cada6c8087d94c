#include "kernels/device.h"

#include <fstream>
#include <limits>
#include <sstream>

#include "kernels/error.h"

namespace saccade {

std::string to_string(Device device) {
  switch (device.kind) {
    case Device::Kind::cpu: return "cpu";
    case Device::Kind::plan: return "plan";
    case Device::Kind::cuda: return "cuda:" + std::to_string(device.index);
  }
  return "unknown";
}

Device parse_device(const std::string& text) {
  if (text == "cpu" || text == "auto") return Device::cpu();
  if (text == "cuda" || text.rfind("cuda:", 0) == 0)
    throw DeviceError("device \"" + text + "\": this version has no CUDA engine; use \"cpu\" or \"auto\"");
  throw UsageError("device is \"" + text + "\", expected auto, cpu, cuda or cuda:N");
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

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace saccade
