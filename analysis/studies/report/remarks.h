#pragma once
#include "analysis/studies/report/like_cells.h"

namespace saccade {

/// What keeps a report's numbers from being the answer: runs that are missing, untuned rows, rows of other data or tokenizers, a sentence
/// each.
std::vector<std::string> remarks_of(const StudyView& view, const std::vector<CellNumbers>& cells, const std::vector<LikeCells>& groups);

}  // namespace saccade
