#include "analysis/figures/figure_notes.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/figures/page_caption.h"

namespace saccade {
namespace {

/// Words and the labels that they are said of, in the order met.
using Said = std::vector<std::pair<std::string, std::vector<std::string>>>;

void say_of(Said& said, const std::string& words, const std::string& label) {
  const auto at = std::find_if(said.begin(), said.end(), [&](const auto& s) { return s.first == words; });
  if (at == said.end())
    said.push_back({words, {label}});
  else if (std::find(at->second.begin(), at->second.end(), label) == at->second.end())
    at->second.push_back(label);
}

std::string list_of(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : "; ") + label;  // labels have commas
  return text;
}

size_t label_count(const Said& said) {
  size_t count = 0;
  for (const auto& [words, labels] : said) count += labels.size();
  return count;
}

/// The longest list, of several, is "all others"; of more labels than anybody reads "5 of 26".
std::string list_in(const Said& said, size_t i) {
  if (const size_t all = label_count(said); all > kNamedGroups) return std::to_string(said[i].second.size()) + " of " + std::to_string(all);
  size_t longest = 0;
  for (size_t k = 1; k < said.size(); ++k)
    if (said[k].second.size() > said[longest].second.size()) longest = k;
  return i == longest && said.size() > 1 && said[i].second.size() > 2 ? "all others" : list_of(said[i].second);
}

/// Without branches, which belong to their runs.
DrawnSet trunks_of(const DrawnSet& drawn) {
  RunSet all;
  for (const DrawnRuns& each : drawn) all.insert(all.end(), each.seeds.begin(), each.seeds.end());
  const TrunksAndBranches trunks(all);
  const RunSet& own = trunks.runs();
  DrawnSet set;
  for (const DrawnRuns& each : drawn)
    if (std::any_of(each.seeds.begin(), each.seeds.end(),
                    [&](const Run* run) { return std::find(own.begin(), own.end(), run) != own.end(); }))
      set.push_back(each);
  return set;
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string tuning_note(const DrawnSet& drawn, const TuningOfRun& tuning) {
  if (!tuning) return "";
  Said said;
  const DrawnSet trunks = trunks_of(drawn);
  for (const DrawnRuns& each : trunks)
    if (const std::string words = short_words(tuning_of_row(each.seeds, tuning)); !words.empty()) say_of(said, words, each.label);
  if (said.size() == 1) return (trunks.size() > 1 ? "Learning rates, all: " : "Learning rate: ") + said.front().first + ".";
  std::string text;
  for (size_t i = 0; i < said.size(); ++i) text += (text.empty() ? "" : " ") + capital(said[i].first) + ": " + list_in(said, i) + ".";
  return text;
}

std::string schedule_note(const std::vector<Curve>& curves) {
  Said said;
  bool any_ends = false;
  for (const Curve& curve : curves) {
    if (curve.note.starts_with(kMidSchedule)) say_of(said, kMidSchedule, curve.label);
    any_ends = any_ends || curve.note.starts_with(kBranchEnds);
  }
  if (said.empty()) return "";
  const std::string points = "all points but the last of a finished run are mid-schedule, read before the learning rate has fallen.";
  if (!any_ends) return "No curve has ends of cooldown branches: " + points;
  const std::vector<std::string>& labels = said.front().second;
  const bool many = labels.size() > kNamedGroups;
  return "Without ends of cooldown branches, " + (many ? std::to_string(labels.size()) + " curves" : list_of(labels)) + ": " + points;
}

std::string joined_note(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : ", ") + other;
}

}  // namespace saccade
