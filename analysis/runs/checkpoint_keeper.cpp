#include "analysis/runs/checkpoint_keeper.h"

#include <algorithm>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"

namespace saccade {

namespace {
constexpr size_t kKept = 2;
}

CheckpointKeeper::CheckpointKeeper(std::filesystem::path directory, std::optional<int64_t> resumed, std::vector<int64_t> kept)
    : directory_(std::move(directory)), kept_(std::move(kept)) {
  if (resumed) good_.push_back(*resumed);
}

bool CheckpointKeeper::keeps(int64_t step) const { return std::find(kept_.begin(), kept_.end(), step) != kept_.end(); }

std::string CheckpointKeeper::write(const Checkpoint& checkpoint) {
  const int64_t step = checkpoint.state.record.step;
  write_checkpoint(step_file(directory_, kCheckpoints, step), checkpoint);
  if (newest() != step) good_.push_back(step);
  return remove_old();
}

std::string CheckpointKeeper::tidy() {
  const std::vector<int64_t> steps = step_files(directory_, kCheckpoints);
  for (auto older = steps.rbegin(); older != steps.rend() && good_.size() < kKept; ++older) try {
      if (!good_.empty() && *older >= good_.front()) continue;
      read_checkpoint(step_file(directory_, kCheckpoints, *older));
      good_.insert(good_.begin(), *older);
    } catch (const DataError&) {
      continue;  // not good: looks further back
    }
  return remove_old();
}

std::string CheckpointKeeper::remove_old() const {
  if (good_.size() < kKept) return {};
  const int64_t oldest_kept = good_[good_.size() - kKept];
  for (const int64_t old : step_files(directory_, kCheckpoints))
    if (old < oldest_kept && old != on_course_ && !keeps(old))
      if (std::string problem = remove_run_file(step_file(directory_, kCheckpoints, old)); !problem.empty()) return problem;
  return {};
}

std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& directory, const std::function<void(const std::string&)>& report,
                                            std::optional<int64_t> latest) {
  std::vector<int64_t> steps = step_files(directory, kCheckpoints);
  if (latest) std::stable_partition(steps.begin(), steps.end(), [&](int64_t step) { return step > *latest; });
  std::string last_problem;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) try {
      return read_checkpoint(step_file(directory, kCheckpoints, *step));
    } catch (const DataError& error) {
      last_problem = error.what();
      report("checkpoint of step " + std::to_string(*step) + " is unusable, looking for an earlier one: " + last_problem);
    }
  if (!steps.empty()) throw DataError(directory.string() + " has no usable checkpoint: " + last_problem);
  return {};
}

}  // namespace saccade
