// saccade tasks: the tasks that `evaluate --task` knows.
#include "analysis/tasks/task.h"
#include "app/cli/command.h"
#include "app/cli/output.h"

namespace saccade::cli {
namespace {

int list() {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Task& task : shipped_tasks()) {
    rows.push_back({task.name, task.metric, task.items > 0 ? std::to_string(task.items) : "", task.split, std::to_string(task.shots),
                    task.files.front(), task.description + " (" + task.source + ")"});
    json.push_back({{"name", task.name},
                    {"version", task.version},
                    {"description", task.description},
                    {"source", task.source},
                    {"metric", task.metric},
                    {"items", task.items},
                    {"split", task.split},
                    {"shots", task.shots},
                    {"files", task.files},
                    {"origin", task.origin}});
  }
  print_result(json, table({"task", "metric", "items", "split", "shots", "file", "what it asks (source)"}, rows));
  return 0;
}

const RegisterCommand command{
    {"tasks", "Tasks with choices that `saccade evaluate --task` scores.", "saccade tasks", [](CLI::App& app) {
       app.description(
           "Tasks with choices that `saccade evaluate --task` scores: the metric that tables give, the items of the "
           "public data set, and the file that it needs. With --json also where that file comes from. A task of your "
           "own is a JSON file of the same form as those in resources/tasks (docs/tasks.md).");
       return [] { return list(); };
     }}};

}  // namespace
}  // namespace saccade::cli
