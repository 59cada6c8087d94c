#pragma once
#include "analysis/runs/checkpoint_keeper.h"
#include "analysis/runs/file_thread.h"
#include "analysis/runs/run_writer.h"
#include "analysis/training/branches.h"
#include "analysis/training/loss_course.h"
#include "analysis/training/training_run.h"
#include "kernels/engine/clock.h"
#include "models/training/plan.h"

namespace saccade {

/// What training reads besides its config: made once, before a run directory is touched.
struct TrainingInput {
  RunConfig config;
  Corpus corpus;
  std::unique_ptr<Tokenizer> tokenizer;
  Plan plan;
  std::vector<FrozenBatch> evaluation;
  Ranks ranks;
  std::unique_ptr<Trainer> trainer;
  std::vector<std::shared_ptr<const SequenceStore>> stores;  ///< of the training domains, in their order
  std::vector<int64_t> domain_tokens;                        ///< of their text; empty for a generated task
  ProbedChoices choices = {};                                ///< at the last probe
  std::map<std::string, double> spent = {};                  ///< seconds, by what preparing went to

  /// A trainer at the start; the one before goes first, with its memory.
  void renew_trainer();
  /// The config of a branch, or the trunk's again: the same but for steps and learning rates.
  void follow(const RunConfig& other);
};
/// `tokenizer` may be given (from a checkpoint). Throws UsageError, DataError, DeviceError.
TrainingInput prepare_training(const RunConfig& config, const RunProgress& progress, const Ranks& ranks = {},
                               std::unique_ptr<Tokenizer> tokenizer = {});

/// Steps, evaluates, probes, captures and writes checkpoints as the config says until the end, a non-finite number or `stop`.
/// A checkpoint comes before what is measured at its step; a run resumed from it first measures what the journal then lacks. Checkpoints,
/// captures and results.h5 are written by threads while training goes on: a checkpoint is whole before the next one begins, on the CPU
/// before statistics are probed, which may need memory that is not there and so end the process (on a GPU it is an error, behind which
/// files are still finished), and before the run stops, ends or branches off. What it holds is a copy; where that would be larger than
/// kCopiedState on the CPU, training waits instead. A branch takes the trunk's trainer and the copy, if there is one; else it is a training
/// of its own, for which the trunk's makes room.
class TrainingLoop {
 public:
  /// Runs a branch that begins behind the step's checkpoint to its end, or on from where it was. With `start`, the state there, it begins
  /// with the trunk's trainer; without, that is not there.
  using RunBranch = std::function<RunState(int64_t step, const Checkpoint* start)>;

  TrainingLoop(RunWriter& writer, TrainingInput& input, CheckpointKeeper keeper, const RunProgress& progress, RunBranch branch)
      : writer_(writer), input_(input), keeper_(std::move(keeper)), progress_(progress), branch_(std::move(branch)) {
    const std::filesystem::path& directory = writer.info().directory;
    const RunHistory history = recorded_history(directory);
    const CourseSoFar so_far = course_so_far(directory, history);
    course_ = so_far.course;
    if (so_far.on_course) keeper_.keep(*so_far.on_course);
    if (const Series* losses = history.find("validation/loss"); losses && !losses->step.empty())
      measured_.evaluation = static_cast<int64_t>(losses->step.back()), validation_ = *losses;
    for (const int64_t step : passed_losses(input.config.training, validation_)) keeper_.keep_always(step);
    if (!history.statistics().empty()) measured_.statistics = history.statistics().back().at.step;
  }
  RunState run(const std::atomic<bool>& stop);

 private:
  static constexpr int64_t kCopiedState = int64_t{256} << 20;
  /// The last steps that were evaluated and probed, and whether the one at hand was captured.
  struct Measured {
    int64_t evaluation = -1, statistics = -1;
    bool captures = false;
  };
  void observe(const StepRecord& step);
  void observe_start(const StepRecord& start);
  void measure(const StepRecord& step, const Measured& have);  ///< what is due and not there
  void measure_what_is_missing(const StepRecord& step);
  /// Branches that begin from step `first` to the one at hand, whose checkpoint is there, and have not ended.
  void run_branches(int64_t first, const StepRecord& step);
  /// Where branches begin, as far as that is known yet.
  std::vector<int64_t> branch_starts() const;
  /// Of an evaluation that comes to a loss at which a branch begins: its checkpoint stays, and is written where `checkpoint` says it is
  /// not.
  void begin_at_loss(const StepRecord& step, bool checkpoint);
  void write_checkpoint(const StepRecord& step);
  void begin_checkpoint(const StepRecord& step);
  bool state_is_copied() const;  ///< whether training goes on while a checkpoint is written
  void evaluate_finally(const StepRecord& step);
  /// Whether every domain of the task that is trained on was answered as well as the config asks for.
  bool solved(const StepRecord& step) const;
  RunState end_solved(const StepRecord& step);
  RunState end_diverged(const StepRecord& step);
  /// Does what is counted under this name.
  template <class Action>
  void timed(const char* name, Action&& action) {
    const double start = now();
    action();
    spent_[name] += now() - start;
  }
  /// The same for the threads that write files.
  template <class Action>
  void timed_aside(const char* name, Action&& action) {
    const double start = now();
    action();
    const std::lock_guard lock(written_mutex_);
    written_aside_[name] += now() - start;
  }
  void log_times(const char* what, double seconds, const std::map<std::string, double>& spent);
  void log_times(const char* what, const std::map<std::string, double>& spent);  ///< with their sum; nothing where there are none
  RunState end(RunState state, int64_t step, const std::string& message);
  bool due(int64_t every, int64_t step) const;
  void tell(const std::string& line);
  /// Tells what was written meanwhile; rethrows its error.
  void tell_written();
  void wait_for_files();  ///< until all that was given away is written

  RunWriter& writer_;
  TrainingInput& input_;
  CheckpointKeeper keeper_;
  const RunProgress& progress_;
  RunBranch branch_;
  std::shared_ptr<const Checkpoint> branch_start_;  ///< what was copied for the last checkpoint, where branches begin there
  LossCourse course_;
  Measured measured_;  ///< when the loop began
  Series validation_;  ///< losses so far
  std::mutex written_mutex_;
  std::vector<std::string> written_;             ///< lines about files that the thread has written
  std::map<std::string, double> written_aside_;  ///< seconds of those threads
  double began_ = now();
  std::map<std::string, double> spent_;  ///< seconds since, by what they went to
  FileThread files_, captures_;          ///< end first: what they work on is above
  std::optional<EvaluationRecord> last_evaluation_;
};

}  // namespace saccade
