#pragma once
#include "analysis/studies/report/cost_table.h"
#include "analysis/studies/report/equal_loss_table.h"

namespace saccade {

/// Paired tests of every cell against the first: at the ends, at equal pre-training loss and, where the study holds seconds equal, at
/// those. `whole_split`: there are no more sequences to evaluate.
ReportTable difference_table(const StudyView& view, const std::vector<CellNumbers>& cells, bool whole_split, const Comparable& can,
                             const LossWords& words_of);

}  // namespace saccade
