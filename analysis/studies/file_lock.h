#pragma once
#include <filesystem>
#include <memory>

#include "analysis/runs/lease.h"

namespace saccade {

/// Waits for the lock on a file, which is made where it is missing, and holds it until the end of the scope or of the process, however
/// that ends. Where the file system knows no locks, FILE.lease is one. Throws DataError, RunInUse when a lease is not given back.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);

 private:
  Descriptor file_;
  std::unique_ptr<Lease> lease_;
};

}  // namespace saccade
