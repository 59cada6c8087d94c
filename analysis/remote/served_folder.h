#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/runs/files.h"

namespace saccade {

/// A folder that an agent serves, and nothing outside it: names are relative, of plain parts ("first/captures/step-5.h5"), and below the
/// folder no link is followed.
class ServedFolder {
 public:
  /// Throws DataError where there is no such folder.
  explicit ServedFolder(const std::filesystem::path& folder);
  const std::filesystem::path& path() const { return path_; }

  /// A regular file, open for reading. Throws DataError, UsageError.
  Descriptor open(const std::string& name) const;
  /// A folder, for `/proc/self/fd`. Throws DataError, UsageError.
  Descriptor open_folder(const std::string& name) const;
  /// The path of a folder there. Throws DataError, UsageError.
  std::filesystem::path folder(const std::string& name) const;
  /// The path of something to be made directly in the folder: "first". Throws UsageError where that is no name for a run or a study.
  std::filesystem::path new_entry(const std::string& name) const;

 private:
  Descriptor walk(const std::string& name, int flags) const;

  std::filesystem::path path_;
  Descriptor folder_;
};

/// The parts of a relative name. Throws UsageError where one is empty, "." or "..", or longer than a file name may be.
std::vector<std::string> name_parts(const std::string& name);

}  // namespace saccade
