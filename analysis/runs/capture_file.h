#pragma once
#include <filesystem>
#include <vector>

#include "analysis/runs/run_records.h"

namespace saccade {

/// Writes the samples captured at one step as an HDF5 file, read back and compared before it takes its name. Throws DataError.
void write_captures(const std::filesystem::path& path, const std::vector<Capture>& captures);
/// Throws DataError.
std::vector<Capture> read_captures(const std::filesystem::path& path);

}  // namespace saccade
