#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"

namespace saccade {

/// Another process writes the run. An exit code of its own, so that a batch job that was submitted twice leaves without harm, and says so.
inline constexpr int kRunInUse = 5;
class RunInUse : public DataError {
 public:
  using DataError::DataError;
  int exit_code() const override { return kRunInUse; }
};

/// The mark of the process that writes a run: RUN/lock, which names its process and host, and the run directory itself, for a
/// file can be deleted. Both are held by flock and, so that others can ask without taking it, by an open-file-description
/// lock. They end with the process, however it ends.
class RunLock {
 public:
  /// Throws RunInUse naming the holder when it is taken, DataError when the file cannot be made.
  explicit RunLock(const std::filesystem::path& directory);

 private:
  Descriptor directory_, file_;
};

struct LockHolder {
  int process = 0;
  std::string host;
  bool operator==(const LockHolder&) const = default;
};
/// Who holds the run now, asked without locking; nothing when nobody does. Process 0 when RUN/lock was deleted. Of a run that is mirrored
/// from another host, who held it there when that was last heard of.
std::optional<LockHolder> lock_holder(const std::filesystem::path& directory);

std::string host_name();

}  // namespace saccade
