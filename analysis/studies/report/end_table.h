#pragma once
#include "analysis/studies/report/entries.h"

namespace saccade {

/// Losses of every cell at the end of its runs, in-domain and OOD, with both kinds of error: over seeds, and over the sequences evaluated.
ReportTable end_table(const StudyView& view, const ReportNumbers& numbers);

}  // namespace saccade
