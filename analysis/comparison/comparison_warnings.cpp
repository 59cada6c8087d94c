#include "analysis/comparison/comparison_warnings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/comparison/look_ahead.h"

namespace saccade {

ToldNames::ToldNames(const std::vector<const Run*>& runs) {
  std::map<std::string, const Run*> firsts;
  for (const Run* run : runs) {
    const auto [first, is_new] = firsts.emplace(run->name(), run);
    if (!is_new && run->experiment() != first->second->experiment()) shared_.insert(run->name());
  }
}

std::string ToldNames::operator()(const Run& run) const {
  const std::string name = run.name();
  return shared_.contains(name) ? name + " (" + run.info().directory.filename().string() + ")" : name;
}

namespace {

using nlohmann::json;

struct Condition {
  const char* pointer;
  bool in_provenance;
  const char* what;
  const char* so = "";  ///< what that means
};
constexpr Condition kConditions[] = {
    {"/corpus_hash", true, "train and test on another corpus"},
    {"/tokenizer_hash", true, "use another tokenizer", ", so their losses per token cannot be compared"},
    {"/data/train", false, "train on other domains"},
    {"/data/ood", false, "are tested on other OOD domains"},
    {"/data/sequence_length", false, "use another sequence length", ", so other evaluation batches"},
    {"/training/evaluation_tokens", false, "are evaluated on another number of tokens"},
};

void warn(std::vector<std::string>& warnings, const std::vector<std::string>& names, const std::string& what, const std::string& first) {
  if (!names.empty()) warnings.push_back(named_briefly(names) + ": " + what + " than " + first);
}

/// Settings of an optimizer or a schedule that one of two runs does not train with: that it trains with another is said.
bool comes_with_another(const json& experiment, const json& usual, const json::json_pointer& pointer) {
  if (experiment.contains(pointer) == usual.contains(pointer)) return false;
  return experiment.at("training").value("optimizer", json()) != usual.at("training").value("optimizer", json()) ||
         experiment.at("training").value("schedule", json()) != usual.at("training").value("schedule", json());
}

/// "B, C: are trained with steps 60, 80 (A: 100)": settings of the training, and the precision, in which runs differ from the first. Not
/// one that was `searched`, for each of them.
void warn_of_training(std::vector<std::string>& warnings, const std::vector<const Run*>& runs, const std::string& searched,
                      const ToldNames& told) {
  std::set<json::json_pointer> pointers{json::json_pointer("/precision")};
  for (const Run* run : runs)
    for (const auto& [key, value] : run->experiment().at("training").items()) pointers.insert(json::json_pointer("/training") / key);
  for (const Condition& condition : kConditions) pointers.erase(json::json_pointer(condition.pointer));
  if (!searched.empty()) pointers.erase(setting_pointer(searched));
  const auto shown = [](const json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "none" : value.dump();
  };
  for (const json::json_pointer& pointer : pointers) {
    const json usual = runs.front()->experiment().value(pointer, json());
    std::vector<std::string> names, values;
    const auto add = [](std::vector<std::string>& list, const std::string& text) {
      if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
    };
    for (const Run* run : runs)
      if (const json value = run->experiment().value(pointer, json());
          value != usual && !comes_with_another(run->experiment(), runs.front()->experiment(), pointer))
        add(names, told(*run)), add(values, shown(value));
    if (names.empty()) continue;
    const std::string what = pointer.back() == "precision" ? "compute in " : "are trained with " + pointer.back() + " ";
    warnings.push_back(named_briefly(names) + ": " + what + named_briefly(values) + " (" + told(*runs.front()) + ": " + shown(usual) + ")");
  }
}

void warn_of_look_ahead(std::vector<std::string>& warnings, const std::vector<const Run*>& runs, const ToldNames& told) {
  std::vector<std::string> names;
  std::string why;
  const auto ahead = std::count_if(runs.begin(), runs.end(), [&](const Run* run) {
    const std::string reason = looks_ahead(run->info().config);
    if (reason.empty()) return false;
    if (std::find(names.begin(), names.end(), told(*run)) == names.end()) names.push_back(told(*run));
    why = reason;
    return true;
  });
  if (ahead == 0 || static_cast<size_t>(ahead) == runs.size()) return;
  warnings.push_back(named_briefly(names) + ": look ahead, so their losses are no causal model's, which the others' are. " + why);
}

/// Domains of the last evaluation whose loss is NaN or infinite, which no mean over seeds takes in.
std::string not_finite(const Run& run) {
  std::string domains;
  if (run.last_evaluation())
    for (const DomainLoss& loss : run.last_evaluation()->losses)
      if (!std::isfinite(loss.loss)) domains += (domains.empty() ? "" : ", ") + loss.domain;
  return domains;
}

double trained_tokens(const Run& run) {
  const Series* steps = run.find("train/loss");
  return steps && !steps->tokens.empty() ? steps->tokens.back() : 0.0;
}

}  // namespace

std::string named_briefly(const std::vector<std::string>& words) {
  constexpr size_t kNamed = 3;
  const bool commas = std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.find(',') != word.npos; });
  std::string text = words.front();
  for (size_t i = 1; i < std::min(words.size(), kNamed); ++i) text += (commas ? "; " : ", ") + words[i];
  if (words.size() > kNamed) text += " and " + std::to_string(words.size() - kNamed) + " more";
  return text;
}

std::vector<std::string> describe_tuning(const std::vector<ComparisonRow>& rows) {
  std::map<std::string, std::vector<std::string>> titles;
  std::map<std::string, std::set<size_t>> budgets;  // of settings that were searched: how many values were tried
  for (const ComparisonRow& row : rows) {
    const bool one = row.tuning.state == Tuning::State::untuned && !leaves_rate_untuned(row.tuning);
    titles[one ? "untuned: one rate only" : describe(row.tuning)].push_back(row.title);
    budgets[row.tuning.setting].insert(one ? 1 : row.tuning.tried.size());
  }
  std::vector<std::string> lines;
  for (const auto& [words, names] : titles) lines.push_back(named_briefly(names) + ": " + words);
  for (const auto& [setting, sizes] : budgets)
    if (sizes.size() > 1)
      lines.push_back("the search for the best " + std::string(setting == "training.learning_rate" ? "rate" : setting) +
                      " was not as long for all (" + std::to_string(*sizes.begin()) + " to " + std::to_string(*sizes.rbegin()) +
                      " values)");
  if (budgets.size() > 1) lines.emplace_back("not the same setting was searched for all rows, so they are not tuned alike");
  return lines;
}

void warn_of_tuning(std::vector<std::string>& warnings, const std::vector<ComparisonRow>& rows) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : rows)
    if (row.tuning.state == Tuning::State::off_best) names.push_back(row.title);
  if (!names.empty())
    warnings.push_back(named_briefly(names) + ": not trained at the best value of the search, so this ranks no tuned runs");
}

bool as_many_tokens(const Run& run, const Run& other) {
  return std::abs(trained_tokens(run) - trained_tokens(other)) <= 0.01 * trained_tokens(other);
}

std::vector<std::string> find_differences(const std::vector<const Run*>& runs, const std::string& searched) {
  std::vector<std::string> warnings;
  const RunInfo& first = runs.front()->info();
  const ToldNames told(runs);
  const auto collect = [&](auto differs) {
    std::vector<std::string> names;  // of runs; seeds share one
    for (const Run* run : runs)
      if (differs(run->info()) && std::find(names.begin(), names.end(), told(*run)) == names.end()) names.push_back(told(*run));
    return names;
  };
  for (const Condition& condition : kConditions) {
    const json::json_pointer pointer(condition.pointer);
    const auto value = [&](const RunInfo& info) {
      return (condition.in_provenance ? info.provenance : info.config).value(pointer, json());
    };
    warn(warnings, collect([&](const RunInfo& info) { return value(info) != value(first); }), condition.what,
         told(*runs.front()) + condition.so);
  }
  warn_of_training(warnings, runs, searched, told);
  warn_of_look_ahead(warnings, runs, told);
  std::vector<std::string> others;
  for (const Run* run : runs) {
    if (run->info().state == RunState::finished && runs.front()->info().state == RunState::finished &&
        !as_many_tokens(*run, *runs.front()) && std::find(others.begin(), others.end(), told(*run)) == others.end())
      others.push_back(told(*run));
  }
  warn(warnings, others, "have been trained on another number of tokens", told(*runs.front()));
  const auto off = [&](const RunInfo& info) {
    return std::abs(static_cast<double>(info.parameters - first.parameters)) > 0.01 * static_cast<double>(first.parameters);
  };
  warn(warnings, collect(off), "have more than 1 % more or fewer parameters", told(*runs.front()));
  for (const Run* run : runs)
    for (const std::string& problem : {run->damage(), run->lost()})
      if (!problem.empty()) warnings.push_back(told(*run) + ": " + problem);
  std::map<std::string, std::vector<std::string>> lost;
  for (const Run* run : runs)
    if (const std::string domains = not_finite(*run); !domains.empty())
      lost[domains].push_back(told(*run) + ", seed " + std::to_string(run->info().seed));
  for (const auto& [domains, names] : lost)
    warnings.push_back(named_briefly(names) + ": the last loss of " + domains + " is not finite, so no mean has it");
  std::map<RunState, std::vector<std::string>> unfinished;
  for (const Run* run : runs)
    if (run->info().state != RunState::finished) unfinished[run->info().state].push_back(told(*run));
  for (const auto& [state, names] : unfinished)
    warnings.push_back(named_briefly(names) + (names.size() > 1 ? ": are not finished (" : ": is not finished (") + to_string(state) + ")");
  for (const Run* run : runs)
    for (const char* what : {"changes", "skipped_positions"})
      if (run->info().provenance.contains(what))
        warnings.push_back(told(*run) + ": went back after it diverged (" + what + ": " + run->info().provenance.at(what).dump() + ")");
  return warnings;
}

}  // namespace saccade
