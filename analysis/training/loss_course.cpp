#include "analysis/training/loss_course.h"

#include <algorithm>
#include <numeric>

#include "analysis/runs/journal.h"
#include "analysis/runs/run_info.h"

namespace saccade {

void LossCourse::add(double loss) {
  last_.push_back(loss);
  if (last_.size() > kSmoothed) last_.pop_front();
  smoothed_ = std::accumulate(last_.begin(), last_.end(), 0.0) / static_cast<double>(last_.size());
  if (smoothed_ < best_) best_ = smoothed_;
}

bool LossCourse::on_course() const { return smoothed_ <= best_ + std::max(0.1, 0.2 * best_); }

RunHistory recorded_history(const std::filesystem::path& directory) {
  RunHistory history;
  JournalReader(directory / "journal.jsonl").poll([&](const Record& record) { history.apply(record); });
  return history;
}

CourseSoFar course_so_far(const std::filesystem::path& directory, const RunHistory& history) {
  CourseSoFar so_far;
  const Series* losses = history.find("train/loss");
  const std::vector<int64_t> files = step_files(directory, kCheckpoints);
  for (const int64_t step : files)  // where a fork began
    if (step > 0 && (!losses || losses->step.empty() || static_cast<double>(step) < static_cast<double>(losses->step.front())))
      so_far.on_course = step;
  if (!losses) return so_far;
  for (size_t i = 0; i < losses->value.size(); ++i) {
    so_far.course.add(losses->value[i]);
    const auto step = static_cast<int64_t>(losses->step[i]);
    if (so_far.course.on_course() && std::binary_search(files.begin(), files.end(), step)) so_far.on_course = step;
  }
  return so_far;
}

}  // namespace saccade
