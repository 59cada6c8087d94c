#include "app/cli/runs_option.h"

#include <algorithm>
#include <set>

#include "app/cli/command.h"
#include "kernels/engine/error.h"
#include "models/suggest.h"

namespace saccade::cli {

std::vector<const Run*> OpenedRuns::pointers() const {
  std::vector<const Run*> list;
  for (const Run& run : runs) list.push_back(&run);
  return list;
}

namespace {

void add(OpenedRuns& opened, const std::filesystem::path& directory) {
  opened.runs.emplace_back(directory);
  if (const std::string damage = opened.runs.back().damage(); !damage.empty())
    throw DataError(damage + "; saccade resume goes on from the last checkpoint of an unfinished run");
}

}  // namespace

OpenedRuns open_runs(const std::vector<std::string>& paths) {
  OpenedRuns opened;
  for (const std::string& path : paths) {
    if (!std::filesystem::exists(path)) throw DataError(path + ": no such run directory");
    if (std::filesystem::exists(std::filesystem::path(path) / "run.json")) {
      add(opened, path);
      continue;
    }
    std::vector<std::string> problems;
    std::vector<std::filesystem::path> found = find_runs(path, &problems);
    for (const std::string& problem : problems) say("skipped: " + problem);
    if (found.empty()) throw DataError(path + ": holds no run (a run directory has a run.json)");
    std::sort(found.begin(), found.end());
    for (const auto& directory : found) add(opened, directory);
  }
  const auto old = std::count_if(opened.runs.begin(), opened.runs.end(), [](const Run& run) { return !run.info().old_names.empty(); });
  if (opened.runs.size() == 1) note_old_names(opened.runs.front().info());
  if (old > 0 && opened.runs.size() > 1)
    say(std::to_string(old) + " of these runs " + (old == 1 ? "has" : "have") + " settings under old names, which are read as today's");
  return opened;
}

void note_old_names(const RunInfo& info) {
  if (!info.old_names.empty()) say(info.old_names);
}

PretrainingLoss PretrainingOption::chosen(const OpenedRuns& runs) const {
  const PretrainingLoss loss{parse_pretraining_loss(kind), window};
  require_recorded(runs.pointers(), loss);
  return loss;
}

void add_pretraining_option(CLI::App& app, PretrainingOption& option) {
  app.add_option("--pretraining", option.kind,
                 "What counts as the pre-training loss: validation (each training domain the same), weighted (by tokens), or train")
      ->check(CLI::IsMember({"validation", "weighted", "train"}))
      ->capture_default_str();
  app.add_option("--window", option.window, "Tokens over which --pretraining train is the mean training loss")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void require_domain(const OpenedRuns& runs, const std::string& domain) {
  std::set<std::string> names;
  for (const Run& run : runs.runs)
    for (const std::string& name : run.ood_domains()) names.insert(name);
  if (domain.empty() || names.contains(domain)) return;
  throw UsageError("--domain " + domain + ": " +
                   (names.empty() ? "these runs have no OOD domain" : "expected " + alternatives({names.begin(), names.end()})));
}

}  // namespace saccade::cli
