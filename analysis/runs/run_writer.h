#pragma once
#include <filesystem>

#include "analysis/runs/journal.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_lock.h"

namespace saccade {

/// The one writer of a run directory, for as long as it lives: holds the lock, keeps run.json, journal.jsonl, log.txt,
/// captures/ and results.h5. Everything throws DataError; what was written before stays good.
class RunWriter {
 public:
  /// Starts a run in a new or empty directory. Throws UsageError when it holds something else, DataError when a live process
  /// holds it. `info` needs everything but the state.
  /// Throws as `create` would, before there is anything to write.
  static void require_free(const std::filesystem::path& directory);
  static RunWriter create(const std::filesystem::path& directory, RunInfo info);
  /// Takes up a run that no process holds; `report` hears what had to be cut from a torn journal, and what it lost. `take_over`, `stop`:
  /// see LeaseWish.
  static RunWriter take_up(const std::filesystem::path& directory, const std::function<void(const std::string&)>& report,
                           bool take_over = false, const std::atomic<bool>* stop = nullptr);

  const RunInfo& info() const { return info_; }
  /// Throws RunInUse when another process took the run over. All that this object writes comes behind it; who writes to the run otherwise
  /// calls it before.
  void require() const { lock_.require(); }
  /// That the file system has no locks, in one line; empty where it has. log.txt has it.
  const std::string& lock_note() const { return lock_.note(); }
  void set_state(RunState state, int64_t step, const std::string& message = "");
  /// State `failed`, in run.json alone, for the journal may be what failed. Throws nothing: the error that led here matters.
  void record_failure(int64_t step, const std::string& message) noexcept;
  void set_step(int64_t step);  ///< in run.json, behind all records so far
  /// From which of these steps of checkpoints all can be recorded again that the journal lost, as far as one of them lies before it;
  /// nothing when none does or nothing is lost.
  std::optional<int64_t> step_before_loss(const std::vector<int64_t>& checkpoints) const;
  /// The run goes on from this step with another config; the provenance keeps what was changed: `changes`, each as given to --set.
  void change_config(int64_t step, const nlohmann::json& config, const std::vector<std::string>& changes);
  /// Batches at this data position are passed over from now on, in this run for ever.
  void skip_batch(uint64_t position);
  /// Removes checkpoints and captures behind this step, which going back gives up. Throws DataError.
  void give_up_behind(int64_t step);
  /// Training goes on from this step: later records no longer count. What is lost before it stays a hole in the journal.
  void resume_at(int64_t step);

  void add(const StepRecord& step) { append(to_record(step)); }
  void add(const EvaluationRecord& evaluation);
  void add(const DataRecord& data) { append(to_record(data)); }
  void add(const MemoryRecord& memory) { append(to_record(memory)); }
  void add(const StatisticsRecord& statistics) { append(to_record(statistics)); }
  /// Of a run at rest: goes to disk at once, and run.json knows of it.
  void add(const TaskScoreRecord& scores);
  void add(int64_t step, const std::vector<Capture>& captures);
  void sync() { journal_.sync(); }
  /// Builds results.h5 from the journal.
  void write_results();
  /// A line of log.txt, with the time. A line that cannot be written is no reason to end a run; `log_problem` says so.
  void log(const std::string& line);
  /// Why the first line that is missing in log.txt is missing; empty when none is.
  const std::string& log_problem() const { return log_problem_; }

 private:
  RunWriter(RunLock lock, RunInfo info, const std::function<void(const std::string&)>& report);
  void append(const Record& record);
  void save_info();
  int64_t intact_step(const JournalHole& hole) const;

  RunLock lock_;
  RunInfo info_;
  JournalWriter journal_;
  Descriptor log_;
  std::string log_problem_;
};

/// A line of a run's log.txt, as RunWriter::log, from a process that is not its writer; nothing where there is no log.txt.
void append_log_line(const std::filesystem::path& directory, const std::string& line) noexcept;

}  // namespace saccade
