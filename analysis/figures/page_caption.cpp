#include "analysis/figures/page_caption.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/figures/count_text.h"
#include "analysis/figures/number_figures.h"
#include "analysis/runs/provenance.h"
#include "analysis/runs/run_info.h"

namespace saccade {
namespace {

/// "seed 1", "seeds 1, 2", of more than `named` "8 seeds".
std::string seeds_text(const RunSet& runs, size_t named) {
  std::set<int64_t> seeds;
  for (const Run* run : runs) seeds.insert(run->info().seed);
  if (seeds.size() > named) return std::to_string(seeds.size()) + " seeds";
  std::string text;
  for (const int64_t seed : seeds) text += (text.empty() ? "" : ", ") + std::to_string(seed);
  return (seeds.size() > 1 ? "seeds " : "seed ") + text;
}

/// "205 k tokens", "64 k to 205 k tokens"; of generated tasks those are counted that are trained on: "64 k tokens asked for".
std::string tokens_text(const RunSet& runs) {
  const std::string unit = std::all_of(runs.begin(), runs.end(), [](const Run* run) { return !training_task(run->info()).empty(); })
                               ? " tokens asked for"
                               : " tokens";
  double least = INFINITY, most = 0;
  for (const Run* run : runs) {
    const double tokens = run_number(*run, "tokens");
    if (std::isfinite(tokens)) least = std::min(least, tokens), most = std::max(most, tokens);
  }
  if (!std::isfinite(least)) return count_text(least) + unit;
  const std::string from = count_text(least), to = count_text(most);
  return (from == to ? to : from + " to " + to) + unit;
}

size_t unfinished(const RunSet& runs) {
  return static_cast<size_t>(
      std::count_if(runs.begin(), runs.end(), [](const Run* run) { return run->info().state != RunState::finished; }));
}

std::string counted(size_t count, const std::string& what) { return std::to_string(count) + " " + what + (count == 1 ? "" : "s"); }

/// A group of seeds and the cooldown branches of its runs.
struct NamedGroup {
  std::string label;
  RunSet runs, branches;
};

std::vector<NamedGroup> named_groups(const DrawnSet& drawn) {
  RunSet all;
  for (const DrawnRuns& each : drawn) all.insert(all.end(), each.seeds.begin(), each.seeds.end());
  const TrunksAndBranches trunks(all);
  const std::set<const Run*> own(trunks.runs().begin(), trunks.runs().end());
  std::vector<NamedGroup> groups;
  for (const DrawnRuns& each : drawn) {
    NamedGroup group{each.label, {}, {}};
    for (const Run* run : each.seeds) {
      if (!own.contains(run)) continue;  // told with its run
      group.runs.push_back(run);
      const RunSet& branches = trunks.branches_of(*run);
      group.branches.insert(group.branches.end(), branches.begin(), branches.end());
    }
    if (!group.runs.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::string text_of(const NamedGroup& group) {
  constexpr size_t kNamedSeeds = 12;
  RunSet all = group.runs;
  all.insert(all.end(), group.branches.begin(), group.branches.end());
  std::string text = group.label + " (" + seeds_text(group.runs, kNamedSeeds) + "; " + tokens_text(group.runs);
  if (!group.branches.empty())
    text += std::string("; cooldown branch") + (group.branches.size() > 1 ? "es" : "") + " of " + tokens_text(group.branches);
  return text + (unfinished(all) > 0 ? ", not finished" : "") + ")";
}

/// Of many groups how many there are.
std::string text_of(const std::vector<NamedGroup>& groups) {
  constexpr size_t kNamedSeeds = 6;
  RunSet runs, branches;
  for (const NamedGroup& group : groups) {
    runs.insert(runs.end(), group.runs.begin(), group.runs.end());
    branches.insert(branches.end(), group.branches.begin(), group.branches.end());
  }
  const auto whole = [](const RunSet& set) {
    const size_t open = unfinished(set);
    return open > 0 ? ", " + std::to_string(open) + " not finished" : std::string();
  };
  std::string text = counted(runs.size(), "run") + " of " + counted(groups.size(), "setting") + " (" + seeds_text(runs, kNamedSeeds) +
                     "; " + tokens_text(runs) + whole(runs) + ")";
  if (!branches.empty())
    text += " and " + std::to_string(branches.size()) + " cooldown branch" + (branches.size() > 1 ? "es" : "") + " (" +
            tokens_text(branches) + whole(branches) + ")";
  return text;
}

bool is_one_of(const PanelRecipe& panel, std::initializer_list<const char*> charts) {
  return std::any_of(charts.begin(), charts.end(), [&](const char* chart) { return panel.chart == chart; });
}

bool has_bars_alone(const PanelRecipe& panel) { return is_one_of(panel, {"score-curve", "score-dots", "answers"}); }

/// What the bands or bars of a chart are; empty where it has none over seeds.
std::string spread_of(const PanelRecipe& panel) {
  if (has_bars_alone(panel)) return "the 95 % interval";
  if (is_one_of(panel, {"setting", "position"})) return "one standard deviation";
  if (!is_one_of(panel, {"loss", "gap", "series", "layers", "length", "length-last"})) return "";
  return (panel.spread == Spread::interval ? "the " : "one ") + std::string(to_string(panel.spread));
}

}  // namespace

std::string seeds_note(const FigureRecipe& recipe) {
  std::vector<std::pair<std::string, std::string>> spreads;  // what they are, and the letters of the panels
  bool has_losses = false, has_bars = false, has_bands = false;
  size_t figures = 0;
  for (const PanelRecipe& panel : recipe.panels) {
    has_losses |= panel.chart == "table";
    if (is_table_chart(panel.chart)) continue;
    const std::string letter = "(" + std::string(1, static_cast<char>('a' + figures++)) + ")", own = spread_of(panel);
    if (own.empty()) continue;
    has_bars |= has_bars_alone(panel) || panel.chart == "setting", has_bands |= !has_bars_alone(panel);
    const auto known = std::find_if(spreads.begin(), spreads.end(), [&](const auto& each) { return each.first == own; });
    if (known == spreads.end())
      spreads.emplace_back(own, letter);
    else
      known->second += ", " + letter;
  }
  std::string text = "Means over seeds";
  for (size_t i = 0; i < spreads.size(); ++i)
    text += (i > 0                   ? ", "
             : has_bars && has_bands ? "; bands and bars are "
             : has_bars              ? "; bars are "
                                     : "; bands are ") +
            spreads[i].first + (spreads.size() > 1 ? " in " + spreads[i].second : "");
  if (has_losses) text += spreads.empty() ? ", ± one sample standard deviation" : "; ± in the table is one sample standard deviation";
  return text + ".";
}

std::string runs_in_caption(const DrawnSet& drawn) {
  const std::vector<NamedGroup> groups = named_groups(drawn);
  if (groups.size() > kNamedGroups) return text_of(groups);
  std::string text;
  for (const NamedGroup& group : groups) text += (text.empty() ? "" : ", ") + text_of(group);
  return text;
}

std::string caption_of(const FigureRecipe& recipe, const DrawnSet& drawn, const std::vector<std::string>& notes) {
  std::string text = recipe.title;
  if (!text.empty() && text.back() != '.') text += ".";
  if (!recipe.source.empty()) text += " After " + recipe.source + ".";
  if (const std::string runs = runs_in_caption(drawn); !runs.empty()) text += (text.empty() ? "" : " ") + runs + ".";
  for (const std::string& note : notes) text += " " + note;
  return text + " Saccade " + library_versions().value("saccade", std::string()) + ".";
}

}  // namespace saccade
