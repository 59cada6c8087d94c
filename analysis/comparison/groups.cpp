#include "analysis/comparison/groups.h"

#include <algorithm>
#include <map>

namespace saccade {
namespace {

std::string folder_of(const Run& run) { return run.info().directory.filename().string(); }

bool by_seed(const Run* a, const Run* b) {
  if (a->info().seed != b->info().seed) return a->info().seed < b->info().seed;
  return a->info().directory < b->info().directory;
}

/// Key → label of every group among `runs`.
std::map<std::string, std::string> labels_of(const std::vector<const Run*>& runs) {
  std::map<std::string, const Run*> first;
  for (const Run* run : runs) {
    const Run*& known = first[run->setting()];
    if (!known || by_seed(run, known)) known = run;
  }
  std::map<std::string, int> titles;
  std::map<std::pair<std::string, std::string>, int> names;
  for (const auto& [key, run] : first) {
    ++titles[run->info().title];
    ++names[{run->info().title, run->name()}];
  }
  std::map<std::string, std::string> labels;
  for (const auto& [key, run] : first) {
    const std::string& title = run->info().title;
    const std::string name = names[{title, run->name()}] > 1 ? folder_of(*run) : run->name();
    labels[key] = titles[title] > 1 ? title + " (" + name + ")" : title;
  }
  return labels;
}

}  // namespace

std::vector<RunGroup> group_runs(const std::vector<const Run*>& runs, const std::vector<const Run*>& among) {
  std::vector<const Run*> all = among;
  all.insert(all.end(), runs.begin(), runs.end());
  const auto labels = labels_of(all);
  std::vector<RunGroup> groups;
  std::map<std::string, size_t> place;
  for (const Run* run : runs) {
    const std::string& key = run->setting();
    const auto [at, fresh] = place.try_emplace(key, groups.size());
    if (fresh) groups.push_back({labels.at(key), {}});
    groups[at->second].seeds.push_back(run);
  }
  for (RunGroup& group : groups) std::stable_sort(group.seeds.begin(), group.seeds.end(), by_seed);
  return groups;
}

}  // namespace saccade
