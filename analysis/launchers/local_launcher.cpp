#include "analysis/launchers/local_launcher.h"

#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "analysis/training/training_run.h"

namespace saccade {

namespace fs = std::filesystem;

namespace {

DeviceQueue queue_of(const fs::path& study) { return DeviceQueue(queue_device(view_study(study).wanted.front().run.config)); }

}  // namespace

LocalLauncher::LocalLauncher(fs::path study, fs::path program) : study_(std::move(study)), program_(std::move(program)) {}

std::string LocalLauncher::place() const { return "queue of " + queue_of(study_).device(); }

Launched LocalLauncher::go_on() {
  const DeviceQueue queue = queue_of(study_);
  const int64_t id = enqueue_study(queue, study_);
  queue.ensure_worker(program_);
  return {.place = "queue of " + queue.device(), .entry = std::to_string(id), .paused = queue.read().paused};
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
  for (const DeviceQueue& queue : DeviceQueue::all())
    queue.edit([&](QueueState& state) {
      stopped.jobs += static_cast<int64_t>(std::erase_if(state.entries, [&](const QueueEntry& e) { return e.directory == absolute; }));
    });
  std::error_code none;
  for (const auto& run : fs::directory_iterator(study_ / "runs", none)) stopped.running += is_live(run.path()) && stop_run(run.path());
  return stopped;
}

}  // namespace saccade
