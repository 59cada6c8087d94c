#pragma once
#include <optional>

#include "analysis/runs/checkpoint_file.h"

namespace saccade {

/// The checkpoints of one run: writes them, and deletes old ones once two newer are known to be good.
class CheckpointKeeper {
 public:
  /// `resumed`: the step of a checkpoint that was read and found good, if training goes on from one. Those of steps in `kept` are never
  /// deleted.
  explicit CheckpointKeeper(std::filesystem::path directory, std::optional<int64_t> resumed = {}, std::vector<int64_t> kept = {});
  /// From now on that of this step is one of `kept`.
  void keep_always(int64_t step) { kept_.push_back(step); }
  /// From now on that checkpoint is no old one: it stays until another is named.
  void keep(int64_t step) { on_course_ = step; }
  /// Empty, or why old ones could not be deleted, which is no reason to end a run. Throws DataError when it cannot be written.
  std::string write(const Checkpoint& checkpoint);
  /// Deletes what a process left that ended between writing its last checkpoint and deleting an old one; reads those that it relies on.
  /// Empty, or why that could not be done.
  std::string tidy();
  /// Step of the newest good one, −1 for none.
  int64_t newest() const { return good_.empty() ? -1 : good_.back(); }
  /// Whether it is one of `kept`.
  bool keeps(int64_t step) const;

 private:
  std::string remove_old() const;

  std::filesystem::path directory_;
  std::vector<int64_t> kept_;
  int64_t on_course_ = -1;
  std::vector<int64_t> good_;  ///< verified by this process, ascending
};

/// The newest checkpoint of a run that can be read whole, where there is one of step `latest` or before that can; what is damaged is
/// reported and passed over. Nothing when the run has no checkpoint file; throws DataError when it has some and all are damaged.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& directory, const std::function<void(const std::string&)>& report,
                                            std::optional<int64_t> latest = {});

}  // namespace saccade
