#include "analysis/runs/signs_of_life.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "analysis/runs/run_lock.h"
#include "analysis/runs/run_origin.h"

namespace saccade {
namespace {

double seconds_of(const timespec& time) { return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec); }

double wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return seconds_of(now);
}

}  // namespace

bool SignsOfLife::is_written() {
  if (lock_holder(run_)) return true;
  if (read_run_origin(run_) || held_here(run_)) return false;
  std::string now_seen;
  double newest = 0;
  for (const char* name : {"run.json", "journal.jsonl", "lease"}) {
    struct stat state {};
    if (::stat((run_ / name).c_str(), &state) != 0) continue;
    now_seen +=
        std::to_string(state.st_size) + " " + std::to_string(state.st_mtim.tv_sec) + "." + std::to_string(state.st_mtim.tv_nsec) + "\n";
    newest = std::max(newest, seconds_of(state.st_mtim));
  }
  if (now_seen != seen_) {
    const double age = seen_.empty() ? wall_clock() - newest : 0;  // a change that was watched is new whatever the clocks say
    changed_.reset();
    if (age >= -kLeaseSilence && age < kLeaseSilence)
      changed_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::max(0.0, age)));
    seen_ = now_seen;
  }
  return changed_ && Clock::now() - *changed_ < std::chrono::duration<double>(kLeaseSilence);
}

double seconds_since_arrival(const std::filesystem::path& run) {
  double newest = 0;
  for (const char* name : {"run.json", "journal.jsonl"}) {
    struct stat state {};
    if (::stat((run / name).c_str(), &state) == 0) newest = std::max(newest, seconds_of(state.st_ctim));
  }
  return newest == 0 ? 0 : std::max(0.0, wall_clock() - newest);
}

}  // namespace saccade
