#pragma once
#include <atomic>
#include <filesystem>
#include <functional>

#include "analysis/runs/run.h"
#include "models/config/config.h"
#include "models/training/decoder.h"

namespace saccade {

/// What a person at a terminal wants to see of a run in progress.
struct RunProgress {
  std::function<void(const std::string& line)> message;  ///< preparation, checkpoints, warnings
  std::function<void(const StepRecord&, const EvaluationRecord* last)> step;
};

/// Trains in `directory` until the end, a non-finite loss, or `stop` (then checkpoint and stop): prepares corpus and
/// tokenizer, writes run.json, journal, captures, checkpoints, results.h5 and log.txt, holds the lock.
/// A new directory is created (or an empty one used); throws UsageError when it holds something else, DataError when a live
/// process holds it. Returns the state it ended in. Errors while training leave state `failed` with the message and are rethrown.
RunState train_run(const RunConfig& config, const std::filesystem::path& directory, const RunProgress& progress,
                   const std::atomic<bool>& stop);

/// How a run goes on that is not to repeat what it did.
struct ResumeOptions {
  std::optional<int64_t> from;       ///< the step of a checkpoint, 0: the initial weights; what is behind it is removed
  std::vector<std::string> changes;  ///< "training.learning_rate=0.0005": settings of the optimizer alone
  bool skip_batch = false;           ///< pass over the batch that it diverged on
  bool none() const { return !from && changes.empty() && !skip_batch; }
};

/// Goes on from the newest good checkpoint, exactly as the uninterrupted run would have.
/// A run that ended before its first checkpoint starts again from its config; finished runs return at once. Damaged checkpoints
/// are reported and passed over. Throws DataError when a live process holds the run, every checkpoint is damaged, or the
/// corpus is no longer the one it was trained on. Of a run that diverged `options` must say what is to be different, else UsageError;
/// without `from` it goes back to the last checkpoint before the loss left its course, or to the beginning.
RunState resume_run(const std::filesystem::path& directory, const RunProgress& progress, const std::atomic<bool>& stop,
                    const ResumeOptions& options = {});

/// Sends SIGTERM to the live process of a run; false when none is live. Throws DataError when it lives on another host.
bool stop_run(const std::filesystem::path& directory);
bool is_live(const std::filesystem::path& directory);

/// A run's weights at a checkpoint for running them forward only (step 0: the newest); the corpus need not be there. An empty
/// `device` is the run's own.
struct LoadedModel {
  RunConfig config;
  int64_t step = 0;
  std::string corpus_hash;  ///< of the text it was trained on
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<InferenceModel> model;
};
LoadedModel load_model(const std::filesystem::path& directory, int64_t step = 0, const std::string& device = {});

}  // namespace saccade
