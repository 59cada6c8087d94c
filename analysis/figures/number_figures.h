#pragma once
#include <string>
#include <vector>

#include "analysis/comparison/end_evaluations.h"
#include "analysis/figures/figure.h"

namespace saccade {

/// A number of a run by its name: a setting (architecture.window), parameters, tokens, tokens_times_parameters (what arXiv:2506.11305,
/// appendix J, takes for compute), flops, seconds, tokens_per_second, validation, ood, gap, entropy (mean of the layers, normalised),
/// perplexity (of the training loss of the last 1 % of steps, final_training_loss()), validation_perplexity, or a series (its last value).
/// NaN where the run has none. With `ends` the losses at the end are those of these evaluations, where is_end_loss(); else as recorded.
double run_number(const Run& run, const std::string& name, const EndEvaluations* ends = nullptr);
/// Whether it is a loss at the end that evaluations have: validation, ood, gap, validation_perplexity.
bool is_end_loss(const std::string& name);
/// What an axis calls it, with the unit: "OOD loss (nats)"; of evaluations on a `split` "OOD loss, test split (nats)".
std::string number_title(const std::string& name, const std::string& split = "");
/// Names of settings that are numbers and differ among the runs, in their configs' order: "architecture.window", "training.seed" …
std::vector<std::string> varied_settings(const RunSet& runs);

/// The law that is drawn through the runs of an architecture (power_law.h).
enum class Fit { none, power_law, power_law_with_floor };

/// One number of runs by another: a point for each group of seeds, mean and sample standard deviation, those of one architecture joined
/// along a setting, parameters, FLOPs, tokens or seconds; along any other number each with its own name, shade and marker. Where groups of
/// an architecture stand at the same number across, they are joined by the settings that tell these apart (kin_of()). Cooldown branches
/// whose runs are there are no points.
/// With a fit they are not joined: its line, dashed, is that of all runs of the architecture, and the legend has the exponent, with the
/// middle 95 % of those of resampled runs where there are four and more. `ends`: as in run_number(), and named on the axis.
Figure number_figure(const DrawnSet& drawn, const std::string& value, const std::string& against, Fit fit = Fit::none,
                     const EndEvaluations* ends = nullptr);

/// Loss by position in the sequence at the last evaluation, in bins of powers of two, at the middles of the bins counted from 1; mean and
/// standard deviation over seeds. `domain` empty: the mean of the OOD domains, of those trained on where there is none.
Figure position_figure(const DrawnSet& drawn, const std::string& domain);

}  // namespace saccade
