#include "analysis/studies/report/like_cells.h"

#include "analysis/studies/same_data.h"

namespace saccade {

std::vector<LikeCells> like_cells(const StudyView& view, const std::vector<CellNumbers>& cells) {
  std::vector<LikeCells> groups;
  for (const SameData& group : same_data(view)) {
    groups.push_back({group.name, {}, {.pretraining = view.study.pretraining}});
    for (const size_t cell : group.cells) groups.back().cells.push_back(cells[cell]);
    if (group.one_tokenizer) continue;
    groups.back().cells = in_bits_per_byte(groups.back().cells);
    groups.back().words_of = {.unit = "bits per byte", .pretraining = {}};
  }
  return groups;
}

}  // namespace saccade
