#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace saccade {

/// What a reader can tell of a run's writer where no lock says anything: a copy that is renewed again and again from another machine, or a
/// run on a file system without locks.
class SignsOfLife {
 public:
  explicit SignsOfLife(std::filesystem::path run) : run_(std::move(run)) {}

  /// Whether a process holds the run, or one that this machine knows nothing of changed run.json, the journal or the lease less than
  /// 180 s ago. Looks at files, reads none but locks. Throws DataError as lock_holder().
  bool is_written();

 private:
  using Clock = std::chrono::steady_clock;
  std::filesystem::path run_;
  std::string seen_;  ///< sizes and times of those files
  std::optional<Clock::time_point> changed_;
};

/// Seconds since run.json or the journal came to stand as they do on this disk, whatever times a copy gave them; 0 where there is neither.
double seconds_since_arrival(const std::filesystem::path& run);

}  // namespace saccade
