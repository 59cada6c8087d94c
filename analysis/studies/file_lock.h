#pragma once
#include <filesystem>

#include "analysis/runs/files.h"

namespace saccade {

/// Waits for the lock on a file, which is made where it is missing, and holds it until the end of the scope or of the process, however
/// that ends. Throws DataError.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);

 private:
  Descriptor file_;
};

}  // namespace saccade
