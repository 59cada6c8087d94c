#include "app/cli/study_wait.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "analysis/studies/study_folder.h"
#include "app/cli/command.h"
#include "app/cli/study_counts.h"
#include "app/cli/this_program.h"
#include "kernels/engine/clock.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace fs = std::filesystem;

namespace {

constexpr double kSilence = 3;        ///< seconds without anything of the study at work, until it is said why
constexpr double kPatience = 20;      ///< seconds without a worker, until waiting ends
constexpr double kBetweenStarts = 1;  ///< seconds that a worker has to take its queue's lock
constexpr int kMostStarts = 5;        ///< of workers, while the study comes no further

/// The last line of a worker's log; empty where there is none.
std::string last_words(const fs::path& log) {
  constexpr std::streamoff kMost = 1000;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size <= 0) return {};
  file.seekg(std::max<std::streamoff>(0, size - kMost));
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

class Waiting {
 public:
  Waiting(const fs::path& study, const std::vector<DeviceQueue>& queues)
      : study_(study), absolute_(fs::absolute(study).lexically_normal()), queues_(queues), bar_(study.filename().string()) {}

  /// Whether it is over.
  bool look() {
    const StudyView view = view_study(study_);
    const std::string how_far = counts(view);
    bar_.update(share_ended(view), how_far);
    if (view.complete()) return true;
    if (const std::string why = view.blocked(); !why.empty()) throw Error(study_.string() + ": " + why);
    const bool at_work =
        std::any_of(view.wanted.begin(), view.wanted.end(), [](const WantedRun& w) { return w.status == WantedRun::Status::live; });
    if (at_work || how_far != how_far_) how_far_ = how_far, last_sign_ = now(), starts_ = 0, said_.clear();
    look_at_queues(at_work);
    return false;
  }

 private:
  void look_at_queues(bool at_work) {
    bool queued = false, worked = false, paused = true;
    std::string waits_for;
    for (const DeviceQueue& queue : queues_) {
      const QueueState state = queue.read();
      const auto worker = queue.worker();
      const auto entry =
          std::find_if(state.entries.begin(), state.entries.end(), [&](const QueueEntry& e) { return e.directory == absolute_; });
      worked |= worker.has_value();
      if (entry == state.entries.end()) continue;
      queued = true, paused = paused && state.paused;
      if (!worker && !state.paused) start_worker(queue);
      waits_for += (waits_for.empty() ? "" : "; ") + what_of(queue, state, entry - state.entries.begin(), worker);
    }
    if (!queued && !worked)
      if (const StudyView view = view_study(study_); !view.complete())
        throw Error(study_.string() + ": " +
                    (view.state.left_queue.empty() ? "left the queue; see saccade study status" : view.state.left_queue));
    if (worked || paused || at_work) last_worker_ = now();
    if (queued && !at_work && now() - last_sign_ > kSilence) tell(waits_for);
    if (queued && (starts_ > kMostStarts || now() - last_worker_ > kPatience))
      throw Error(study_.string() + " waits in vain for " + waits_for);
  }

  void start_worker(const DeviceQueue& queue) {
    if (now() - last_start_ < kBetweenStarts) return;
    last_start_ = now();
    try {
      if (queue.ensure_worker(this_program())) ++starts_;
      not_started_.clear();
    } catch (const Error& error) {
      not_started_ = error.what();
    }
  }

  std::string what_of(const DeviceQueue& queue, const QueueState& state, std::ptrdiff_t before,
                      const std::optional<LockHolder>& worker) const {
    const std::string name = "the queue of " + queue.device(), log = " (its log: " + queue.log_file().string() + ")";
    if (state.paused) return name + " is paused; saccade queue go-on --device " + queue.device();
    if (!worker && !not_started_.empty()) return not_started_;
    if (!worker) {
      const std::string last = last_words(queue.log_file());
      return "the worker of " + name + ", which has ended or takes long to start" + log + (last.empty() ? "" : "; it said last: " + last);
    }
    const std::string by = ", which " + describe(*worker) + " works off" + log;
    if (before > 0) return name + by + ": " + std::to_string(before) + (before == 1 ? " entry stands" : " entries stand") + " before it";
    return name + by + ": it has begun none of the runs yet";
  }

  void tell(const std::string& waits_for) {
    if (waits_for == said_) return;
    said_ = waits_for;
    bar_.clear();
    say("waits for " + waits_for);
  }

  const fs::path& study_;
  const fs::path absolute_;
  const std::vector<DeviceQueue>& queues_;
  Progress bar_;
  std::string how_far_, said_, not_started_;
  double last_sign_ = now(), last_worker_ = now(), last_start_ = -kBetweenStarts;
  int starts_ = 0;
};

}  // namespace

int wait_for_study(const fs::path& study, const std::vector<DeviceQueue>& queues) {
  catch_stop_signals();
  Waiting waiting(study, queues);
  while (!stop_requested()) {
    if (waiting.look()) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  return 130;
}

}  // namespace saccade::cli
