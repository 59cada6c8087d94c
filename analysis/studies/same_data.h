#pragma once
#include "analysis/studies/study_folder.h"

namespace saccade {

/// Cells of a study whose losses are of the same sequences: one corpus or task, one tokenizer, the same domains to train and test on, text
/// cut into sequences of one length (their own, where StudyEvaluation gives none) in one way. Losses of others differ by what is asked, so
/// they are compared with none.
struct SameData {
  std::string name;           ///< by the axes that tell it from the others: "a5"; empty where there is only one
  std::vector<size_t> cells;  ///< indices into StudyView::cells, in their order
};
/// All cells, by their data, in the order of the first of each.
std::vector<SameData> same_data(const StudyView& view);

}  // namespace saccade
