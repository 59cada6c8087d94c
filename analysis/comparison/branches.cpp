#include "analysis/comparison/branches.h"

#include <algorithm>
#include <unordered_map>

namespace saccade {

namespace fs = std::filesystem;

namespace {

bool is_whole(const Run& run) { return run.info().state == RunState::finished && run.damage().empty(); }

void add_last(Trajectory& ends, const Run& run, const std::string& domain, const PretrainingLoss& loss) {
  const Trajectory t = trajectory(run, domain, loss);
  if (t.step.empty()) return;
  ends.pretraining.push_back(t.pretraining.back());
  ends.ood.push_back(t.ood.back());
  ends.step.push_back(t.step.back());
}

}  // namespace

fs::path trunk_of(const fs::path& directory) {
  const fs::path branches = directory.parent_path();
  return branches.filename() == "branches" ? branches.parent_path() : fs::path();
}

std::string branch_words(const fs::path& directory) {
  std::string words = directory.filename().string();
  std::replace(words.begin(), words.end(), '-', ' ');
  return "cooldown from " + words;
}

TrunksAndBranches::TrunksAndBranches(const std::vector<const Run*>& runs) {
  std::unordered_map<std::string, const Run*> by_folder;
  for (const Run* run : runs) by_folder[run->info().directory.string()] = run;
  for (const Run* run : runs) {
    const fs::path trunk = trunk_of(run->info().directory);
    const auto found = trunk.empty() ? by_folder.end() : by_folder.find(trunk.string());
    if (found == by_folder.end())
      runs_.push_back(run);
    else
      branches_[found->second].push_back(run);
  }
  for (auto& [trunk, branches] : branches_)
    std::stable_sort(branches.begin(), branches.end(), [](const Run* a, const Run* b) { return a->info().steps < b->info().steps; });
}

const std::vector<const Run*>& TrunksAndBranches::branches_of(const Run& run) const {
  static const std::vector<const Run*> none;
  const auto found = branches_.find(&run);
  return found == branches_.end() ? none : found->second;
}

std::vector<const Run*> TrunksAndBranches::ends_of(const Run& run) const {
  std::vector<const Run*> ends;
  std::copy_if(branches_of(run).begin(), branches_of(run).end(), std::back_inserter(ends), [](const Run* r) { return is_whole(*r); });
  return ends;
}

Trajectory TrunksAndBranches::trajectory_of(const Run& run, const std::string& domain, const PretrainingLoss& loss) const {
  std::vector<const Run*> ends = ends_of(run);
  if (ends.empty()) return trajectory(run, domain, loss);
  if (is_whole(run)) ends.push_back(&run);
  Trajectory t;
  for (const Run* end : ends) add_last(t, *end, domain, loss);
  return t;
}

}  // namespace saccade
