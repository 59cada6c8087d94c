#include "analysis/comparison/groups.h"

#include <algorithm>
#include <map>
#include <set>

namespace saccade {
namespace {

using nlohmann::json;

std::string key_of(const Run& run) {
  json config = run.info().config;
  config.erase("name");
  if (config.contains("training")) config["training"].erase("seed");
  return config.dump();
}

std::string folder_of(const Run& run) { return run.info().directory.filename().string(); }
std::string name_of(const Run& run) { return run.info().name.empty() ? folder_of(run) : run.info().name; }

bool by_seed(const Run* a, const Run* b) {
  if (a->info().seed != b->info().seed) return a->info().seed < b->info().seed;
  return a->info().directory < b->info().directory;
}

/// Key → label of every group among `runs`.
std::map<std::string, std::string> labels_of(const std::vector<const Run*>& runs) {
  std::map<std::string, const Run*> first;
  for (const Run* run : runs) {
    const Run*& known = first[key_of(*run)];
    if (!known || by_seed(run, known)) known = run;
  }
  std::map<std::string, int> titles;
  std::map<std::pair<std::string, std::string>, int> names;
  for (const auto& [key, run] : first) {
    ++titles[run->info().title];
    ++names[{run->info().title, name_of(*run)}];
  }
  std::map<std::string, std::string> labels;
  for (const auto& [key, run] : first) {
    const std::string& title = run->info().title;
    const std::string name = names[{title, name_of(*run)}] > 1 ? folder_of(*run) : name_of(*run);
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
    const std::string key = key_of(*run);
    const auto [at, fresh] = place.try_emplace(key, groups.size());
    if (fresh) groups.push_back({labels.at(key), {}});
    groups[at->second].seeds.push_back(run);
  }
  for (RunGroup& group : groups) std::stable_sort(group.seeds.begin(), group.seeds.end(), by_seed);
  return groups;
}

}  // namespace saccade
