#include "analysis/studies/study_queues.h"

#include <algorithm>
#include <sstream>
#include <thread>

namespace saccade {

namespace {

/// Runs at a time of a device's queue, where it has one: asking makes none.
int64_t jobs_of_queue(const std::string& device) try {
  for (const DeviceQueue& queue : DeviceQueue::all())
    if (queue.device() == device) return queue.read().jobs;
  return 1;
} catch (const Error&) {  // whoever works with the queue is told of it
  return 1;
}

/// Of these the ones that this machine has.
std::vector<std::string> there(const std::vector<std::string>& devices) {
  std::vector<std::string> found;
  for (const std::string& device : devices) try {
      found.push_back(to_string(parse_device(device)));
    } catch (const Error&) {
    }
  return found;
}

int64_t processes_on(const std::string& device, const std::string& jobs) {
  const int64_t wanted = jobs.empty() ? jobs_of_queue(device) : parse_jobs(jobs);
  if (wanted != kJobsAsPays) return wanted;
  return device == "cpu" ? std::max<int64_t>(1, std::thread::hardware_concurrency()) : 1;
}

/// Where the queue has the study's runs, if that device is here.
std::string device_of_configs(const StudyView& view) try { return queue_device(view.wanted.front().run.config); } catch (const Error&) {
  return {};
}

}  // namespace

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

StudyWorkers workers_of(const StudyView& view, const std::string& devices, const std::string& jobs) {
  const std::vector<std::string> named = devices.empty() ? there(view.state.devices) : parse_devices(devices);
  std::vector<std::pair<std::string, int64_t>> places;  // with their processes
  for (const std::string& device : named) places.emplace_back(device, processes_on(device, jobs));
  if (named.empty())
    if (const std::string device = device_of_configs(view); !device.empty()) places.emplace_back("", processes_on(device, jobs));
  StudyWorkers workers;
  for (int64_t round = 0; workers.devices.size() < 1024; ++round) {  // the first pieces go to as many devices as there are
    const size_t before = workers.devices.size();
    for (const auto& [device, processes] : places)
      if (round < processes) workers.devices.push_back(device);
    if (workers.devices.size() == before) break;
  }
  return workers;
}

}  // namespace saccade
