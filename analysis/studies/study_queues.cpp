#include "analysis/studies/study_queues.h"

#include <algorithm>
#include <sstream>

namespace saccade {

std::vector<std::string> parse_devices(const std::string& text) {
  std::vector<std::string> devices;
  const auto add = [&](const std::string& name) {
    const std::string device = to_string(parse_device(name));
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) throw UsageError("--devices names " + device + " twice");
    devices.push_back(device);
  };
  if (text == "all") {
    std::string why;
    for (const Gpu& gpu : gpus(&why)) add("cuda:" + std::to_string(gpu.index));
    if (devices.empty()) throw DeviceError("--devices all: " + why);
    return devices;
  }
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::optional<GpuRange> range = gpu_range(word);
    if (!range && word != "cpu" && !word.starts_with("cuda:"))
      throw UsageError("--devices has \"" + word + "\"; expected all, or a list of cuda:N, cuda:N-M and cpu");
    if (!range) add(word);
    for (int i = range ? range->first : 1; i <= (range ? range->last : 0); ++i) add("cuda:" + std::to_string(i));
  }
  if (devices.empty()) throw UsageError("--devices is empty; expected all, or a list of cuda:N, cuda:N-M and cpu");
  return devices;
}

std::vector<DeviceQueue> queues_of(const StudyView& view) {
  std::vector<DeviceQueue> queues;
  for (const std::string& device : view.state.devices) queues.emplace_back(device);
  if (queues.empty()) queues.emplace_back(queue_device(view.wanted.front().run.config));
  return queues;
}

}  // namespace saccade
