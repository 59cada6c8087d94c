// saccade compare RUN…: parameters, speed, losses at the end and at equal pre-training loss, scores, each with its error and test.
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/comparison.h"
#include "analysis/comparison/equal_cost.h"
#include "analysis/comparison/groups.h"
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
};

std::string shown(const char* pattern, const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "–";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), pattern, *value);
  return text.data();
}

std::string score_text(const ScoreComparison& comparison) {
  if (comparison.tasks.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  const auto per_cent = [](const std::optional<double>& share) { return share ? std::optional(100 * *share) : std::nullopt; };
  for (const ScoreComparison::OfTask& task : comparison.tasks)
    for (size_t i = 0; i < task.rows.size(); ++i) {
      const ScoreComparison::Row& row = task.rows[i];
      const PairedTest& test = row.test.test;
      const bool tested = i > 0 && row.score && task.rows[0].score;
      rows.push_back(
          {task.task, row.title, shown("%.1f", per_cent(row.score)) + (row.is_partial ? " (part)" : "") + (task.best == i ? " *" : ""),
           row.score ? shown("%.1f", 100 * row.error) : "–", tested ? shown("%+.1f", 100 * test.difference.mean) : "–",
           shown("%.1f", per_cent(test.difference.half_95)), shown("%.3g", test.p_holm), row.test.over.empty() ? "–" : row.test.over});
    }
  return "\n" + table({"task", "architecture", "score (%)", "± error", "against first", "± 95 %", "p", "tested over"}, rows) +
         "± error: standard error over seeds where there are several, else over items; p: paired t test of the seeds that the first has "
         "too, "
         "else McNemar's exact test of the items that both answered (a paired t test where items can be right in part), corrected for the "
         "task's other rows (Holm); *: above every other with p < 0.05. A test over items says nothing of other seeds.\n";
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
  const Comparison comparison = compare(runs.pointers(), options.at_loss, options.domain, {}, pretraining, tuning_by_study());
  nlohmann::json json = to_json(comparison);
  json["skipped"] = runs.skipped;
  std::string text = to_text(comparison);
  const ScoreComparison scores = compare_scores(rows_of(runs.pointers()));
  json["scores"] = to_json(scores);
  text += score_text(scores);
  if (!options.equal.empty()) {
    const EqualCost equal = compare_at_equal(runs.pointers(), parse_spent(options.equal), options.domain, pretraining);
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
       return [options] { return run(*options); };
     }}};

}  // namespace
}  // namespace saccade::cli
