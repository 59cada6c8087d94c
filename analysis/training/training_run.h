#pragma once
#include <atomic>
#include <filesystem>
#include <functional>

#include "analysis/runs/run.h"
#include "models/config/config.h"
#include "models/training/decoder.h"
#include "models/training/ranks.h"

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
/// With several ranks it is called on rank 0, while the others follow (models/training/rank_orders.h); what is written is the same but for
/// times and memory.
RunState train_run(const RunConfig& config, const std::filesystem::path& directory, const RunProgress& progress,
                   const std::atomic<bool>& stop, const Ranks& ranks = {});

/// How a run goes on that is not to repeat what it did.
struct ResumeOptions {
  std::optional<int64_t> from;       ///< the step of a checkpoint, 0: the initial weights; what is behind it is removed
  std::vector<std::string> changes;  ///< "training.learning_rate=0.0005": settings of the optimizer alone
  bool skip_batch = false;           ///< pass over the batch that it diverged on
  bool take_over = false;            ///< a writer on another machine that gives no sign of life is gone, the user says
  bool none() const { return !from && changes.empty() && !skip_batch; }
};

/// Goes on from the newest good checkpoint, exactly as the uninterrupted run would have.
/// A run that ended before its first checkpoint starts again from its config; of a finished run nothing is done but that results.h5 is
/// written again where it is not what the journal says, unless the end of its journal is lost (Run::damage). Damaged checkpoints are
/// reported and passed over. Where the journal lost records, it goes on from a checkpoint before them, if there is one, so that they are
/// recorded again. Throws DataError when a live process holds the run, every checkpoint is damaged, the config in run.json is no longer
/// the one the run was trained with (saying what differs; `options` changes it on purpose, as far as that can be done), or the corpus is
/// no longer the one it was trained on. Of a run that diverged `options` must say what is to be different, else UsageError; without
/// `from` it goes back to the last checkpoint before the loss left its course, or to the beginning.
RunState resume_run(const std::filesystem::path& directory, const RunProgress& progress, const std::atomic<bool>& stop,
                    const ResumeOptions& options = {}, const Ranks& ranks = {});

/// A run that goes on from a checkpoint of another one, which is only read.
struct Fork {
  std::filesystem::path parent;
  int64_t step = 0;                         ///< of the checkpoint; 0: the newest
  std::vector<std::string> overrides = {};  ///< "training.steps=2000"; a fork needs more steps than it has done
};
/// The config that a fork trains with. Throws UsageError, DataError.
RunConfig fork_config(const Fork& fork);
/// Trains the fork in a new directory as train_run does. The weights, the optimizer's state, the counts of steps and tokens and, unless the
/// text or its order changes, the place in the text are the parent's; run.json has in "parent" its path, name, step and the SHA-256 of the
/// checkpoint. Throws UsageError when there is no such checkpoint, when the steps are done already and when the model's or the optimizer's
/// tensors would differ, with the differences in words.
RunState fork_run(const Fork& fork, const RunConfig& config, const std::filesystem::path& directory, const RunProgress& progress,
                  const std::atomic<bool>& stop, const Ranks& ranks = {});

/// Sends SIGTERM to the live process of a run; false when none is live. Throws DataError when it lives on another host.
bool stop_run(const std::filesystem::path& directory);
bool is_live(const std::filesystem::path& directory);

/// A run's weights at a checkpoint for running them forward only (step 0: the newest); the corpus need not be there. An empty
/// `device` is the run's own. Throws DataError when that checkpoint is damaged, the newest too (naming the others: none is taken in
/// its place unasked), or run.json has another config than the checkpoint.
struct LoadedModel {
  RunConfig config;
  int64_t step = 0;
  std::string corpus_hash;  ///< of the text it was trained on
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<InferenceModel> model;
  int64_t rows() const;  ///< of embedding and logits: the tokenizer's tokens, padded
};
LoadedModel load_model(const std::filesystem::path& directory, int64_t step = 0, const std::string& device = {});

}  // namespace saccade
