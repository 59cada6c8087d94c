#pragma once
#include "analysis/studies/report/equal_loss_table.h"
#include "analysis/studies/report/numbers.h"

namespace saccade {

/// Cells of the same data, whose losses compare; the name is empty where there is only one such group.
struct LikeCells {
  std::string name;
  std::vector<CellNumbers> cells;
  LossWords words_of;  ///< bits per byte where tokenizers differ: of training batches they are not known
};
std::vector<LikeCells> like_cells(const StudyView& view, const std::vector<CellNumbers>& cells);

}  // namespace saccade
