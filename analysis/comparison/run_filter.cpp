#include "analysis/comparison/run_filter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "analysis/comparison/filter_names.h"
#include "analysis/comparison/group_names.h"
#include "models/config/old_names.h"

namespace saccade {
namespace {

using nlohmann::json;

/// ASCII only: names of settings and architectures.
std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  const std::string unit(end, text.data() + text.size());
  if (unit.empty()) return value;
  if (unit == "k") return value * 1e3;
  if (unit == "M") return value * 1e6;
  if (unit == "G" || unit == "B") return value * 1e9;
  return {};
}

/// All values a config has under a name, at any depth.
void collect(const json& config, const std::string& name, std::vector<const json*>& found) {
  for (const auto& [key, value] : config.items()) {
    if (value.is_object())
      collect(value, name, found);
    else if (key == name)
      found.push_back(&value);
  }
}

double last_of(const Run* run, const char* series) {
  const Series* found = run ? run->find(series) : nullptr;
  return found && !found->value.empty() ? found->value.back() : std::nan("");
}

/// What is no setting, but is asked for like one.
std::optional<double> measured(const RunInfo& info, const Run* run, const std::string& name) {
  if (name == "seed") return static_cast<double>(info.seed);
  if (name == "step") return static_cast<double>(info.step);
  if (name == "steps") return static_cast<double>(info.steps);
  if (name == "parameters") return static_cast<double>(info.parameters);
  if (name == "loss") return last_of(run, "validation/loss");
  if (name == "ood") return last_of(run, "ood/loss");
  if (name == "tokens_per_second") return run ? run->tokens_per_second() : std::nan("");
  return {};
}

}  // namespace

RunFilter::RunFilter(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) terms_.push_back(parse(word));
}

RunFilter::Term RunFilter::parse(const std::string& word) {
  const size_t at = word.find_first_of(":=<>");
  if (at == 0 || at == std::string::npos) return {Kind::word, "", lower(word)};
  const bool or_equal = at + 1 < word.size() && word[at + 1] == '=';
  Term term{Kind::is, current_setting_name(word.substr(0, at)), word.substr(at + (or_equal ? 2 : 1))};
  if (word[at] == ':' || word[at] == '=') {
    const size_t dots = term.text.find("..");
    if (dots == std::string::npos) return term;
    const auto low = number_in(term.text.substr(0, dots)), high = number_in(term.text.substr(dots + 2));
    if (low && high) term.kind = Kind::range, term.low = *low, term.high = *high;
    return term;
  }
  const auto bound = number_in(term.text);
  term.low = term.high = bound.value_or(std::nan(""));
  term.kind = word[at] == '>' ? (or_equal ? Kind::at_least : Kind::above) : (or_equal ? Kind::at_most : Kind::below);
  return term;
}

bool RunFilter::holds(const Term& term, const Asked& asked) {
  static const RunNotes none;
  const RunInfo& info = asked.info;
  const RunNotes& notes = asked.run ? asked.run->notes() : none;
  if (term.kind == Kind::word) {
    const std::string words = info.title + " " + info.name + " " + info.directory.filename().string() + " seed " +
                              std::to_string(info.seed) + " " + asked.state + (asked.state == "finished" ? " done" : "") +
                              (notes.starred ? " starred" : "") + " " + tags_text(notes.tags) + " " + notes.note;
    return lower(words).find(term.text) != std::string::npos;
  }
  const auto told = [&](const std::string& text) { return lower(text).find(lower(term.text)) != std::string::npos; };
  if (term.name == "tag") return std::any_of(notes.tags.begin(), notes.tags.end(), told);
  if (term.name == "note") return told(notes.note);
  if (term.name == "state") return asked.state.find(lower(term.text)) != std::string::npos;
  const auto compares = [&](double value) {
    switch (term.kind) {
      case Kind::above: return value > term.low;
      case Kind::at_least: return value >= term.low;
      case Kind::below: return value < term.low;
      case Kind::at_most: return value <= term.low;
      case Kind::range: return value >= term.low && value <= term.high;
      default: return number_in(term.text) == value;
    }
  };
  // "ood" is a loss where it is compared and a setting where it is named: "ood<4", "ood:python"
  const bool named = term.kind == Kind::is && !number_in(term.text);
  if (const auto value = named ? std::nullopt : measured(info, asked.run, term.name)) return compares(*value);
  std::vector<const json*> values;
  collect(info.config, term.name, values);
  return std::any_of(values.begin(), values.end(), [&](const json* value) {
    if (value->is_number()) return compares(value->get<double>());
    return term.kind == Kind::is && lower(plain_text(*value)).find(lower(term.text)) != std::string::npos;
  });
}

bool RunFilter::passes(const Asked& asked) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) { return holds(term, asked); });
}

std::vector<std::string> unknown_filter_names(const std::string& text, const std::vector<const Run*>& runs) {
  constexpr const char* kOfEveryRun[] = {"tag", "note", "state"};
  std::vector<std::string> unknown;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t at = word.find_first_of(":=<>");
    if (at == 0 || at == std::string::npos) continue;
    const std::string written = word.substr(0, at), name = current_setting_name(written);
    const bool known = std::find(std::begin(kOfEveryRun), std::end(kOfEveryRun), name) != std::end(kOfEveryRun) ||
                       std::any_of(runs.begin(), runs.end(), [&](const Run* run) {
                         std::vector<const json*> values;
                         collect(run->info().config, name, values);
                         return !values.empty() || measured(run->info(), nullptr, name);
                       });
    if (!known && std::find(unknown.begin(), unknown.end(), written) == unknown.end()) unknown.push_back(written);
  }
  return unknown;
}

bool RunFilter::passes(const Run& run) const { return passes(Asked{run.info(), &run, to_string(run.info().state)}); }

bool RunFilter::passes_queued(const RunInfo& info) const { return passes(Asked{info, nullptr, "queued"}); }

}  // namespace saccade
