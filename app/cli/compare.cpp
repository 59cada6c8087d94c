// saccade compare RUN…: parameters, speed, losses at the end and at equal pre-training loss, scores, each with its error and test.
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/comparison.h"
#include "analysis/comparison/end_evaluations.h"
#include "analysis/comparison/equal_cost.h"
#include "analysis/comparison/groups.h"
#include "analysis/comparison/number_text.h"
#include "analysis/figures/score_comparison.h"
#include "analysis/studies/study_folder.h"
#include "app/cli/command.h"
#include "app/cli/output.h"
#include "app/cli/runs_option.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::optional<double> at_loss;
  std::string domain;
  std::string equal;  ///< besides the loss; empty: nothing
  PretrainingOption pretraining;
  std::string split = "validation";  ///< of losses at the end
};

/// What is compared, and of another split than validation the ends that studies have evaluated.
struct Chosen {
  RunSet runs;
  std::optional<EndEvaluations> ends;
  std::vector<std::string> left_out;
};

/// On another split than validation those runs alone that their studies have evaluated on it, with their branches: beside a search's other
/// values the best one would have nothing to be held against. Throws UsageError where there are none.
Chosen choose(const OpenedRuns& opened, const std::string& split) {
  Chosen chosen{opened.pointers(), {}, {}};
  if (split == "validation") return chosen;
  chosen.ends.emplace(chosen.runs, split);
  if (chosen.ends->count() == 0)
    throw UsageError("--split " + split + ": " + how_to_evaluate_ends(split) + ", and saccade evaluate RUN RUN --split " + split +
                     " compares runs of no study");
  std::set<std::filesystem::path> left_out;
  for (const Run* run : chosen.runs)
    if (trunk_of(run->info().directory).empty() && !chosen.ends->of(*run)) {
      left_out.insert(run->info().directory);
      chosen.left_out.push_back(run->name() + ", seed " + std::to_string(run->info().seed) + ": not evaluated on " +
                                std::to_string(chosen.ends->tokens()) + " tokens of the " + split + " split at the end");
    }
  std::erase_if(chosen.runs, [&](const Run* run) {
    const std::filesystem::path &directory = run->info().directory, trunk = trunk_of(directory);
    return left_out.contains(trunk.empty() ? directory : trunk);
  });
  return chosen;
}

Comparison compared(const Chosen& chosen, const Options& options, const PretrainingLoss& pretraining) {
  Comparison comparison = chosen.ends
                              ? compare_at_ends(chosen.runs, *chosen.ends, options.at_loss, options.domain, pretraining, tuning_by_study())
                              : compare(chosen.runs, options.at_loss, options.domain, {}, pretraining, tuning_by_study());
  comparison.left_out.insert(comparison.left_out.end(), chosen.left_out.begin(), chosen.left_out.end());
  return comparison;
}

std::string score_text(const ScoreComparison& comparison) {
  if (comparison.tasks.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  const auto per_cent = [](const std::optional<double>& share) { return share ? std::optional(100 * *share) : std::nullopt; };
  for (const ScoreComparison::OfTask& task : comparison.tasks)
    for (size_t i = 0; i < task.rows.size(); ++i) {
      const ScoreComparison::Row& row = task.rows[i];
      if (i > 0 && !row.score) continue;  // of many architectures few may have been scored on a task
      const PairedTest& test = row.test.test;
      const bool tested = i > 0 && row.score && task.rows[0].score;
      rows.push_back({task.task, row.title,
                      number_text("%.1f", per_cent(row.score)) + (row.is_partial ? " (part)" : "") + (task.best == i ? " *" : ""),
                      row.score ? number_text("%.1f", 100 * row.error) : "–",
                      tested ? number_text("%+.1f", 100 * test.difference.mean) : "–",
                      number_text("%.1f", per_cent(test.difference.half_95)), number_text("%.3g", test.p_holm),
                      row.test.over.empty() ? "–" : row.test.over});
    }
  return "\n" + table({"task", "architecture", "score (%)", "± error", "against first", "± 95 %", "p", "tested over"}, rows) +
         "± error: standard error over seeds where there are several, else over items; p: paired t test of the seeds that the first has "
         "too, "
         "else McNemar's exact test of the items that both answered (a paired t test where items can be right in part), corrected for the "
         "task's other rows (Holm); *: above every other with p < 0.05. A test over items says nothing of other seeds. Of each task the "
         "first row and those with a score.\n";
}

/// As compare() gathers them.
DrawnSet rows_of(const RunSet& runs) {
  const TrunksAndBranches trunks(runs);
  DrawnSet rows;
  for (RunGroup& group : group_runs(trunks.runs())) rows.push_back({.label = group.label, .colour = {}, .seeds = group.seeds});
  return rows;
}

int run(const Options& options) {
  const OpenedRuns runs = open_runs(options.runs, true);
  require_domain(runs, options.domain);
  if (options.at_loss && !std::isfinite(*options.at_loss)) throw UsageError("--at-loss expects a loss in nats");
  const PretrainingLoss pretraining = options.pretraining.chosen(runs);
  const Chosen chosen = choose(runs, options.split);
  const Comparison comparison = compared(chosen, options, pretraining);
  nlohmann::json json = to_json(comparison);
  json["skipped"] = runs.skipped;
  std::string text = to_text(comparison);
  const ScoreComparison scores = compare_scores(rows_of(chosen.runs));
  json["scores"] = to_json(scores);
  text += score_text(scores);
  if (!options.equal.empty()) {
    const EqualCost equal = compare_at_equal(chosen.runs, parse_spent(options.equal), options.domain, pretraining);
    json["equal"] = to_json(equal);
    text += "\n" + to_text(equal);
  }
  print_result(json, text);
  return 0;
}

const RegisterCommand command{
    {"compare", "Compare runs: parameters, speed, ID and OOD loss, at the end and at equal pre-training loss, and scores on tasks.",
     "saccade compare runs/* --at-loss 2.1", [](CLI::App& app) {
       auto options = std::make_shared<Options>();
       app.add_option("RUN", options->runs, "Run directories, or folders of runs")->required();
       app.add_option("--at-loss", options->at_loss,
                      "Pre-training loss to compare at (default: the lowest that the first run and the most others have passed)");
       app.add_option("--equal", options->equal,
                      "Read the losses also at equal tokens, FLOPs or seconds of training (of the steps alone, on "
                      "one device): at what the run has taken that took least")
           ->check(CLI::IsMember({"tokens", "flops", "seconds"}));
       app.add_option("--domain", options->domain, "One OOD domain (default: the mean of all)");
       add_pretraining_option(app, options->pretraining);
       app.add_option("--split", options->split,
                      "Of losses at the end: validation, as runs recorded them, or test, as their study evaluated them")
           ->check(CLI::IsMember({"validation", "test"}))
           ->capture_default_str();
       return [options] { return run(*options); };
     }}};

}  // namespace
}  // namespace saccade::cli
