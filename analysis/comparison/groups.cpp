#include "analysis/comparison/groups.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "analysis/comparison/group_names.h"

namespace saccade {
namespace {

bool by_seed(const Run* a, const Run* b) {
  if (a->info().seed != b->info().seed) return a->info().seed < b->info().seed;
  return a->info().directory < b->info().directory;
}

}  // namespace

std::vector<RunGroup> gather_runs(const std::vector<const Run*>& runs) {
  std::vector<RunGroup> groups;
  std::unordered_map<std::string_view, size_t> place;
  std::set<const Run*> met;
  for (const Run* run : runs) {
    if (!met.insert(run).second) continue;
    const auto [at, fresh] = place.try_emplace(run->setting(), groups.size());
    if (fresh) groups.push_back({});
    groups[at->second].seeds.push_back(run);
  }
  for (RunGroup& group : groups) std::stable_sort(group.seeds.begin(), group.seeds.end(), by_seed);
  return groups;
}

std::vector<RunGroup> group_runs(const std::vector<const Run*>& runs, const std::vector<const Run*>& among) {
  std::vector<const Run*> all = among;
  all.insert(all.end(), runs.begin(), runs.end());
  const std::vector<RunGroup> named = gather_runs(all);
  const std::vector<std::string> names = group_names(named);
  std::unordered_map<std::string_view, std::string> labels;
  for (size_t i = 0; i < named.size(); ++i) labels[named[i].seeds.front()->setting()] = names[i];
  std::vector<RunGroup> groups = gather_runs(runs);
  for (RunGroup& group : groups) group.label = labels.at(group.seeds.front()->setting());
  return groups;
}

}  // namespace saccade
