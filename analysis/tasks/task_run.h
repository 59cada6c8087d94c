#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/tasks/answers.h"
#include "analysis/tasks/scoring.h"
#include "models/config/config.h"
#include "models/json.h"

namespace saccade {

constexpr int64_t kSymbolSamples = 1000;  ///< examples of a task on symbols, as many as count for all of its items

struct TaskRunOptions {
  int64_t checkpoint = 0;  ///< step; 0: the newest
  std::filesystem::path data;
  TaskItemOptions items;
  Prefix prefix = Prefix::none;
  int64_t max_length = 0;            ///< tokens that the model reads; 0: what it can
  std::string reading = "one_pass";  ///< of choices by a model that looks ahead: TaskResult::reading; of others both are the same
  bool greedy = false;               ///< of choices: also whether greedy decoding writes the right one
  int64_t samples = kSymbolSamples;  ///< of a task on symbols (items.limit, where it is given, is less)
  std::string device = {};           ///< empty: the run's
  int64_t batch = 64;                ///< of generation: answers that are written side by side; changes none of them
  bool shared_contexts = true;       ///< ScoringOptions::shared_contexts
  bool again = false;                ///< even where the result stands in the run
};

/// A run's answers to a task at one checkpoint.
struct TaskResult {
  std::string task, task_hash;
  int64_t version = 1;
  std::string data_hash;
  std::string options;   ///< what is unlike the task's usual options (TaskScoreRecord::options): part of the file's name
  bool partial = false;  ///< not all of the task's items
  int64_t shots = 0, limit = 0, max_length = 0;  ///< limit: 0 where it left nothing out
  bool strict_spaces = false, trim = true, greedy = false;
  Prefix prefix = Prefix::none;
  std::string reading;  ///< of choices by a model that looks ahead: "one_pass", one forward over context and choice, or
                        ///< "stepwise", each token of the choice from what stands before it; else empty
  int64_t step = 0;
  std::string checkpoint_hash;  ///< checkpoint_hash (analysis/runs/checkpoint_file.h)
  std::string device, precision;
  int64_t cut = 0;     ///< items of which something was cut off at the beginning
  double chance = 0;   ///< chance_level
  std::string metric;  ///< the one that tables give
  std::vector<TaskScore> scores;
  std::vector<ItemScore> items;      ///< of choices
  std::vector<AnswerScore> answers;  ///< of generation and symbols
  bool cached = false;               ///< read from the run, not computed
  bool cut_choices = false;          ///< written by a version that counted choices in `cut`, not items
  // Where the items came from, by which they are found again; no part of what decides whether two results are the same.
  std::filesystem::path data, task_file;    ///< as TaskRunOptions::data and Task::own_file, absolute; empty: none, or not known
  uint64_t seed = 42;                       ///< of generated prompts
  std::filesystem::path adjectives, nouns;  ///< TaskItemOptions', absolute; empty: those that ship
  /// The score of the task's own metric.
  const TaskScore& score() const;
  bool is_whole() const { return !scores.empty(); }
};
nlohmann::json to_json(const TaskResult& result);

struct TaskProgress {
  std::function<void(const std::string& line)> message;
  std::function<void(double fraction)> done;
};

/// Scores a task's items with a run's checkpoint and keeps the result as RUN/tasks/TASK-step-N.json, or TASK-step-N-OPTIONS.json where
/// options are unlike the usual ones, so that none takes another's place, and its scores in the run's journal and results.h5 unless a
/// process is training there (`progress` hears of it; the next evaluation adds them). A generated task has its difficulty
/// (at_difficulties). The same task, data, checkpoint and options are not computed twice; what was stopped goes on with what is left.
/// Throws UsageError, DataError (nothing half-written stands then), DeviceError. With `stop` raised returns what is not whole: scores and
/// items are empty.
TaskResult evaluate_task(const std::filesystem::path& directory, const Task& task, const TaskRunOptions& options,
                         const TaskProgress& progress, const std::atomic<bool>& stop);

/// Text that needles are hidden in: the file `data`, else test text of the first training domain; empty where the task needs none. Throws
/// UsageError where the run was trained on no text.
std::string task_haystack(const RunConfig& config, const Task& task, const std::filesystem::path& data);

/// The result of a task ("s-niah-2-4096") at a step; of several with different options the one that figures show (is_preferred). Throws
/// DataError where the run has none, or a damaged one.
TaskResult read_task_result(const std::filesystem::path& directory, const std::string& task, int64_t step);
/// All results of a task at a step, by their options. Throws DataError where one is damaged.
std::vector<TaskResult> read_task_results(const std::filesystem::path& directory, const std::string& task, int64_t step);
/// The file of a result, below its run.
std::filesystem::path task_result_file(const TaskResult& result);
/// Whether a process ended between a result of items and its record in the run; evaluate_task() adds that, and scores nothing again.
bool task_result_is_cut_short(const std::filesystem::path& directory, const TaskResult& result);
/// Results that stand in a run, sorted by task, step and options. Throws DataError where one is damaged.
std::vector<TaskResult> read_task_results(const std::filesystem::path& directory);

}  // namespace saccade
