#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

namespace saccade {

/// read_text() of a file that is small when this program wrote it: what JSON of many megabytes becomes in memory is many times as large.
/// Throws DataError also where it has more than `most` bytes.
std::string read_small_text(const std::filesystem::path& path, size_t most);

inline constexpr size_t kLargestRunJson = size_t{16} << 20;  ///< bytes; with a config and provenance of some kilobytes
inline constexpr size_t kLargestNote = size_t{1} << 20;

}  // namespace saccade
