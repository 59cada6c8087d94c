#pragma once
#include "analysis/studies/report.h"
#include "analysis/studies/study_scores.h"

namespace saccade {

/// The table of a study's scores: of every task a line for each cell, in percent, then of their unweighted mean over the tasks, where there
/// are several. Each line is tested against the one with the highest mean, which is marked as best only where Holm's correction of all the
/// tests of its task leaves each p below 0.05. Tests are paired: over the seeds that both have; over the items that both answered where
/// that is one seed, or where all pairs of seeds differ by the same, which says nothing of how they vary (McNemar's exact test; a paired t
/// test where items are right in part). Nothing where no run has a score.
std::optional<ReportTable> scores_table(const StudyView& view, const StudyScores& scores);

}  // namespace saccade
