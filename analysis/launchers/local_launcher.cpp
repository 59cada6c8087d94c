#include "analysis/launchers/local_launcher.h"

#include <algorithm>

#include "analysis/studies/study_queues.h"
#include "analysis/training/training_run.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

std::string place_of(const std::vector<DeviceQueue>& queues) {
  std::string names;
  for (const DeviceQueue& queue : queues) names += (names.empty() ? "" : ", ") + queue.device();
  return (queues.size() > 1 ? "queues of " : "queue of ") + names;
}

/// The study's entry leaves this queue; how many there were.
int64_t take_study_out(const DeviceQueue& queue, const fs::path& study) {
  const auto is_it = [&](const QueueEntry& e) { return e.directory == study; };
  const std::vector<QueueEntry> entries = queue.read().entries;
  if (std::none_of(entries.begin(), entries.end(), is_it)) return 0;
  int64_t taken = 0;
  queue.edit([&](QueueState& state) { taken = static_cast<int64_t>(std::erase_if(state.entries, is_it)); });
  return taken;
}

}  // namespace

LocalLauncher::LocalLauncher(fs::path study, fs::path program) : study_(std::move(study)), program_(std::move(program)) {}

std::string LocalLauncher::place() const { return place_of(queues_of(view_study(study_))); }

Launched LocalLauncher::go_on() {
  const std::vector<DeviceQueue> queues = queues_of(view_study(study_));
  for (const DeviceQueue& other : DeviceQueue::all())  // it may have been spread over more devices before
    if (std::none_of(queues.begin(), queues.end(), [&](const DeviceQueue& queue) { return queue.device() == other.device(); }))
      take_study_out(other, fs::absolute(study_).lexically_normal());
  Launched launched{.place = place_of(queues), .paused = true};
  for (const DeviceQueue& queue : queues) {
    launched.entry += (launched.entry.empty() ? "" : ", ") + std::to_string(enqueue_study(queue, study_));
    queue.ensure_worker(program_);
    launched.paused = launched.paused && queue.read().paused;
  }
  return launched;
}

std::vector<LaunchedJob> LocalLauncher::jobs() {
  std::vector<LaunchedJob> jobs;
  for (const DeviceQueue& queue : DeviceQueue::all())
    for (const QueueEntry& entry : queue.read().entries)
      if (entry.directory == fs::absolute(study_).lexically_normal()) jobs.push_back({std::to_string(entry.id), "queued", "", {}, true});
  return jobs;
}

Stopped LocalLauncher::stop() {
  edit_study_state(study_, [](StudyState& state) { state.stopped = true; });  // for runs that hold no lock yet
  const fs::path absolute = fs::absolute(study_).lexically_normal();
  Stopped stopped;
  for (const DeviceQueue& queue : DeviceQueue::all()) stopped.jobs += take_study_out(queue, absolute);
  std::error_code none;
  for (const auto& run : fs::directory_iterator(study_ / "runs", none)) stopped.running += is_live(run.path()) && stop_run(run.path());
  return stopped;
}

}  // namespace saccade
