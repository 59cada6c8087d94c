#pragma once
#include "analysis/studies/report/report.h"
#include "analysis/studies/study_scores.h"

namespace saccade {

/// The table of a study's scores: of every task a line for each cell, in percent, then of their unweighted mean over the tasks, where there
/// are several. Each line is tested against the one with the highest mean, which is marked as best only where Holm's correction of all the
/// tests of its task leaves each p below 0.05 (rank_scores). Nothing where no run has a score.
std::optional<ReportTable> scores_table(const StudyView& view, const StudyScores& scores);

}  // namespace saccade
