#include "app/cli/runs_option.h"

#include "app/cli/command.h"
#include "kernels/error.h"

namespace saccade::cli {

std::vector<const Run*> OpenedRuns::pointers() const {
  std::vector<const Run*> list;
  for (const Run& run : runs) list.push_back(&run);
  return list;
}

OpenedRuns open_runs(const std::vector<std::string>& paths) {
  OpenedRuns opened;
  for (const std::string& path : paths) {
    if (!std::filesystem::exists(path)) throw DataError(path + ": no such run directory");
    if (std::filesystem::exists(std::filesystem::path(path) / "run.json")) {
      opened.runs.emplace_back(path);
      continue;
    }
    std::vector<std::string> problems;
    std::vector<std::filesystem::path> found = find_runs(path, &problems);
    for (const std::string& problem : problems) say("skipped: " + problem);
    if (found.empty()) throw DataError(path + ": holds no run (a run directory has a run.json)");
    std::sort(found.begin(), found.end());
    for (const auto& directory : found) opened.runs.emplace_back(directory);
  }
  return opened;
}

}  // namespace saccade::cli
