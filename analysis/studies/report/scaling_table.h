#pragma once
#include <optional>

#include "analysis/studies/report/entries.h"

namespace saccade {

/// Scaling laws (analysis/comparison/scaling_law.h) of a study's runs: one of the in-domain and one of the OOD loss for the cells that
/// agree in every axis but those along which parameters or tokens change. Points are the ends of runs and of their cooldown branches, of
/// every seed. Why a law cannot be told stands in the notes. Nothing where there are not three numbers of parameters and of tokens.
std::optional<ReportTable> scaling_table(const StudyView& view, const std::vector<CellNumbers>& cells);

}  // namespace saccade
