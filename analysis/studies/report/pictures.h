#pragma once
#include "analysis/studies/report/like_cells.h"

namespace saccade {

/// The figures that a study asks for (Study::figures) and that have points.
std::vector<Figure> figures_of(const StudyView& view, const std::vector<CellNumbers>& cells, const std::vector<LikeCells>& groups);

}  // namespace saccade
