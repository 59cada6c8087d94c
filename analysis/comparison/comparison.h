#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// (pre-training loss, OOD loss) along one run, at the steps where both are known (arXiv:2505.18522, section 2.1, figure 1).
struct Trajectory {
  std::vector<double> pretraining, ood, step;
};
/// `domain` empty: mean over OOD domains. Pre-training loss is that of the in-domain validation batches.
Trajectory trajectory(const Run& run, const std::string& domain = "");

/// OOD loss at a given pre-training loss, interpolated linearly along the trajectory's lower envelope (running minimum of
/// the pre-training loss); nothing when the run never crossed it.
std::optional<double> ood_at(const Trajectory& trajectory, double pretraining_loss);

/// The lowest pre-training loss that runs have reached together: where they can be compared. Runs that diverged or have not been evaluated
/// yet do not count; nor do damaged ones and, beside finished runs, those that are not, as long as they are behind.
std::optional<double> common_loss(const std::vector<const Run*>& runs);

struct ComparisonRow {
  std::string title;
  std::filesystem::path directory;  ///< of the first seed
  std::vector<std::string> runs;    ///< names of the seeds gathered here
  int64_t parameters = 0;
  double tokens_per_second = 0;
  double pretraining_loss = 0, ood_loss = 0;            ///< at the end, mean of seeds that are whole; NaN when none is
  std::optional<double> ood_at_equal;                   ///< at `equal_loss`, mean of seeds
  std::optional<double> spread;                         ///< sample standard deviation over seeds, two or more
  std::optional<double> against_first;                  ///< ood_at_equal minus the first row's
  std::vector<std::pair<std::string, double>> domains;  ///< OOD loss per domain at the end
};
struct Comparison {
  std::optional<double> equal_loss;
  std::vector<ComparisonRow> rows;
  std::vector<std::string> left_out;  ///< runs that do not count at `equal_loss` or at the end, and why: too young, damaged, diverged
  std::vector<std::string> warnings;  ///< what makes the runs incomparable: other corpus, tokenizer, evaluation, training
                                      ///< settings or precision, parameters off by > 1 %
};
/// Runs of one experiment are one row. `among`: see group_runs().
Comparison compare(const std::vector<const Run*>& runs, std::optional<double> at_loss = {}, const std::string& domain = "",
                   const std::vector<const Run*>& among = {});

std::string to_text(const Comparison& comparison);
nlohmann::json to_json(const Comparison& comparison);

}  // namespace saccade
