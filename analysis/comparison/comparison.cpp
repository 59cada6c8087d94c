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
#include "analysis/comparison/common_sequences.h"
#include "analysis/comparison/comparison_warnings.h"
#include "analysis/comparison/end_evaluations.h"
#include "analysis/comparison/equal_cost.h"
#include "analysis/comparison/groups.h"
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

/// What all seeds of a row were evaluated on when they ended; says in `warnings` where that cannot be used.
std::optional<SequenceLosses> losses_of_row(const std::vector<const Run*>& seeds, const CommonSequences& ends_of_runs,
                                            std::vector<std::string>& warnings) try {
  std::vector<std::shared_ptr<const SequenceLosses>> losses;
  for (const Run* run : seeds) {
    if (run->info().state != RunState::finished || !run->damage().empty()) return {};
    losses.push_back(ends_of_runs.of(*run));
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

/// What the seeds of a row were evaluated on when they had ended, in place of what their journals have.
void take_kept_ends(ComparisonRow& row, const std::vector<const Run*>& seeds, const std::string& domain,
                    const CommonSequences& ends_of_runs, bool in_domain) {
  const auto take = [&](ComparedLoss& end, bool ood, const std::string& only) {
    ComparedLoss kept = compared_loss(
        ends_of(seeds, [&](const Run& run) { return mean_over_domains(*ends_of_runs.of(run), ood, only).loss; }), row.independent);
    if (!kept.mean) return;  // that domain was not among what was evaluated
    end = std::move(kept);
    const double error = mean_over_domains(*row.losses, ood, only).error;
    if (!std::isnan(error)) end.text_error = error;
  };
  take(row.ood_at_end, true, domain);
  if (in_domain) take(row.id_at_end, false, "");
  for (auto& [name, loss] : row.domains)
    if (const double kept = mean_over_domains(*row.losses, true, name).loss; !std::isnan(kept)) loss = kept;
}

/// Where all seeds of all rows were evaluated on one text when they had ended, their ends are those: on more text than the journal's.
void take_kept_ends(Comparison& comparison, const std::vector<RunGroup>& groups, const std::string& domain,
                    const CommonSequences& ends_of_runs) {
  std::vector<ComparisonRow>& rows = comparison.rows;
  const auto alike = [&](const ComparisonRow& row) { return row.losses && row.losses->text == rows.front().losses->text; };
  comparison.ends_kept = !rows.empty() && std::all_of(rows.begin(), rows.end(), alike);
  const bool in_domain = comparison.pretraining.kind == PretrainingLoss::Kind::validation;
  for (size_t i = 0; comparison.ends_kept && i < rows.size(); ++i)
    take_kept_ends(rows[i], groups[i].seeds, domain, ends_of_runs, in_domain);
}

/// The ends of these evaluations alone: where a row has none, of the text of the first that has one, it has no end.
void take_ends_of(const EndEvaluations& ends, Comparison& comparison, const std::vector<RunGroup>& groups, const std::string& domain,
                  const CommonSequences& ends_of_runs) {
  std::vector<ComparisonRow>& rows = comparison.rows;
  const auto first = std::find_if(rows.begin(), rows.end(), [](const ComparisonRow& row) { return row.losses.has_value(); });
  std::vector<std::string> without;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].id_at_end = {}, rows[i].ood_at_end = {};
    for (auto& [name, loss] : rows[i].domains) loss = kUnknown;
    if (rows[i].losses && rows[i].losses->text == first->losses->text)
      take_kept_ends(rows[i], groups[i].seeds, domain, ends_of_runs, true);
    else
      without.push_back(rows[i].title);
  }
  comparison.ends_kept = without.empty() && !rows.empty();
  if (!without.empty())
    comparison.warnings.push_back(named_briefly(without) + ": not evaluated on " + std::to_string(ends.tokens()) + " tokens of the " +
                                  ends.split() + " split at the end");
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
std::string why_left_out(const Run& run, const ToldNames& told, const TrunksAndBranches& trunks, const std::optional<double>& equal_loss,
                         const std::string& domain, const PretrainingLoss& loss) {
  const RunInfo& info = run.info();
  const std::string name = told(run) + ", seed " + std::to_string(info.seed) + ": ";
  if (const std::string damage = run.damage(); !damage.empty()) return name + damage + ", so it has no end";
  const Trajectory t = trunks.trajectory_of(run, domain, loss);
  std::array<char, 96> text{};
  if (t.step.empty()) {
    if (run.ood_domains().empty()) return name + "has no OOD domains";
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

namespace {

/// `ends`: null: what the runs evaluated themselves.
Comparison compared(const std::vector<const Run*>& given, std::optional<double> at_loss, const std::string& domain,
                    const std::vector<const Run*>& among, const PretrainingLoss& pretraining, const TuningOfRun& tuning,
                    const EndEvaluations* ends) {
  Comparison comparison;
  comparison.pretraining = pretraining;
  if (given.empty()) return comparison;
  const TrunksAndBranches trunks(given);
  const std::vector<const Run*>& runs = trunks.runs();
  comparison.equal_loss = at_loss ? at_loss : common_loss(given, pretraining);
  const CommonSequences ends_of_runs(
      runs, [&](const Run& run) { return ends ? ends->of(run) : losses_at_end(run.info().directory, run.info().step); });
  std::vector<std::string> unusable;
  std::set<std::string> searched;  // settings of which the rows have their best values; "" where one has not
  const std::vector<RunGroup> groups = group_runs(runs, TrunksAndBranches(among).runs());
  for (const RunGroup& group : groups) {
    comparison.rows.push_back(make_row(group, trunks, comparison.equal_loss, domain, pretraining));
    comparison.rows.back().tuning = tuning_of_row(group.seeds, tuning);
    comparison.rows.back().losses = losses_of_row(group.seeds, ends_of_runs, unusable);
    const std::vector<std::string> repeats = describe_repeats(group.seeds);
    unusable.insert(unusable.end(), repeats.begin(), repeats.end());
    const Tuning& known = comparison.rows.back().tuning;
    searched.insert(known.state == Tuning::State::tuned ? known.setting : std::string());
  }
  comparison.equal_ends = std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
    return run->info().state == RunState::finished && as_many_tokens(*run, *runs.front());
  });
  pair_with_first(comparison, domain);
  if (ends) comparison.split = ends->split(), comparison.split_tokens = ends->tokens();
  if (ends)
    take_ends_of(*ends, comparison, groups, domain, ends_of_runs);
  else
    take_kept_ends(comparison, groups, domain, ends_of_runs);
  compare_rows_with_first(comparison);
  comparison.equal_reason = reason_of(comparison, at_loss.has_value());
  const ToldNames told(runs);
  for (const Run* run : runs)
    if (std::string why = why_left_out(*run, told, trunks, comparison.equal_loss, domain, pretraining); !why.empty())
      comparison.left_out.push_back(std::move(why));
  for (std::string& difference : find_differences(runs, searched.size() == 1 ? *searched.begin() : std::string()))
    comparison.warnings.push_back(std::move(difference));
  comparison.warnings.insert(comparison.warnings.end(), unusable.begin(), unusable.end());
  warn_of_tuning(comparison.warnings, comparison.rows);
  comparison.tuning = describe_tuning(comparison.rows);
  comparison.equality = describe_equality(comparison.rows);
  return comparison;
}

}  // namespace

Comparison compare(const std::vector<const Run*>& runs, std::optional<double> at_loss, const std::string& domain,
                   const std::vector<const Run*>& among, const PretrainingLoss& pretraining, const TuningOfRun& tuning) {
  return compared(runs, at_loss, domain, among, pretraining, tuning, nullptr);
}

Comparison compare_at_ends(const std::vector<const Run*>& runs, const EndEvaluations& ends, std::optional<double> at_loss,
                           const std::string& domain, const PretrainingLoss& pretraining, const TuningOfRun& tuning) {
  return compared(runs, at_loss, domain, {}, pretraining, tuning, &ends);
}

}  // namespace saccade
