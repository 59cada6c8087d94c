#pragma once
#include "analysis/runs/checkpoint_keeper.h"
#include "analysis/runs/run_writer.h"
#include "analysis/training/loss_course.h"
#include "analysis/training/training_run.h"
#include "models/training/plan.h"

namespace saccade {

/// What training reads besides its config: made once, before a run directory is touched.
struct TrainingInput {
  Corpus corpus;
  std::unique_ptr<Tokenizer> tokenizer;
  Plan plan;
  std::vector<FrozenBatch> evaluation;
  std::unique_ptr<Trainer> trainer;
};
/// `tokenizer` may be given (from a checkpoint). Throws UsageError, DataError, DeviceError.
TrainingInput prepare_training(const RunConfig& config, const RunProgress& progress, std::unique_ptr<Tokenizer> tokenizer = {});

/// Steps, evaluates, probes, captures and writes checkpoints as the config says until the end, a non-finite number or `stop`.
/// A checkpoint comes before what is measured at its step; a run resumed from it first measures what the journal then lacks.
class TrainingLoop {
 public:
  TrainingLoop(RunWriter& writer, TrainingInput& input, CheckpointKeeper keeper, const RunProgress& progress)
      : writer_(writer), input_(input), keeper_(std::move(keeper)), progress_(progress) {
    const CourseSoFar so_far = course_so_far(writer.info().directory);
    course_ = so_far.course;
    if (so_far.on_course) keeper_.keep(*so_far.on_course);
  }
  RunState run(const std::atomic<bool>& stop);

 private:
  /// The last steps that were evaluated and probed, and whether this one was captured.
  struct Measured {
    int64_t evaluation = -1, statistics = -1;
    bool captures = false;
  };
  void observe(const StepRecord& step);
  void measure(const StepRecord& step, const Measured& have);  ///< what is due and not there
  void measure_what_is_missing(const StepRecord& step);
  void write_checkpoint(const StepRecord& step);
  RunState end_diverged(const StepRecord& step);
  RunState end(RunState state, int64_t step, const std::string& message);
  bool due(int64_t every, int64_t step) const;
  void tell(const std::string& line);

  RunWriter& writer_;
  TrainingInput& input_;
  CheckpointKeeper keeper_;
  const RunProgress& progress_;
  LossCourse course_;
  std::optional<EvaluationRecord> last_evaluation_;
};

}  // namespace saccade
