#pragma once
#include <filesystem>
#include <vector>

#include "analysis/runs/journal.h"
#include "analysis/studies/device_sharing.h"

namespace saccade {

/// A run at work, and what its pace is compared with: runs of the same model, length and batch.
struct RunAtWork {
  std::filesystem::path directory;
  std::string model;
  bool operator==(const RunAtWork&) const = default;
};

/// What runs of equal cost per step have in common, of a resolved config.
std::string model_of(const nlohmann::json& config);

/// Follows the journals of the runs that are at work on a device, and tells the tokens a second of each, by the seconds of their steps,
/// over a stretch in which the same runs were at work and all of them had begun to train.
class PaceWatch {
 public:
  static constexpr int64_t kSteps = 20;  ///< that a stretch has at least,
  static constexpr double kSeconds = 2;  ///< and seconds

  /// The runs now: where they are others than before, a stretch begins anew.
  void follow(const std::vector<RunAtWork>& runs);
  /// Reads what was recorded since; measurements go to `sharing`, once for each run and stretch. Their number.
  int64_t poll(DeviceSharing& sharing);

 private:
  struct Followed {
    RunAtWork run;
    JournalReader journal;
    int64_t steps = 0;  ///< recorded since the stretch began
    StepRecord last = {};
    std::optional<StepRecord> from = {};
    bool told = false;
  };
  static void read(Followed& run);
  std::vector<Followed> runs_;
};

}  // namespace saccade
