// saccade tasks: the tasks that `evaluate --task` knows, and those on symbols that data.task trains on.
#include "analysis/tasks/task.h"
#include "app/cli/command.h"
#include "app/cli/output.h"

namespace saccade::cli {
namespace {

int list() {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  std::vector<Task> tasks = shipped_tasks();
  for (Task& task : symbol_task_list()) tasks.push_back(std::move(task));
  for (const Task& task : tasks) {
    rows.push_back({task.name, task.metric, task.items > 0 ? std::to_string(task.items) : "", task.split, std::to_string(task.shots),
                    task.kind == Task::Kind::symbols ? "made: symbols"
                    : task.generator.empty()         ? task.files.front()
                                                     : "made: prompts",
                    task.description + " (" + task.source + ")"});
    json.push_back({{"name", task.name},
                    {"version", task.version},
                    {"description", task.description},
                    {"source", task.source},
                    {"metric", task.metric},
                    {"items", task.items},
                    {"split", task.split},
                    {"shots", task.shots},
                    {"files", task.files},
                    {"generated", !task.generator.empty()},
                    {"origin", task.origin}});
  }
  print_result(json, table({"task", "metric", "items", "split", "shots", "file", "what it asks (source)"}, rows));
  return 0;
}

const RegisterCommand command{
    {"tasks", "Tasks that `saccade evaluate --task` scores.", "saccade tasks", [](CLI::App& app) {
       app.description(
           "Tasks that `saccade evaluate --task` scores: the metric that tables give, the items of the public data set, and the file that "
           "it needs. What is made needs none; tasks on symbols are trained on with data.task. With --json also where a file comes from. A "
           "task of your "
           "own is a JSON file of the same form as those in resources/tasks (docs/tasks.md).");
       return [] { return list(); };
     }}};

}  // namespace
}  // namespace saccade::cli
