#pragma once
#include "analysis/comparison/end_evaluations.h"
#include "analysis/figures/page.h"

namespace saccade {

/// What a table of losses is of.
struct LossTableChoice {
  std::optional<double> at_loss{};       ///< else common_loss()
  std::string domain{};                  ///< OOD domain; empty: the mean of all
  std::string title{};                   ///< empty: what the numbers are
  TuningOfRun tuning{};                  ///< where it is given, notes say how the rows were tuned
  PretrainingLoss pretraining{};         ///< what the equal loss is of
  const EndEvaluations* ends = nullptr;  ///< losses at the end, and their split is named; null: what the runs evaluated themselves
};

/// compare() as papers print it: size, speed and both losses at the end and OOD loss at the equal loss, mean ± sample standard deviation
/// over seeds; where seeds pair, p of the paired t tests against the first row (Holm). What is mid-schedule is called so, warnings are
/// notes.
PageTable loss_table(const RunSet& runs, const LossTableChoice& choice = {});

}  // namespace saccade
