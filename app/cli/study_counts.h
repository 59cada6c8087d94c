#pragma once
#include <string>

#include "analysis/studies/study_folder.h"

namespace saccade::cli {

/// "12 finished, 2 running, 6 to do, 8 once the best values are known"
std::string counts(const StudyView& view);
/// Of the runs that are wanted, those to come included, the share that has ended.
double share_ended(const StudyView& view);

}  // namespace saccade::cli
