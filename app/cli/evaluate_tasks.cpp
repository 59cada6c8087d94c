#include "app/cli/evaluate_tasks.h"

#include <algorithm>
#include <map>

#include "analysis/comparison/statistics.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/suggest.h"

namespace saccade::cli {
namespace {

/// "500", or "90%" of the steps that the run is to do.
int64_t step_of(const std::string& text, const std::string& run, const std::vector<int64_t>& steps) {
  const bool is_share = text.ends_with('%');
  const std::string digits = is_share ? text.substr(0, text.size() - 1) : text;
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != digits.npos)
    throw UsageError("--checkpoints: \"" + text + "\" is no step and no share such as 90%");
  int64_t step = std::stoll(digits);
  if (is_share) step = read_run_info(run).config.at("training").at("steps").get<int64_t>() * step / 100;
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return step;
  std::vector<std::string> names;
  for (const int64_t s : steps) names.push_back(std::to_string(s));
  throw UsageError("--checkpoints " + text + ": " + run + " has checkpoints of step " + alternatives(names));
}

TaskResult evaluate_one(const TaskCommand& command, const Task& task, int64_t step) {
  TaskRunOptions options = command.options;
  options.checkpoint = step;
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
          std::to_string(score.items),
          std::to_string(r.shots),
          std::to_string(r.cut)};
}

/// The unweighted mean over the tasks at each checkpoint, and what several checkpoints say of it.
nlohmann::json averages(const std::vector<TaskResult>& results, size_t tasks, std::string& text) {
  std::map<int64_t, std::vector<double>> by_step;
  for (const TaskResult& r : results) by_step[r.step].push_back(100 * r.score().value);
  std::vector<double> means;
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [step, values] : by_step) {
    if (tasks > 1)
      text += "average of " + std::to_string(tasks) + " tasks at step " + std::to_string(step) + ": " + number(mean(values), 2) + " %\n";
    means.push_back(mean(values));
    json.push_back({{"step", step}, {"average", mean(values) / 100}});
  }
  if (const Repeated r = repeated(means); r.half_95)
    text += "over " + std::to_string(r.count) + " checkpoints: " + number(r.mean, 3) + " %, sample deviation " + number(*r.deviation, 3) +
            ", 95 % interval ± " + number(*r.half_95, 3) + " (Student t; checkpoints of one run are not independent runs)\n";
  return json;
}

}  // namespace

int evaluate_tasks(TaskCommand command) {
  std::vector<Task> tasks;
  for (const std::string& name : command.tasks) {
    const Task found = find_task(name);
    if (found.kind != Task::Kind::symbols && found.generator.empty() && command.options.data.empty())
      throw UsageError("--task " + name + " needs --data, the folder of the tasks' files; `saccade tasks` names them");
    for (Task& task : at_difficulties(found, command.lengths, command.domains)) tasks.push_back(std::move(task));
  }
  command.options.prefix = parse_prefix(command.prefix);
  const std::vector<int64_t> there = step_files(command.run, kCheckpoints);
  std::vector<int64_t> steps;
  for (const std::string& text : command.checkpoints) steps.push_back(step_of(text, command.run, there));
  if (steps.empty()) steps.push_back(command.options.checkpoint);
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
  print_result({{"run", command.run}, {"results", list}, {"averages", means}}, text);
  return 0;
}

}  // namespace saccade::cli
