#include "app/cli/study_counts.h"

#include <algorithm>

namespace saccade::cli {

std::string counts(const StudyView& view) {
  std::map<WantedRun::Status, int> number_of;
  for (const WantedRun& wanted : view.wanted) ++number_of[wanted.status];
  std::string text;
  using Status = WantedRun::Status;
  for (const Status status : {Status::finished, Status::diverged, Status::live, Status::unfinished, Status::open, Status::gave_up})
    if (number_of[status] > 0) text += (text.empty() ? "" : ", ") + std::to_string(number_of[status]) + " " + to_string(status);
  if (view.later > 0) text += ", " + std::to_string(view.later) + " once the best values are known";
  return text;
}

double share_ended(const StudyView& view) {
  const auto ended = std::count_if(view.wanted.begin(), view.wanted.end(), [](const WantedRun& w) {
    return w.status == WantedRun::Status::finished || w.status == WantedRun::Status::diverged;
  });
  return static_cast<double>(ended) / (static_cast<double>(view.wanted.size()) + static_cast<double>(view.later));
}

}  // namespace saccade::cli
