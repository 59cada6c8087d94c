#pragma once
#include "analysis/studies/study_folder.h"

namespace saccade {

/// Cells of a study whose losses are of the same text: one corpus or task, the same domains to train and test on, cut into sequences of as
/// many tokens (their own, where StudyEvaluation gives none) in one way. Losses of others differ by what is asked, so they are compared
/// with none. With one tokenizer they are of the same sequences; else only bits per byte compare.
struct SameData {
  std::string name;           ///< by the axes that tell it from the others: "a5"; empty where there is only one
  std::vector<size_t> cells;  ///< indices into StudyView::cells, in their order
  bool one_tokenizer = true;
};
/// All cells, by their data, in the order of the first of each.
std::vector<SameData> same_data(const StudyView& view);

}  // namespace saccade
