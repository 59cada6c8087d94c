#include "analysis/studies/study_scores.h"

#include <algorithm>
#include <map>

#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/run_info.h"
#include "analysis/tasks/scored_items.h"
#include "analysis/tasks/task_run.h"
#include "analysis/tasks/task_steps.h"
#include "kernels/engine/clock.h"

namespace saccade {
namespace {

namespace fs = std::filesystem;

bool is_of_file(const Task& task) { return task.kind != Task::Kind::symbols && task.generator.empty(); }

/// A task at its difficulty, and how it is scored.
struct WantedTask {
  Task task;
  TaskRunOptions options;
  std::string data_hash;  ///< of a file; empty: it is not at hand
  std::string no_data;    ///< why it is not
};

TaskRunOptions options_of(const StudyTask& entry, const Task& task) {
  TaskRunOptions options;
  options.data = entry.folder.empty() || needs_haystack(task) ? entry.data : entry.folder;
  options.items.limit = entry.limit, options.items.shots = entry.shots, options.items.trim = entry.trim;
  options.items.seed = static_cast<uint64_t>(entry.seed), options.items.strict_spaces = entry.strict_spaces;
  options.prefix = parse_prefix(entry.prefix), options.reading = entry.reading;
  options.max_length = entry.max_length, options.samples = entry.samples;
  return options;
}

/// Looks for the task's file. Throws DataError where it is damaged.
void find_data(WantedTask& wanted) {
  const Task& task = wanted.task;
  if (!is_of_file(task)) return;
  if (wanted.options.data.empty()) {
    wanted.no_data = "it needs " + (task.files.empty() ? "a file" : task.files.front()) + " in the folder that --data names" +
                     (task.origin.empty() ? "" : ". " + task.origin);
    return;
  }
  try {
    wanted.data_hash = read_task_items(task, wanted.options.data, wanted.options.items).hash;
  } catch (const MissingTaskData& error) {
    wanted.no_data = error.what();
  }
}

/// Whether a result has as many items as are wanted.
bool has_the_items(const TaskResult& r, const WantedTask& wanted) {
  const bool of_symbols = wanted.task.kind == Task::Kind::symbols;
  const int64_t asked = wanted.options.items.limit, samples = wanted.options.samples;
  const int64_t limit = !of_symbols ? asked : asked > 0 ? std::min(asked, samples) : samples;
  const auto count = static_cast<int64_t>(r.items.size() + r.answers.size());
  return limit == 0 ? !r.partial : count == limit || (!r.partial && count < limit);
}

bool has_the_options(const TaskResult& r, const WantedTask& wanted) {
  const Task& task = wanted.task;
  const TaskRunOptions& o = wanted.options;
  const int64_t shots = !is_of_file(task) ? 0 : o.items.shots >= 0 ? o.items.shots : task.shots;
  const bool same_length = o.max_length > 0 ? r.max_length == o.max_length : r.options.find("max-length-") == std::string::npos;
  const bool same_seed = task.kind != Task::Kind::generation || task.generator.empty() || r.seed == o.items.seed;
  const fs::path text = o.data.empty() ? fs::path() : fs::absolute(o.data);
  return r.shots == shots && same_length && same_seed && r.prefix == o.prefix && r.trim == o.items.trim &&
         r.strict_spaces == o.items.strict_spaces && (r.reading.empty() || r.reading == o.reading) &&
         (!needs_haystack(task) || r.data == text) && r.adjectives.empty() && r.nouns.empty();
}

/// Whether a result that stands in a run is the one that scoring would make, wherever that would be.
bool is_wanted(const TaskResult& r, const WantedTask& wanted, const fs::path& run) {
  const fs::path checkpoint = step_file(run, kCheckpoints, r.step);
  return r.version == wanted.task.version && r.task_hash == wanted.task.hash && has_the_items(r, wanted) && has_the_options(r, wanted) &&
         (wanted.data_hash.empty() || r.data_hash == wanted.data_hash) && !(r.cut_choices && r.cut > 0) &&
         (!fs::exists(checkpoint) || checkpoint_hash(checkpoint) == r.checkpoint_hash);
}

bool is_to_finish(const TaskResult& result, const fs::path& run) {
  return task_result_is_cut_short(run, result) && fs::exists(step_file(run, kCheckpoints, result.step));
}

/// Runs that have no score for one reason; `all`: no run has one.
std::string remark_of(const std::string& task, const std::string& why, const std::vector<std::string>& runs, bool all) {
  if (all) return "Not scored on " + task + ": " + why;
  std::string names = runs.front();
  if (runs.size() > 1) names += " and " + std::to_string(runs.size() - 1) + " more";
  return "Not scored on " + task + ": " + names + ": " + why;
}

std::string claim_of(const std::string& run) { return run + ".scores"; }

/// Scores a run and keeps the result in it. Throws Error.
TaskResult score(const fs::path& study, const std::string& run, const Task& task, const TaskRunOptions& options,
                 const std::function<void(const std::string&)>& say) {
  const PieceClaim mine(study, claim_of(run));
  const std::atomic<bool> never = false;  // a signal ends the process; what is scored of the items by then is kept
  return evaluate_task(study / "runs" / run, task, options, {say, {}}, never);
}

class Scorer {
 public:
  Scorer(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds, const StudyWorkers& workers)
      : view_(view), say_(say), seconds_(seconds), begun_(now()), workers_(workers) {}

  StudyScores score_all() {
    const std::vector<std::pair<size_t, WantedTask>> all = wanted_tasks();
    if (workers_.side_by_side() && seconds_ > 0) make_side_by_side(all);
    for (const auto& [entry, wanted] : all) score_task(view_.study.tasks[entry], wanted);
    return std::move(scores_);
  }

 private:
  /// With the entries that they are of.
  std::vector<std::pair<size_t, WantedTask>> wanted_tasks() {
    std::vector<std::pair<size_t, WantedTask>> all;
    for (size_t i = 0; i < view_.study.tasks.size(); ++i)
      for (Task& task : tasks_of(view_.study.tasks[i])) {
        WantedTask wanted{std::move(task), {}, {}, {}};
        wanted.options = options_of(view_.study.tasks[i], wanted.task);
        wanted.options.device = workers_.device();
        find_data(wanted);
        all.emplace_back(i, std::move(wanted));
      }
    return all;
  }

  /// What has no result yet and can have one: afterwards it is there, or known why not.
  void make_side_by_side(const std::vector<std::pair<size_t, WantedTask>>& all) {
    std::vector<StudyPiece> pieces;
    for (const auto& [i, wanted] : all) {
      const StudyTask& entry = view_.study.tasks[i];
      if (!wanted.no_data.empty() || !entry.not_made.empty()) continue;
      for (size_t cell = 0; cell < view_.cells.size(); ++cell)
        for (const size_t at : view_.views[cell].wanted)
          if (is_shown(view_.wanted[at], cell)) add_pieces(i, wanted, view_.wanted[at], pieces);
    }
    if (pieces.empty()) return;
    const PiecesDone done = do_pieces(view_.directory, pieces, workers_, say_, seconds_, true);
    scores_.made = done.made;
    for (const auto& [piece, why] : done.failed) failed_[key_of(pieces[piece].request)] = why;
  }

  void add_pieces(size_t entry, const WantedTask& wanted, const WantedRun& run, std::vector<StudyPiece>& pieces) const {
    const StudyTask& task = view_.study.tasks[entry];
    for (const int64_t step : steps_of(task, run))
      if (!found(wanted, run, step, true) && has_checkpoint(run, step))
        pieces.push_back({request_of(entry, wanted, run, step), run.name, line_of(wanted, run, step), true});
  }

  nlohmann::json request_of(size_t entry, const WantedTask& wanted, const WantedRun& run, int64_t step) const {
    return {{"kind", "score"},          {"entry", entry},  {"folder", view_.study.tasks[entry].folder},
            {"task", wanted.task.name}, {"run", run.name}, {"step", step}};
  }

  /// Of a piece among those of the study.
  static std::string key_of(const nlohmann::json& request) {
    return request.at("task").get<std::string>() + " " + request.at("entry").dump() + " " + request.at("run").get<std::string>() + " " +
           request.at("step").dump();
  }

  static std::string line_of(const WantedTask& wanted, const WantedRun& run, int64_t step) {
    return "scoring " + run.name + " at step " + std::to_string(step) + " on " + wanted.task.name;
  }

  /// Those of an entry; a user's own whose file is gone or wrong is told of.
  std::vector<Task> tasks_of(const StudyTask& entry) {
    try {
      return at_difficulties(find_task(entry.task), entry.lengths, entry.domains);
    } catch (const Error& error) {
      scores_.remarks.push_back("Not scored on " + entry.task + ": " + error.what());
      return {};
    }
  }

  void score_task(const StudyTask& entry, const WantedTask& wanted) {
    TaskScores scores{wanted.task.name, wanted.task.metric, 0, 0, false, {}};
    scores.cells.resize(view_.cells.size());
    reasons_.clear();
    for (size_t cell = 0; cell < view_.cells.size(); ++cell) {
      for (const size_t at : view_.views[cell].wanted)
        if (is_shown(view_.wanted[at], cell)) score_run(entry, wanted, view_.wanted[at], scores, scores.cells[cell]);
      std::sort(scores.cells[cell].begin(), scores.cells[cell].end(), [](const auto& a, const auto& b) { return a.seed < b.seed; });
    }
    for (const auto& [why, runs] : reasons_)
      scores_.remarks.push_back(remark_of(wanted.task.name, why, runs, scores.items == 0 && why == wanted.no_data));
    if (scores.items > 0) scores_.tasks.push_back(std::move(scores));
  }

  /// Of the runs that a report shows: at the best value of their cell.
  bool is_shown(const WantedRun& run, size_t cell) const {
    const std::optional<double>& best = view_.views[cell].tuning.best;
    return run.status == WantedRun::Status::finished && (!view_.study.tuning || (best && run.run.tuned == best));
  }

  void score_run(const StudyTask& entry, const WantedTask& wanted, const WantedRun& run, TaskScores& scores,
                 std::vector<SeedScore>& seeds) {
    std::vector<TaskResult> results;
    for (const int64_t step : steps_of(entry, run)) {
      std::optional<TaskResult> result = result_of(entry, wanted, run, step);
      if (!result) return;
      scores_.files.insert(fs::path("runs") / run.name / task_result_file(*result));
      results.push_back(std::move(*result));
    }
    SeedScore seed{run.run.seed, run.name, {}, 0, 0, 0, {}, results.back().data_hash};
    const auto n = static_cast<double>(results.size());
    for (const TaskResult& result : results) {
      const std::vector<double> right = right_of(result);
      seed.right.resize(right.size());
      for (size_t i = 0; i < right.size(); ++i) seed.right[i] += right[i] / n;
      seed.steps.push_back(result.step), seed.cut = std::max(seed.cut, result.cut);
      seed.value += result.score().value / n, seed.error += result.score().standard_error / n;
      scores.metric = result.metric, scores.chance = result.chance, scores.items = result.score().items, scores.partial = result.partial;
    }
    seeds.push_back(std::move(seed));
  }

  static std::vector<int64_t> steps_of(const StudyTask& entry, const WantedRun& run) {
    std::vector<int64_t> steps;
    for (const std::string& name : entry.checkpoints)
      steps.push_back(name == "100%" ? run.there->step : named_step(name, run.run.config.training.steps, "/tasks"));
    if (steps.empty()) steps.push_back(run.there->step);
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
  }

  bool has_checkpoint(const WantedRun& run, int64_t step) const {
    return fs::exists(step_file(view_.directory / "runs" / run.name, kCheckpoints, step));
  }

  /// The result that stands in the run; with `finish` none where scoring it once more adds what a process has left undone behind it.
  std::optional<TaskResult> found(const WantedTask& wanted, const WantedRun& run, int64_t step, bool finish) const {
    const fs::path directory = view_.directory / "runs" / run.name;
    for (TaskResult& result : read_task_results(directory, wanted.task.name, step))
      if (is_wanted(result, wanted, directory) && !(finish && is_to_finish(result, directory))) return std::move(result);
    return {};
  }

  /// Found or made; nothing where it can not be had, or not now.
  std::optional<TaskResult> result_of(const StudyTask& entry, const WantedTask& wanted, const WantedRun& run, int64_t step) {
    const auto index = static_cast<size_t>(&entry - view_.study.tasks.data());
    const auto failed = failed_.find(key_of(request_of(index, wanted, run, step)));
    const bool finish = seconds_ > 0 && entry.not_made.empty() && wanted.no_data.empty() && failed == failed_.end();
    if (std::optional<TaskResult> there = found(wanted, run, step, finish)) {
      PieceClaim::clear(view_.directory, claim_of(run.name));
      return there;
    }
    const auto none = [&](const std::string& why) {
      reasons_[why].push_back(run.name);
      return std::optional<TaskResult>();
    };
    if (!wanted.no_data.empty()) {
      scores_.complete = scores_.complete && seconds_ > 0;  // it may be where the checkpoints are
      return none(wanted.no_data);
    }
    if (!entry.not_made.empty()) return none(entry.not_made);
    if (failed != failed_.end()) return none(failed->second);
    if (seconds_ <= 0 || (scores_.made > 0 && now() - begun_ > seconds_)) {
      scores_.complete = false;
      return none("there was no time left");
    }
    if (!has_checkpoint(run, step)) return none("the checkpoint is gone");
    if (say_) say_(line_of(wanted, run, step));
    try {
      TaskRunOptions options = wanted.options;
      options.checkpoint = step;
      TaskResult result = score(view_.directory, run.name, wanted.task, options, say_);
      ++scores_.made;
      return result;
    } catch (const Error& error) {
      return none(error.what());
    }
  }

  const StudyView& view_;
  std::function<void(const std::string&)> say_;
  double seconds_, begun_;
  const StudyWorkers& workers_;
  StudyScores scores_;
  std::map<std::string, std::string> failed_;                ///< why, by key_of() the request
  std::map<std::string, std::vector<std::string>> reasons_;  ///< why runs have no score on the task at hand
};

}  // namespace

StudyScores study_scores(const StudyView& view, const std::function<void(const std::string&)>& say, double seconds,
                         const StudyWorkers& workers) {
  return Scorer(view, say, seconds, workers).score_all();
}

void make_score(const fs::path& study, const nlohmann::json& request, const std::function<void(const std::string&)>& say) {
  std::vector<StudyTask> tasks = read_study_folder(study).tasks;
  StudyTask& entry = tasks.at(request.at("entry").get<size_t>());
  entry.folder = request.at("folder");
  for (const Task& task : at_difficulties(find_task(entry.task), entry.lengths, entry.domains)) {
    if (task.name != request.at("task")) continue;
    TaskRunOptions options = options_of(entry, task);
    options.checkpoint = request.at("step"), options.device = request.at("device");
    score(study, request.at("run"), task, options, say);
  }
}

}  // namespace saccade
