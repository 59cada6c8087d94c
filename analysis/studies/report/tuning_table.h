#pragma once
#include "analysis/studies/report/entries.h"

namespace saccade {

/// The runs that a value of the tuned setting was judged by, of the cell at `cell`.
std::vector<std::string> tuning_sources(const StudyView& view, size_t cell, double value);

/// The search for the best value of the tuned setting: the loss of every cell at every value tried.
ReportTable tuning_table(const StudyView& view);

}  // namespace saccade
