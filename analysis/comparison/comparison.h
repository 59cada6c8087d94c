#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/compared_loss.h"
#include "analysis/comparison/sequence_losses.h"
#include "analysis/comparison/tuning.h"
#include "analysis/runs/run.h"

namespace saccade {

/// What counts as the pre-training loss of a run at a step where it is evaluated.
struct PretrainingLoss {
  enum class Kind {
    validation,  ///< mean over the training domains of their validation losses, each domain once
    weighted,    ///< the same, each by the tokens of its train split, in which proportion domains are trained on
    train        ///< mean of the training loss of the steps of the last `window` tokens, what arXiv:2505.18522 plots
  };
  Kind kind = Kind::validation;
  double window = 1e7;  ///< tokens, for Kind::train; at least the last step counts
};
/// validation, weighted or train. Throws UsageError on another.
PretrainingLoss::Kind parse_pretraining_loss(const std::string& name);
/// One sentence on what it is.
std::string describe(const PretrainingLoss& loss);
/// At the steps of "validation/loss"; empty where the run has none, or does not record what is asked for (the tokens of its domains: runs
/// of earlier versions).
Series pretraining_series(const Run& run, const PretrainingLoss& loss);
/// Throws DataError when one of the runs has been evaluated but does not record it.
void require_recorded(const std::vector<const Run*>& runs, const PretrainingLoss& loss);

/// (pre-training loss, OOD loss) along one run, at the steps where both are known (arXiv:2505.18522, section 2.1, figure 1).
struct Trajectory {
  std::vector<double> pretraining, ood, step;
};
/// `domain` empty: mean over OOD domains.
Trajectory trajectory(const Run& run, const std::string& domain = "", const PretrainingLoss& loss = {});

/// OOD loss at a given pre-training loss, interpolated linearly along the trajectory's lower envelope (running minimum of
/// the pre-training loss); nothing when the run never crossed it.
std::optional<double> ood_at(const Trajectory& trajectory, double pretraining_loss);

/// Where runs are compared unless someone asks for another loss: widest_common_loss() of their groups (gather_runs), as studies' reports
/// have it. Runs that diverged, are damaged or have not been evaluated yet do not count; nor, beside finished runs, do those that are not.
/// Runs with finished cooldown branches count by their ends (TrunksAndBranches).
std::optional<double> common_loss(const std::vector<const Run*>& runs, const PretrainingLoss& loss = {});
/// The same of trajectories; those without points do not count.
std::optional<double> lowest_common_loss(const std::vector<Trajectory>& trajectories);
/// The lowest loss that the first group and the most others have passed, a group with all of its trajectories. Nothing where the first has
/// none, or, of several, passed none with another. Groups without points do not count.
std::optional<double> widest_common_loss(const std::vector<std::vector<Trajectory>>& groups);

struct ComparisonRow {
  std::string title;
  std::filesystem::path directory;  ///< of the first seed
  std::vector<std::string> runs;    ///< names of the runs gathered here
  std::vector<int64_t> seeds;       ///< theirs, each once: a seed that was run twice is one repetition
  bool independent = true;          ///< no two seeds are forks of one run, or it and its fork; else there is no spread and no test
  int64_t parameters = 0;
  std::optional<int64_t>
      embedding_parameters;  ///< of `parameters`, those of tables of tokens and positions; runs of earlier versions lack it
  double tokens = 0, flops = 0, seconds = 0;  ///< at the last step, mean of seeds; seconds of steps alone; NaN before the first
  double state_bytes = 0;                     ///< what decoding keeps per token of context; NaN where not recorded
  std::vector<std::string> devices;           ///< device_of() the seeds (equal_cost.h)
  /// The most memory that a seed took, in bytes; NaN where none recorded it. On the CPU what the whole process had resident where that is
  /// known, else, as on other devices, what tensors took.
  double memory_bytes = 0;
  bool memory_of_process = false;
  double tokens_per_second = 0;
  ComparedLoss id_at_end, ood_at_end;                   ///< of seeds that are whole; tests only where Comparison::equal_ends
  ComparedLoss ood_at_equal;                            ///< OOD loss at `equal_loss`
  bool branch_ends = false;                             ///< `ood_at_equal` lies between ends of cooldown branches, of every seed
  std::optional<SequenceLosses> losses;                 ///< evaluated at the end (losses_at_end), mean of seeds; empty where one was not
  std::optional<LossAndError> ood_paired;               ///< OOD loss of `losses` minus the first row's, on the same sequences
  std::optional<double> ood_paired_p;                   ///< p_of() it, corrected for the other rows (Holm): of the text, not of seeds
  std::vector<std::pair<std::string, double>> domains;  ///< OOD loss per domain at the end
  Tuning tuning{};                                      ///< of the learning rate, or of what a study searched
};
struct Comparison {
  PretrainingLoss pretraining;
  std::optional<double> equal_loss;
  std::string equal_reason;  ///< why it is that one, or why there is none: a sentence
  std::vector<ComparisonRow> rows;
  std::vector<std::string> left_out;  ///< runs that do not count at `equal_loss` or at the end, and why: too young, damaged, diverged
  bool ends_kept = false;  ///< ends are those of the evaluations that all runs made of one text when they had ended, else the journal's
  std::string split = "validation";   ///< that the ends are of; of another one they are those that studies evaluated alone
  int64_t split_tokens = 0;           ///< of every domain, in the evaluations of that other split
  bool equal_ends = true;             ///< all are finished and were trained on as many tokens (1 %): ends may be ranked
  std::vector<std::string> warnings;  ///< what makes the runs incomparable: other corpus, tokenizer, evaluation, training
                                      ///< settings or precision, parameters off by > 1 %, an architecture that looks ahead
  std::string equality;               ///< what the rows have in common, and what not, with the values; empty for one row
  std::vector<std::string> tuning;    ///< what the search for the best rate says: which rows are tuned, untuned, or at an edge
};
/// What is known of a run's tuning from outside, by the study that made it; Tuning::State::unknown without one.
using TuningOfRun = std::function<Tuning(const Run&)>;
/// Of the value that the seeds of a row have: what the study says that made one of them; without a study only their own rate is known.
Tuning tuning_of_row(const std::vector<const Run*>& seeds, const TuningOfRun& tuning);
/// Runs of one experiment are one row; cooldown branches belong to their runs (TrunksAndBranches). `among`: see group_runs().
Comparison compare(const std::vector<const Run*>& runs, std::optional<double> at_loss = {}, const std::string& domain = "",
                   const std::vector<const Run*>& among = {}, const PretrainingLoss& pretraining = {}, const TuningOfRun& tuning = {});

/// Where `ood_at_equal` was read: "branch ends", else "mid-schedule"; empty where there is none.
std::string read_from(const ComparisonRow& row);

/// The row whose OOD loss is the least, at the equal loss or at the end, where tests say so: below every other by 0.0005 nats, with p <
/// 0.05 in the paired tests of the seeds that it has in common with each, corrected for one another (Holm). Never by single seeds, and
/// nothing at the end where not all were trained on as much.
enum class ComparedAt { equal_loss, end };
std::optional<size_t> best_row(const Comparison& comparison, ComparedAt at);

std::string to_text(const Comparison& comparison);
nlohmann::json to_json(const Comparison& comparison);

}  // namespace saccade
