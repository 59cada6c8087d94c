#include "analysis/comparison/group_names.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "analysis/comparison/branches.h"

namespace saccade {
namespace {

using nlohmann::json;
using Flat = std::map<std::string, std::string>;  // pointer → value, of settings that differ

/// What is not the same in all of `values`, of each of them; null where there is none.
void differing(const std::vector<const json*>& values, const std::string& pointer, std::vector<Flat>& flats) {
  const auto same = [&](const json* value) { return value && values.front() ? *value == *values.front() : value == values.front(); };
  if (std::all_of(values.begin(), values.end(), same)) return;
  std::set<std::string> keys;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    if (!values[i]->is_object()) {
      flats[i][pointer] = plain_text(*values[i]);
      continue;
    }
    for (const auto& item : values[i]->items()) keys.insert(item.key());
  }
  for (const std::string& key : keys) {
    std::vector<const json*> children;
    for (const json* value : values) children.push_back(value && value->is_object() && value->contains(key) ? &value->at(key) : nullptr);
    differing(children, pointer + "/" + key, flats);
  }
}

/// A run learns from a corpus or a task: one thing with two names, of which the other one is empty.
constexpr const char* kSource = "/data";

void join_sources(const std::vector<const json*>& configs, std::vector<Flat>& flats) {
  const auto of_task = [](const Flat& flat) { return flat.contains("/data/task"); };
  if (std::none_of(flats.begin(), flats.end(), of_task)) return;  // all have one task, or none
  for (size_t i = 0; i < flats.size(); ++i) {
    const json data = configs[i]->value("data", json::object());
    const std::string task = data.value("task", "");
    flats[i][kSource] = task.empty() ? "corpus " + data.value("corpus", "none") : "task " + task;
    flats[i].erase("/data/task");
    flats[i].erase("/data/corpus");
  }
}

std::string value_at(const Flat& flat, const std::string& pointer) {
  const auto at = flat.find(pointer);
  return at == flat.end() || at->second.empty() ? "none" : at->second;
}

/// "top1_window 64"
std::string phrase(const std::string& pointer, const std::string& value) {
  if (pointer == kSource) return value;
  std::string word = pointer.substr(pointer.rfind('/') + 1);
  std::replace(word.begin(), word.end(), '_', ' ');
  return word + " " + value;
}

/// Few settings that tell all of `flats` apart: again and again the one that parts most of what still reads alike; of equals one that all
/// have, so that no name says "none".
std::vector<std::string> telling(const std::vector<Flat>& flats) {
  std::map<std::string, size_t> candidates;  // how many have it
  for (const Flat& flat : flats)
    for (const auto& [pointer, value] : flat) ++candidates[pointer];
  std::vector<std::string> chosen;
  std::vector<std::string> told(flats.size());
  size_t kinds = 1;
  while (kinds < flats.size()) {
    std::string best;
    size_t most = kinds, best_held = 0;
    for (const auto& [pointer, held] : candidates) {
      std::set<std::string> parted;
      for (size_t i = 0; i < flats.size(); ++i) parted.insert(told[i] + "\n" + value_at(flats[i], pointer));
      if (parted.size() > most || (parted.size() == most && !best.empty() && held > best_held))
        most = parted.size(), best = pointer, best_held = held;
    }
    if (best.empty()) break;
    for (size_t i = 0; i < flats.size(); ++i) told[i] += "\n" + value_at(flats[i], best);
    candidates.erase(best);
    chosen.push_back(best);
    kinds = most;
  }
  return chosen;
}

/// Groups of cooldown branches whose run is in a group, too, and that group.
std::map<size_t, size_t> trunks_of(const std::vector<RunGroup>& groups) {
  std::map<std::string, size_t> by_folder;
  for (size_t i = 0; i < groups.size(); ++i)
    for (const Run* run : groups[i].seeds) by_folder[run->info().directory.string()] = i;
  std::map<size_t, size_t> trunks;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::filesystem::path trunk = trunk_of(groups[i].seeds.front()->info().directory);
    if (const auto found = by_folder.find(trunk.string()); !trunk.empty() && found != by_folder.end() && found->second != i)
      trunks[i] = found->second;
  }
  return trunks;
}

}  // namespace

std::string plain_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "on" : "off";
  if (value.is_null()) return "–";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const json& part : value) text += (text.empty() ? "" : " + ") + plain_text(part);
  return text.empty() ? "none" : text;
}

std::vector<std::string> group_names(const std::vector<RunGroup>& groups, const std::map<std::string, std::string>& kept) {
  std::map<std::string, std::vector<size_t>> by_title;
  std::vector<std::string> names(groups.size());
  std::map<size_t, size_t> trunks = trunks_of(groups);
  for (size_t i = 0; i < groups.size(); ++i)
    if (!trunks.contains(i)) by_title[groups[i].seeds.front()->info().title].push_back(i);
  for (const auto& [title, members] : by_title) {
    const auto kept_name = [&](size_t i) { return kept.find(groups[i].seeds.front()->setting()); };
    const bool all_kept = std::all_of(members.begin(), members.end(), [&](size_t i) { return kept_name(i) != kept.end(); });
    const bool several = members.size() > 1 && !all_kept;
    std::vector<Flat> flats(members.size());
    std::vector<const json*> configs;
    for (const size_t i : members) configs.push_back(&groups[i].seeds.front()->experiment());
    if (several) differing(configs, "", flats), join_sources(configs, flats);
    const std::vector<std::string> settings = several ? telling(flats) : std::vector<std::string>();
    std::set<std::string> taken;
    for (const size_t i : members)
      if (const auto old = kept_name(i); old != kept.end() && taken.insert(old->second).second) names[i] = old->second;
    for (size_t k = 0; k < members.size(); ++k) {
      std::string& name = names[members[k]];
      if (!name.empty()) continue;
      name = title;
      for (const std::string& pointer : settings) name += ", " + phrase(pointer, value_at(flats[k], pointer));
      if (!taken.insert(name).second)
        taken.insert(name += " (" + groups[members[k]].seeds.front()->info().directory.filename().string() + ")");
    }
  }
  for (const auto& [branch, trunk] : trunks) {
    names[branch] = names[trunk] + ", " + branch_words(groups[branch].seeds.front()->info().directory);
    for (const auto& [other, same] : trunks)
      if (other < branch && names[other] == names[branch]) {  // of two runs of one name
        names[branch] += " (" + trunk_of(groups[branch].seeds.front()->info().directory).filename().string() + ")";
        break;
      }
  }
  return names;
}

}  // namespace saccade
