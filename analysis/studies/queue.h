#pragma once
#include <functional>

#include "analysis/runs/run_lock.h"
#include "kernels/engine/device.h"
#include "models/config/config.h"

namespace saccade {

/// Something that waits for a device: a study, or one run to train or to take up again.
struct QueueEntry {
  int64_t id = 0;
  std::string kind;                 ///< study or run
  std::filesystem::path directory;  ///< of the study, or of the run
  nlohmann::json config;            ///< of a run that has not begun; null for one that has, and for a study
  std::string added;                ///< UTC
};

/// As many runs at a time as pay: on a GPU by what they make together (DeviceSharing), on the CPU by its cores.
inline constexpr int64_t kJobsAsPays = 0;

/// An entry that was taken out, and where it stood: to be put back.
struct TakenEntry {
  QueueEntry entry;
  size_t place = 0;
};

struct QueueState {
  bool paused = false;
  bool stop_runs = false;  ///< while paused: those at work stop at a checkpoint
  int64_t jobs = 1;        ///< runs at a time, as far as the memory of the device reaches; kJobsAsPays
  int64_t next_id = 1;
  std::vector<QueueEntry> entries;  ///< in their order
  std::vector<TakenEntry> taken;    ///< the last that were taken out, at most kMostTaken
};
inline constexpr size_t kMostTaken = 20;

/// The queue of one device of this machine: a folder with queue.json, changed under a lock, and the lock of the one process that works it
/// off. Locks end with their processes, and queue.json is replaced in one instant, so that kill -9 leaves nothing to mend.
class DeviceQueue {
 public:
  /// `device`: "cpu", "cuda:0".
  explicit DeviceQueue(const std::string& device);
  /// Those that have a folder on this machine.
  static std::vector<DeviceQueue> all();

  const std::string& device() const { return device_; }
  const std::filesystem::path& folder() const { return folder_; }
  QueueState read() const;
  /// Reads, changes and writes under the lock; returns what was written. Throws what `change` throws, and then nothing is changed.
  QueueState edit(const std::function<void(QueueState&)>& change) const;

  std::optional<LockHolder> worker() const;
  /// Starts `program` queue work --device D as a process of its own, unless there is one or nothing to do; it outlives this process.
  /// Whether it was started. Throws Error.
  bool ensure_worker(const std::filesystem::path& program) const;

  /// What the worker says, a line each.
  std::filesystem::path log_file() const { return folder_ / "log.txt"; }
  std::filesystem::path worker_folder() const { return folder_ / "worker"; }
  std::filesystem::path edit_lock() const { return folder_ / "lock"; }

 private:
  std::string device_;
  std::filesystem::path folder_;
};

/// "auto" or a number from 1 to 64, and back. Throws UsageError.
int64_t parse_jobs(const std::string& text);
std::string jobs_text(int64_t jobs);

/// Adds a study, unless it is there already. The study's id.
int64_t enqueue_study(const DeviceQueue& queue, const std::filesystem::path& study);
int64_t enqueue_run(const DeviceQueue& queue, const std::filesystem::path& run, const nlohmann::json& config);
/// The entry's place in the list, or an UsageError that names those there are. `name`: an id or the path or name of a folder.
size_t find_entry(const QueueState& state, const std::string& name);

void take_out(const DeviceQueue& queue, const std::string& name);  ///< as find_entry()
/// What was taken out under this number, where it stood; not where its folder has come into the queue again meanwhile. Throws UsageError
/// where there is no such entry.
void put_back(const DeviceQueue& queue, int64_t id);

/// The device that a config's run goes to, by its name.
std::string queue_device(const RunConfig& config);

/// Starts a program as a process of its own session, which outlives this one: standard output and error go to `log`. Where it is this
/// program and its file is just being replaced, it is started as it runs here. Returns its id. Throws Error when it cannot be started.
int start_detached(const std::vector<std::string>& command, const Descriptor& log);

/// What a run's process says, emptied for a process that begins it now. It is marked as long as that process lives, also when this one has
/// ended, so that of the workers of several queues one begins a run of a study that stands in them. Nothing where another process has it.
std::optional<Descriptor> claim_log(const std::filesystem::path& log);
/// Whether a process has claimed it.
bool is_claimed(const std::filesystem::path& log);

}  // namespace saccade
