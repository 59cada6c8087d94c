#include "analysis/comparison/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/equal_cost.h"
#include "analysis/comparison/groups.h"
#include "analysis/comparison/look_ahead.h"
#include "analysis/comparison/repetitions.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

using nlohmann::json;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double last(const Run& run, const std::string& name) {
  const Series* series = run.find(name);
  return series && !series->value.empty() ? series->value.back() : kUnknown;
}

/// The mean over the seeds of a row of what `measure` gives.
template <class F>
double mean_over(const std::vector<const Run*>& seeds, F measure) {
  std::vector<double> values;
  for (const Run* run : seeds)
    if (const double value = measure(*run); !std::isnan(value)) values.push_back(value);
  return mean(values);
}

double spent(const Run& run, const Column Series::*column) {
  const Series* steps = run.find("train/loss");
  return steps && !steps->step.empty() ? (steps->*column).back() : kUnknown;
}

void add_cost(ComparisonRow& row, const std::vector<const Run*>& seeds) {
  const auto noted = [&](const char* name) {
    const json value = seeds.front()->info().provenance.value(name, json());
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  };
  if (const auto embeddings = noted("embedding_parameters")) row.embedding_parameters = static_cast<int64_t>(*embeddings);
  row.state_bytes = noted("state_bytes_per_token").value_or(kUnknown);
  row.tokens = mean_over(seeds, [](const Run& r) { return spent(r, &Series::tokens); });
  row.flops = mean_over(seeds, [](const Run& r) { return spent(r, &Series::flops); });
  row.seconds = mean_over(seeds, [](const Run& r) { return spent(r, &Series::seconds); });
  std::set<std::string> devices;
  for (const Run* run : seeds) devices.insert(device_of(run->info()));
  row.devices.assign(devices.begin(), devices.end());
}

void add_memory(ComparisonRow& row, const std::vector<const Run*>& seeds) {
  constexpr double kMebibyte = 1 << 20;
  const bool on_cpu = seeds.front()->info().provenance.value("device", "").starts_with("cpu");
  row.memory_bytes = kUnknown;
  for (const char* name : {on_cpu ? "process_memory" : "device_memory", "device_memory"}) {
    for (const Run* run : seeds)
      if (const Series* series = run->find(name))
        for (const double mebibytes : series->value) row.memory_bytes = std::fmax(row.memory_bytes, mebibytes * kMebibyte);
    row.memory_of_process = name == std::string("process_memory");
    if (!std::isnan(row.memory_bytes)) return;
  }
}

/// "3.105 nats is the lowest pre-training loss that Transformer++ and 2 of 3 others have passed with all their seeds."
std::string reason_of(const Comparison& comparison, bool asked_for) {
  const std::vector<ComparisonRow>& rows = comparison.rows;
  if (!comparison.equal_loss)
    return rows.size() == 1
               ? ""
               : "There is no pre-training loss that " + rows.front().title + " and another have passed, so none at which to compare.";
  std::array<char, 48> at{};
  std::snprintf(at.data(), at.size(), "%.3f nats", *comparison.equal_loss);
  if (asked_for) return std::string(at.data()) + " was chosen.";
  const auto passed = [](const ComparisonRow& row) { return row.ood_at_equal.mean.has_value(); };
  const auto others = std::count_if(rows.begin() + 1, rows.end(), passed), all = static_cast<std::ptrdiff_t>(rows.size()) - 1;
  const std::string with = all == 0        ? ""
                           : others == all ? " and all others"
                                           : " and " + std::to_string(others) + " of " + std::to_string(all) + " others";
  if (!passed(rows.front()))
    return std::string(at.data()) + " is the lowest pre-training loss that the first and the most others of the finished rows have passed.";
  return std::string(at.data()) + " is the lowest pre-training loss that " + rows.front().title + with + " have passed.";
}

/// Of each seed what `at_end` gives of its runs that are whole.
std::map<int64_t, double> ends_of(const std::vector<const Run*>& seeds, const std::function<double(const Run&)>& at_end) {
  return by_seed(seeds, [&](const Run& run) { return run.damage().empty() ? at_end(run) : kUnknown; });
}

/// The mean over seeds of the last standard error that the journal has of a series: seeds were evaluated on the same text, so it is as
/// large for their mean.
std::optional<double> text_error(const std::vector<const Run*>& seeds, const std::string& series) {
  std::vector<double> errors;
  for (const auto& [seed, error] : ends_of(seeds, [&](const Run& run) {
         const Series* found = run.find(series);
         return found && !found->error.empty() ? found->error.back() : kUnknown;
       }))
    errors.push_back(error);
  return errors.empty() ? std::nullopt : std::optional(mean(errors));
}

/// As the journals have them.
void add_ends(ComparisonRow& row, const std::vector<const Run*>& seeds, const std::string& domain, const PretrainingLoss& loss) {
  row.id_at_end = compared_loss(ends_of(seeds,
                                        [&](const Run& run) {
                                          const Series series = pretraining_series(run, loss);
                                          return series.value.empty() ? kUnknown : series.value.back();
                                        }),
                                row.independent);
  if (loss.kind == PretrainingLoss::Kind::validation) row.id_at_end.text_error = text_error(seeds, "validation/loss");
  const std::string ood = domain.empty() ? "ood/loss" : "ood/loss/" + domain;
  row.ood_at_end = compared_loss(ends_of(seeds, [&](const Run& run) { return last(run, ood); }), row.independent);
  row.ood_at_end.text_error = text_error(seeds, ood);
  for (const std::string& name : seeds.front()->ood_domains())
    row.domains.emplace_back(
        name, compared_loss(ends_of(seeds, [&](const Run& run) { return last(run, "ood/loss/" + name); }), true).mean.value_or(kUnknown));
}

ComparisonRow make_row(const RunGroup& group, const TrunksAndBranches& trunks, std::optional<double> equal_loss, const std::string& domain,
                       const PretrainingLoss& loss) {
  const std::vector<const Run*>& seeds = group.seeds;
  ComparisonRow row;
  row.title = group.label;
  row.directory = seeds.front()->info().directory;
  row.parameters = seeds.front()->info().parameters;
  for (const Run* run : seeds) row.runs.push_back(run->name());
  add_cost(row, seeds);
  add_memory(row, seeds);
  row.tokens_per_second = mean_over(seeds, [](const Run& r) { return r.tokens_per_second(); });
  for (const Run* run : seeds)
    if (row.seeds.empty() || row.seeds.back() != run->info().seed) row.seeds.push_back(run->info().seed);
  row.independent = with_one_beginning(seeds).empty();
  add_ends(row, seeds, domain, loss);
  if (!equal_loss) return row;
  row.branch_ends = std::all_of(seeds.begin(), seeds.end(), [&](const Run* run) { return trunks.has_ends(*run); });
  row.ood_at_equal = compared_loss(
      by_seed(seeds, [&](const Run& run) { return ood_at(trunks.trajectory_of(run, domain, loss), *equal_loss).value_or(kUnknown); }),
      row.independent);
  return row;
}

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

/// The first three, and how many more there are.
std::string joined(const std::vector<std::string>& words) {
  constexpr size_t kNamed = 3;
  std::string text = words.front();
  for (size_t i = 1; i < std::min(words.size(), kNamed); ++i) text += ", " + words[i];
  if (words.size() > kNamed) text += " and " + std::to_string(words.size() - kNamed) + " more";
  return text;
}

void warn(std::vector<std::string>& warnings, const std::vector<std::string>& names, const std::string& what, const std::string& first) {
  if (!names.empty()) warnings.push_back(joined(names) + ": " + what + " than " + first);
}

/// "another precision (f64) than A (f32)": settings of the training, and the precision, in which runs differ from the first. Not one that
/// was `searched`, for each of them.
void warn_of_training(std::vector<std::string>& warnings, const std::vector<const Run*>& runs, const std::string& searched) {
  std::set<json::json_pointer> pointers{json::json_pointer("/precision")};
  for (const Run* run : runs)
    for (const auto& [key, value] : run->experiment().at("training").items()) pointers.insert(json::json_pointer("/training") / key);
  for (const Condition& condition : kConditions) pointers.erase(json::json_pointer(condition.pointer));
  if (!searched.empty()) pointers.erase(setting_pointer(searched));
  const auto shown = [](const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); };
  for (const json::json_pointer& pointer : pointers) {
    const json usual = runs.front()->experiment().value(pointer, json());
    std::vector<std::string> names, values;
    const auto add = [](std::vector<std::string>& list, const std::string& text) {
      if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
    };
    for (const Run* run : runs)
      if (const json value = run->experiment().value(pointer, json()); value != usual) add(names, run->name()), add(values, shown(value));
    if (names.empty()) continue;
    const std::string what = pointer.back() == "precision" ? "compute in another " : "are trained with another ";
    warn(warnings, names, what + pointer.back() + " (" + joined(values) + ")", runs.front()->name() + " (" + shown(usual) + ")");
  }
}

void warn_of_look_ahead(std::vector<std::string>& warnings, const std::vector<const Run*>& runs) {
  std::vector<std::string> names;
  std::string why;
  const auto ahead = std::count_if(runs.begin(), runs.end(), [&](const Run* run) {
    const std::string reason = looks_ahead(run->info().config);
    if (reason.empty()) return false;
    if (std::find(names.begin(), names.end(), run->name()) == names.end()) names.push_back(run->name());
    why = reason;
    return true;
  });
  if (ahead == 0 || static_cast<size_t>(ahead) == runs.size()) return;
  warnings.push_back(joined(names) + ": look ahead, so their losses are no causal model's, which the others' are. " + why);
}

/// "A, B: untuned: one rate only; C: tuned: …": what the search for the best rate says of the rows, and that unequal searches are no
/// comparison.
std::vector<std::string> describe_tuning(const std::vector<ComparisonRow>& rows) {
  std::map<std::string, std::vector<std::string>> titles;
  std::map<std::string, std::set<size_t>> budgets;  // of settings that were searched: how many values were tried
  for (const ComparisonRow& row : rows) {
    const bool one = row.tuning.state == Tuning::State::untuned && !leaves_rate_untuned(row.tuning);
    titles[one ? "untuned: one rate only" : describe(row.tuning)].push_back(row.title);
    budgets[row.tuning.setting].insert(one ? 1 : row.tuning.tried.size());
  }
  std::vector<std::string> lines;
  for (const auto& [words, names] : titles) lines.push_back(joined(names) + ": " + words);
  for (const auto& [setting, sizes] : budgets)
    if (sizes.size() > 1)
      lines.push_back("the search for the best " + std::string(setting == "training.learning_rate" ? "rate" : setting) +
                      " was not as long for all (" + std::to_string(*sizes.begin()) + " to " + std::to_string(*sizes.rbegin()) +
                      " values)");
  if (budgets.size() > 1) lines.emplace_back("not the same setting was searched for all rows, so they are not tuned alike");
  return lines;
}

/// Rows of which a search is done, but that were trained with another value than it chose: of these no ranking holds.
void warn_of_tuning(std::vector<std::string>& warnings, const std::vector<ComparisonRow>& rows) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : rows)
    if (row.tuning.state == Tuning::State::off_best) names.push_back(row.title);
  if (!names.empty()) warnings.push_back(joined(names) + ": not trained at the best value of the search, so this ranks no tuned runs");
}

double trained_tokens(const Run& run) {
  const Series* steps = run.find("train/loss");
  return steps && !steps->tokens.empty() ? steps->tokens.back() : 0.0;
}
bool as_many_tokens(const Run& run, const Run& other) {
  return std::abs(trained_tokens(run) - trained_tokens(other)) <= 0.01 * trained_tokens(other);
}

std::vector<std::string> find_differences(const std::vector<const Run*>& runs, const std::string& searched) {
  std::vector<std::string> warnings;
  const RunInfo& first = runs.front()->info();
  const auto collect = [&](auto differs) {
    std::vector<std::string> names;  // of runs; seeds share one
    for (const Run* run : runs)
      if (differs(run->info()) && std::find(names.begin(), names.end(), run->name()) == names.end()) names.push_back(run->name());
    return names;
  };
  for (const Condition& condition : kConditions) {
    const json::json_pointer pointer(condition.pointer);
    const auto value = [&](const RunInfo& info) {
      return (condition.in_provenance ? info.provenance : info.config).value(pointer, json());
    };
    warn(warnings, collect([&](const RunInfo& info) { return value(info) != value(first); }), condition.what,
         runs.front()->name() + condition.so);
  }
  warn_of_training(warnings, runs, searched);
  warn_of_look_ahead(warnings, runs);
  std::vector<std::string> others;
  for (const Run* run : runs) {
    if (run->info().state == RunState::finished && runs.front()->info().state == RunState::finished &&
        !as_many_tokens(*run, *runs.front()) && std::find(others.begin(), others.end(), run->name()) == others.end())
      others.push_back(run->name());
  }
  warn(warnings, others, "have been trained on another number of tokens", runs.front()->name());
  const auto off = [&](const RunInfo& info) {
    return std::abs(static_cast<double>(info.parameters - first.parameters)) > 0.01 * static_cast<double>(first.parameters);
  };
  warn(warnings, collect(off), "have more than 1 % more or fewer parameters", runs.front()->name());
  for (const Run* run : runs)
    for (const std::string& problem : {run->damage(), run->lost()})
      if (!problem.empty()) warnings.push_back(run->name() + ": " + problem);
  std::map<RunState, std::vector<std::string>> unfinished;
  for (const Run* run : runs)
    if (run->info().state != RunState::finished) unfinished[run->info().state].push_back(run->name());
  for (const auto& [state, names] : unfinished)
    warnings.push_back(joined(names) + (names.size() > 1 ? ": are not finished (" : ": is not finished (") + to_string(state) + ")");
  for (const Run* run : runs)
    for (const char* what : {"changes", "skipped_positions"})
      if (run->info().provenance.contains(what))
        warnings.push_back(run->name() + ": went back after it diverged (" + what + ": " + run->info().provenance.at(what).dump() + ")");
  return warnings;
}

/// What all seeds of a row were evaluated on when they ended; says in `warnings` where that cannot be used.
std::optional<SequenceLosses> losses_of_row(const std::vector<const Run*>& seeds, std::vector<std::string>& warnings) try {
  std::vector<std::shared_ptr<const SequenceLosses>> losses;
  for (const Run* run : seeds) {
    if (run->info().state != RunState::finished || !run->damage().empty()) return {};
    losses.push_back(losses_at_end(run->info().directory, run->info().step));
    if (!losses.back()) return {};
  }
  return mean_of(losses);
} catch (const DataError& error) {
  warnings.push_back(seeds.front()->name() + ": " + error.what());
  return {};
}

void pair_with_first(Comparison& comparison, const std::string& domain) {
  const std::optional<SequenceLosses>& first = comparison.rows.front().losses;
  std::vector<PairedTest> tests(comparison.rows.size());
  for (size_t i = 1; i < comparison.rows.size(); ++i) {
    ComparisonRow& row = comparison.rows[i];
    if (!first || !row.losses || row.losses->text != first->text) continue;
    const LossAndError difference = paired_difference(*row.losses, *first, true, domain);
    if (std::isnan(difference.loss)) continue;
    row.ood_paired = difference;
    if (const double p = p_of(difference); !std::isnan(p)) tests[i].p = p;
  }
  correct_by_holm(tests);
  for (size_t i = 1; i < tests.size(); ++i) comparison.rows[i].ood_paired_p = tests[i].p_holm;
}

/// Where all seeds of all rows were evaluated on one text when they had ended, their ends are those: on more text than the journal's.
void take_kept_ends(Comparison& comparison, const std::vector<RunGroup>& groups, const std::string& domain) {
  std::vector<ComparisonRow>& rows = comparison.rows;
  const auto alike = [&](const ComparisonRow& row) { return row.losses && row.losses->text == rows.front().losses->text; };
  comparison.ends_kept = !rows.empty() && std::all_of(rows.begin(), rows.end(), alike);
  for (size_t i = 0; comparison.ends_kept && i < rows.size(); ++i) {
    ComparisonRow& row = rows[i];
    const auto take = [&](ComparedLoss& end, bool ood, const std::string& only) {
      ComparedLoss kept = compared_loss(
          ends_of(groups[i].seeds,
                  [&](const Run& run) { return mean_over_domains(*losses_at_end(run.info().directory, run.info().step), ood, only).loss; }),
          row.independent);
      if (!kept.mean) return;  // that domain was not among what was evaluated
      end = std::move(kept);
      const double error = mean_over_domains(*row.losses, ood, only).error;
      if (!std::isnan(error)) end.text_error = error;
    };
    take(row.ood_at_end, true, domain);
    if (comparison.pretraining.kind == PretrainingLoss::Kind::validation) take(row.id_at_end, false, "");
    for (auto& [name, loss] : row.domains)
      if (const double kept = mean_over_domains(*row.losses, true, name).loss; !std::isnan(kept)) loss = kept;
  }
}

void compare_rows_with_first(Comparison& comparison) {
  const auto all = [&](ComparedLoss ComparisonRow::*loss) {
    std::vector<ComparedLoss*> losses;
    for (ComparisonRow& row : comparison.rows) losses.push_back(&(row.*loss));
    compare_with_first(losses);
  };
  all(&ComparisonRow::ood_at_equal);
  if (comparison.equal_ends) all(&ComparisonRow::id_at_end), all(&ComparisonRow::ood_at_end);
}

/// "avey, seed 2: has not come down to 3.20 yet (step 40 of 1000)"
std::string why_left_out(const Run& run, const TrunksAndBranches& trunks, const std::optional<double>& equal_loss,
                         const std::string& domain, const PretrainingLoss& loss) {
  const RunInfo& info = run.info();
  const std::string name = run.name() + ", seed " + std::to_string(info.seed) + ": ";
  if (const std::string damage = run.damage(); !damage.empty()) return name + damage + ", so it has no end";
  const Trajectory t = trunks.trajectory_of(run, domain, loss);
  std::array<char, 96> text{};
  if (t.step.empty()) {
    std::snprintf(text.data(), text.size(), "has no OOD loss yet (step %lld of %lld)", static_cast<long long>(info.step),
                  static_cast<long long>(info.steps));
    return name + text.data();
  }
  if (!equal_loss || ood_at(t, *equal_loss)) return {};
  const bool late = t.pretraining.front() < *equal_loss;
  if (late && trunks.has_ends(run))
    std::snprintf(text.data(), text.size(), "was below %.3f at its first branch end", *equal_loss);
  else
    std::snprintf(text.data(), text.size(),
                  late ? "was below %.3f at its first evaluation" : "has not come down to %.3f (step %lld of %lld)", *equal_loss,
                  static_cast<long long>(info.step), static_cast<long long>(info.steps));
  return name + text.data();
}

}  // namespace

Tuning tuning_of_row(const std::vector<const Run*>& seeds, const TuningOfRun& tuning) {
  for (const Run* run : seeds) {
    const Tuning known = tuning ? tuning(*run) : Tuning{};
    if (known.state == Tuning::State::unknown) continue;
    const json own = run->experiment().value(setting_pointer(known.setting), json());
    return own.is_number() ? of_value(known, own.get<double>()) : known;
  }
  return untuned(*seeds.front());
}

std::string read_from(const ComparisonRow& row) { return !row.ood_at_equal.mean ? "" : row.branch_ends ? "branch ends" : "mid-schedule"; }

std::optional<size_t> best_row(const Comparison& comparison, ComparedAt at) {
  const std::vector<ComparisonRow>& rows = comparison.rows;
  constexpr double kShown = 5e-4, kLevel = 0.05;  // differences that three digits show; of a test
  const bool end = at == ComparedAt::end;
  if (rows.size() < 2 || (end && !comparison.equal_ends)) return {};
  const auto loss = [&](size_t i) -> const ComparedLoss& { return end ? rows[i].ood_at_end : rows[i].ood_at_equal; };
  const auto ood = [&](size_t i) { return loss(i).mean.value_or(kUnknown); };
  std::optional<size_t> least;
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::isfinite(ood(i)) && (!least || ood(i) < ood(*least))) least = i;
  if (!least) return {};
  std::vector<PairedTest> tests;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == *least || !std::isfinite(ood(i))) continue;
    tests.push_back(test_of_pairs(loss(i).by_seed, loss(*least).by_seed));
    if (ood(i) - ood(*least) < kShown || tests.back().difference.mean <= 0) return {};
  }
  correct_by_holm(tests);
  const bool told = std::all_of(tests.begin(), tests.end(), [](const PairedTest& test) { return test.p_holm.value_or(1) < kLevel; });
  if (tests.empty() || !told) return {};
  return least;
}

Comparison compare(const std::vector<const Run*>& given, std::optional<double> at_loss, const std::string& domain,
                   const std::vector<const Run*>& among, const PretrainingLoss& pretraining, const TuningOfRun& tuning) {
  Comparison comparison;
  comparison.pretraining = pretraining;
  if (given.empty()) return comparison;
  const TrunksAndBranches trunks(given);
  const std::vector<const Run*>& runs = trunks.runs();
  comparison.equal_loss = at_loss ? at_loss : common_loss(given, pretraining);
  std::vector<std::string> unusable;
  std::set<std::string> searched;  // settings of which the rows have their best values; "" where one has not
  const std::vector<RunGroup> groups = group_runs(runs, TrunksAndBranches(among).runs());
  for (const RunGroup& group : groups) {
    comparison.rows.push_back(make_row(group, trunks, comparison.equal_loss, domain, pretraining));
    comparison.rows.back().tuning = tuning_of_row(group.seeds, tuning);
    comparison.rows.back().losses = losses_of_row(group.seeds, unusable);
    const std::vector<std::string> repeats = describe_repeats(group.seeds);
    unusable.insert(unusable.end(), repeats.begin(), repeats.end());
    const Tuning& known = comparison.rows.back().tuning;
    searched.insert(known.state == Tuning::State::tuned ? known.setting : std::string());
  }
  comparison.equal_ends = std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
    return run->info().state == RunState::finished && as_many_tokens(*run, *runs.front());
  });
  pair_with_first(comparison, domain);
  take_kept_ends(comparison, groups, domain);
  compare_rows_with_first(comparison);
  comparison.equal_reason = reason_of(comparison, at_loss.has_value());
  for (const Run* run : runs)
    if (std::string why = why_left_out(*run, trunks, comparison.equal_loss, domain, pretraining); !why.empty())
      comparison.left_out.push_back(std::move(why));
  comparison.warnings = find_differences(runs, searched.size() == 1 ? *searched.begin() : std::string());
  comparison.warnings.insert(comparison.warnings.end(), unusable.begin(), unusable.end());
  warn_of_tuning(comparison.warnings, comparison.rows);
  comparison.tuning = describe_tuning(comparison.rows);
  comparison.equality = describe_equality(comparison.rows);
  return comparison;
}

}  // namespace saccade
