#pragma once
#include <filesystem>
#include <vector>

#include "analysis/runs/run_records.h"

namespace saccade {

/// Writes the samples captured at one step as an HDF5 file, read back and compared before it takes its name. Throws DataError.
void write_captures(const std::filesystem::path& path, const std::vector<Capture>& captures);
/// The same, but maps [H, rows, columns] of more than `most_values` numbers stay in the file: they have a shape and no values, and their
/// rows are read when asked for (Capture::stored), as many bytes as are asked for and one of the file's chunks of at most 1 MiB.
std::vector<Capture> open_captures(const std::filesystem::path& path, int64_t most_values = int64_t{1} << 24);
/// Throws DataError.
std::vector<Capture> read_captures(const std::filesystem::path& path);

}  // namespace saccade
