#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "analysis/runs/lease.h"

namespace saccade {

/// The mark of the process that writes a run: RUN/lock, which names its process and host, and the run directory itself, for a
/// file can be deleted. Both are held by flock and, so that others can ask without taking it, by an open-file-description
/// lock. They end with the process, however it ends. Beside them lies the lease RUN/lease, for file systems that know no locks, or whose
/// locks hold on one machine alone.
class RunLock {
 public:
  /// Throws RunInUse naming the holder when it is taken, DataError when a file cannot be made.
  explicit RunLock(const std::filesystem::path& directory, const LeaseWish& wish = {});

  /// Before anything is written: see Lease::require.
  void require() const { lease_->require(); }
  /// That the file system has no locks, in one line; empty where it has.
  const std::string& note() const { return note_; }

 private:
  Descriptor directory_, file_;
  std::string note_;
  std::unique_ptr<Lease> lease_;  ///< given back before the locks
};

struct LockHolder {
  int process = 0;
  std::string host;
  bool elsewhere = false;  ///< on another machine, in another container, or of a run that this is a copy of: its number says nothing here
  bool operator==(const LockHolder&) const = default;
};
/// "process 4711 on node3"; "another process" where RUN/lock was deleted.
std::string describe(const LockHolder& holder);
/// Who holds the run now, asked without locking; nothing when nobody does. Process 0 when RUN/lock was deleted. Of a run that is mirrored
/// from another host, who held it there when that was last heard of.
std::optional<LockHolder> lock_holder(const std::filesystem::path& directory);
/// Whether who wrote the run last did so on this machine, so that it is known to be gone when nobody holds the run.
bool held_here(const std::filesystem::path& directory);

std::string host_name();

}  // namespace saccade
