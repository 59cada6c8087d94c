#include "analysis/figures/curve_kin.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/group_names.h"
#include "analysis/comparison/statistics.h"
#include "analysis/comparison/tuning.h"
#include "analysis/figures/palette.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// A group where it stands, with the numbers of its runs.
struct Placed {
  Kin::Point point;
  std::vector<double> x, y;
  const Run& run() const { return *point.group->seeds.front(); }
};

std::string architecture_of(const Run& run) {
  const Json architecture = run.info().config.value("architecture", Json::object());
  const auto text = [&](const char* key) { return architecture.contains(key) ? architecture.at(key).dump() : std::string(); };
  return text("block") + " " + text("mixer");
}

/// By architecture, in the order met.
std::vector<std::vector<Placed>> placed(const DrawnSet& drawn, const NumberOf& across, const NumberOf& up) {
  RunSet all;
  for (const DrawnRuns& each : drawn) all.insert(all.end(), each.seeds.begin(), each.seeds.end());
  const TrunksAndBranches trunks(all);
  const std::set<const Run*> own(trunks.runs().begin(), trunks.runs().end());
  std::vector<std::vector<Placed>> kinds;
  std::map<std::string, size_t> place;
  for (const DrawnRuns& each : drawn) {
    Placed group;
    for (const Run* run : each.seeds) {
      if (!own.contains(run)) continue;
      const double x = across(*run), y = up(*run);
      if (std::isfinite(x) && std::isfinite(y)) group.x.push_back(x), group.y.push_back(y);
    }
    if (group.x.empty()) continue;
    group.point = {mean(group.x), mean(group.y), deviation(group.y).value_or(0), group.y.size(), &each};
    const auto [at, is_new] = place.emplace(architecture_of(*each.seeds.front()), kinds.size());
    if (is_new) kinds.emplace_back();
    kinds[at->second].push_back(std::move(group));
  }
  return kinds;
}

/// What the settings of a group are, by their pointers.
Json settings_of(const Placed& group) { return group.run().experiment().flatten(); }

/// The settings in which groups at the same x differ.
std::set<std::string> parting_settings(const std::vector<Placed>& groups, const std::string& across) {
  std::map<double, std::vector<Json>> at;
  for (const Placed& group : groups) at[group.point.x].push_back(settings_of(group));
  std::set<std::string> parting;
  for (const auto& [x, several] : at)
    for (const Json& other : several)
      for (const auto& [one, two] : {std::pair(&several.front(), &other), std::pair(&other, &several.front())})
        for (const auto& [pointer, value] : one->items())
          if (pointer != across && pointer != "/training/seed" && (!two->contains(pointer) || two->at(pointer) != value))
            parting.insert(pointer);
  return parting;
}

/// "Avey, expansion 1": the run's title, and of the parting settings those in which runs of this title differ.
std::string label_of(const Placed& group, const std::vector<Placed>& among, const std::set<std::string>& parting) {
  const Json own = settings_of(group);
  const std::string& title = group.run().info().title;
  std::string label = title;
  for (const std::string& pointer : parting) {
    const bool differs = std::any_of(among.begin(), among.end(), [&](const Placed& other) {
      const Json its = settings_of(other);
      return other.run().info().title == title && own.contains(pointer) && (!its.contains(pointer) || its.at(pointer) != own.at(pointer));
    });
    if (!differs) continue;
    std::string words = pointer.substr(pointer.rfind('/') + 1);
    std::replace(words.begin(), words.end(), '_', ' ');
    label += ", " + words + " " + plain_text(own.at(pointer));
  }
  return label;
}

/// Of what is called "Avey with attention" and "Avey" the latter.
std::string title_of(const std::vector<Placed>& groups) {
  std::string shortest = groups.front().run().info().title;
  for (const Placed& group : groups)
    if (const std::string& title = group.run().info().title; title.size() < shortest.size()) shortest = title;
  return shortest;
}

void add(Kin& kin, const Placed& group) {
  kin.points.push_back(group.point);
  kin.all_x.insert(kin.all_x.end(), group.x.begin(), group.x.end()), kin.all_y.insert(kin.all_y.end(), group.y.begin(), group.y.end());
}

}  // namespace

std::vector<Kin> kin_of(const DrawnSet& drawn, const NumberOf& across, const NumberOf& up, const std::string& setting, bool part) {
  std::vector<Kin> kin;
  const std::string pointer = setting.find('.') == setting.npos ? std::string() : setting_pointer(setting).to_string();
  for (const std::vector<Placed>& groups : placed(drawn, across, up)) {
    const std::set<std::string> parting = part ? parting_settings(groups, pointer) : std::set<std::string>();
    std::map<std::string, size_t> place;
    for (const Placed& group : groups) {
      const Json own = settings_of(group);
      std::string key;
      for (const std::string& each : parting) key += (own.contains(each) ? own.at(each).dump() : "none") + "\n";
      const auto [at, is_new] = place.emplace(key, kin.size());
      if (is_new) {
        const DrawnRuns& first = *group.point.group;
        kin.push_back({.label = parting.empty() ? title_of(groups) : label_of(group, groups, parting),
                       .colour = parting.empty() ? architecture_colour(title_of(groups)) : first.colour,
                       .marker = first.marker == Marker::none ? Marker::circle : first.marker,
                       .points = {},
                       .all_x = {},
                       .all_y = {}});
      }
      add(kin[at->second], group);
    }
  }
  for (Kin& one : kin) std::sort(one.points.begin(), one.points.end(), [](const Kin::Point& a, const Kin::Point& b) { return a.x < b.x; });
  return kin;
}

}  // namespace saccade
