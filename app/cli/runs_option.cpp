#include "app/cli/runs_option.h"

#include <algorithm>
#include <set>

#include "analysis/runs/natural_order.h"
#include "analysis/runs/run_info.h"
#include "analysis/studies/study_folder.h"
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

/// Of a run at work what seems to be missing may be on its way from another machine (RunDetail), and is not called damage.
Run open_patiently(const std::filesystem::path& directory) {
  constexpr double kPatience = 60;  // seconds
  Run run(directory, {.patience = kPatience});
  const bool at_work = run.info().state == RunState::running || run.info().state == RunState::created;
  return run.waits() && !at_work ? Run(directory) : std::move(run);
}

/// Opens it, or notes why not.
void add(OpenedRuns& opened, const std::filesystem::path& directory) {
  try {
    Run run = open_patiently(directory);
    if (const std::string damage = run.damage(); !damage.empty()) throw DataError(damage + "; saccade resume goes on from a checkpoint");
    opened.runs.push_back(std::move(run));
  } catch (const Error& error) {
    opened.skipped.emplace_back(error.what());
  } catch (const std::exception& error) {  // says nothing of where
    opened.skipped.push_back(directory.string() + ": " + error.what());
  }
}

void add_folder(OpenedRuns& opened, const std::string& path) {
  std::vector<std::filesystem::path> found = find_runs(runs_below(path), &opened.skipped);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return natural_before(a.native(), b.native()); });
  for (const auto& directory : found) add(opened, directory);
}

/// The cooldown branches of a run that was named itself, but those that are named too.
void add_branches(OpenedRuns& opened, const std::filesystem::path& run, const std::vector<std::string>& named) {
  const auto is_named = [&](const std::filesystem::path& branch) {
    std::error_code none;
    return std::any_of(named.begin(), named.end(), [&](const auto& path) { return std::filesystem::equivalent(path, branch, none); });
  };
  std::vector<std::filesystem::path> branches;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run / "branches", none))
    if (looks_like_run(entry.path()) && !is_named(entry.path())) branches.push_back(entry.path());
  std::sort(branches.begin(), branches.end(), [](const auto& a, const auto& b) { return natural_before(a.native(), b.native()); });
  for (const auto& branch : branches) add(opened, branch);
}

}  // namespace

OpenedRuns open_runs(const std::vector<std::string>& paths, bool with_branches) {
  OpenedRuns opened;
  for (const std::string& path : paths) {
    if (!std::filesystem::exists(path)) throw DataError(path + ": no such run directory");
    const size_t before = opened.runs.size() + opened.skipped.size();
    if (looks_like_run(path)) {
      add(opened, path);
      if (with_branches) add_branches(opened, path, paths);
    } else {
      add_folder(opened, path);
    }
    if (opened.runs.size() + opened.skipped.size() == before) throw DataError(path + ": holds no run (a run directory has a run.json)");
  }
  if (opened.runs.empty()) {
    const size_t more = opened.skipped.size() - 1;
    throw DataError(opened.skipped.front() + (more > 0 ? " (nor can " + std::to_string(more) + " more be shown)" : ""));
  }
  for (const std::string& line : opened.skipped) warn("skipped: " + line);
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
