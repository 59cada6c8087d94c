#include "app/cli/evaluate_tasks.h"

#include <algorithm>
#include <optional>

#include "analysis/runs/run_info.h"
#include "analysis/tasks/checkpoint_means.h"
#include "analysis/tasks/task_steps.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

/// "500", or "90%" of the steps that the run is to do; "100%" is the end of a run that finished before them, too.
int64_t step_of(const std::string& text, const std::string& run, const std::vector<int64_t>& steps) {
  const bool is_share = text.ends_with('%');
  const std::optional<RunInfo> info = is_share ? std::optional(read_run_info(run)) : std::nullopt;
  int64_t step = named_step(text, info ? info->config.at("training").at("steps").get<int64_t>() : 0, "--checkpoints");
  if (info && info->state == RunState::finished && text == "100%") step = info->step;
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return step;
  std::vector<std::string> names;
  for (const int64_t s : steps) names.push_back(std::to_string(s));
  throw UsageError("--checkpoints " + text + (is_share ? " is step " + std::to_string(step) : "") + ": " + run +
                   " has checkpoints of step " + alternatives(names));
}

/// Those that are named, each once.
std::vector<int64_t> steps_of(const TaskCommand& command) {
  if (command.checkpoints.empty()) return {command.options.checkpoint};
  if (command.options.checkpoint > 0) throw UsageError("--checkpoints and --checkpoint were both given; one of them names the steps");
  const std::vector<int64_t> there = step_files(command.run, kCheckpoints);
  std::vector<int64_t> steps;
  for (const std::string& text : command.checkpoints)
    if (const int64_t step = step_of(text, command.run, there); std::find(steps.begin(), steps.end(), step) == steps.end())
      steps.push_back(step);
  return steps;
}

/// Its items are rows of files, which stand beside a task of one's own unless --data says where.
bool is_of_files(const Task& task) { return task.kind != Task::Kind::symbols && task.generator.empty(); }

TaskResult evaluate_one(const TaskCommand& command, const Task& task, int64_t step) {
  TaskRunOptions options = command.options;
  options.checkpoint = step;
  if (options.data.empty() && is_of_files(task)) options.data = task.own_file.parent_path();
  Progress bar(task.name);
  TaskResult result =
      evaluate_task(command.run, task, options,
                    {[](const std::string& line) { say(line); }, [&](double fraction) { bar.update(fraction, ""); }}, stop_requested());
  if (!result.is_whole()) throw Interrupted("stopped; the same command goes on where this one was");
  return result;
}

std::vector<std::string> row_of(const TaskResult& r) {
  const TaskScore& score = r.score();
  return {r.task,
          std::to_string(r.step),
          score.metric,
          number(100 * score.value, 2),
          number(100 * score.standard_error, 2),
          number(100 * r.chance, 2),
          std::to_string(score.items) + (r.partial ? ", not all" : ""),
          std::to_string(r.shots),
          std::to_string(r.cut)};
}

/// The unweighted mean over the tasks at each checkpoint.
nlohmann::json averages(const std::vector<TaskResult>& results, size_t tasks, std::string& text) {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [step, average] : task_averages(results)) {
    if (tasks > 1)
      text += "average of " + std::to_string(tasks) + " tasks at step " + std::to_string(step) + ": " + number(100 * average, 2) + " %\n";
    json.push_back({{"step", step}, {"average", average}});
  }
  return json;
}

/// What several checkpoints say of each task and of the average, as arXiv:2506.11305, appendix L, gives them.
nlohmann::json over_checkpoints(const std::vector<TaskResult>& results, size_t tasks, std::string& text) {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  const auto percent = [](const std::optional<double>& share) { return share ? number(100 * *share, 3) : "-"; };
  for (const CheckpointMean& m : checkpoint_means(results)) {
    nlohmann::json one{
        {"checkpoints", m.checkpoints}, {"mean", m.mean}, {"deviation", nullptr}, {"standard_error", nullptr}, {"interval_95", nullptr}};
    if (!m.task.empty()) one["task"] = m.task, one["metric"] = m.metric;
    if (m.deviation) one["deviation"] = *m.deviation, one["standard_error"] = *m.standard_error;
    if (m.interval_95) one["interval_95"] = {m.interval_95->first, m.interval_95->second};
    json.push_back(std::move(one));
    if (m.task.empty() && tasks < 2) continue;  // the one task's own row says the same
    const std::string interval = m.interval_95 ? percent(m.interval_95->first) + " to " + percent(m.interval_95->second) : "-";
    rows.push_back({m.task.empty() ? "average of " + std::to_string(tasks) + " tasks" : m.task, m.metric, percent(m.mean),
                    percent(m.deviation), percent(m.standard_error), interval});
  }
  const size_t checkpoints = results.size() / tasks;
  if (checkpoints > 1)
    text += "\nOver " + std::to_string(checkpoints) + " checkpoints (Student t; checkpoints of one run are not independent runs):\n" +
            table({"task", "metric", "mean (%)", "sample deviation", "standard error", "95 % interval"}, rows);
  return json;
}

}  // namespace

int evaluate_tasks(TaskCommand command) {
  std::vector<Task> tasks;
  for (const std::string& name : command.tasks) {
    const Task found = find_task(name);
    if (is_of_files(found) && found.own_file.empty() && command.options.data.empty())
      throw UsageError("--task " + name + " needs --data, the folder of the tasks' files; `saccade tasks` names them");
    for (Task& task : at_difficulties(found, command.lengths, command.domains)) tasks.push_back(std::move(task));
  }
  command.options.prefix = parse_prefix(command.prefix);
  const std::vector<int64_t> steps = steps_of(command);
  std::vector<TaskResult> results;
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Task& task : tasks) {
    for (const int64_t step : steps) {
      results.push_back(evaluate_one(command, task, step));
      rows.push_back(row_of(results.back()));
      list.push_back(to_json(results.back()));
      list.back()["cached"] = results.back().cached;
    }
  }
  std::string text = table({"task", "step", "metric", "score (%)", "± standard error", "chance (%)", "items", "shots", "cut"}, rows);
  const nlohmann::json means = averages(results, tasks.size(), text);
  const nlohmann::json over = over_checkpoints(results, tasks.size(), text);
  print_result({{"run", command.run}, {"results", list}, {"averages", means}, {"over_checkpoints", over}}, text);
  return 0;
}

}  // namespace saccade::cli
