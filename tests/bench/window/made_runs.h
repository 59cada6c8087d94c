#pragma once
#include <cstdint>
#include <filesystem>

namespace saccade::test {

/// Folders of made-up runs, as many and as long as asked: architectures, variants and seeds, journals with CRC, run.json.
struct MadeRuns {
  int64_t runs = 20;
  int64_t points = 1000;  ///< steps of each run
  int64_t journals = 20;  ///< different ones; further runs of a folder share them by hard links
};

/// Writes `folder`, unless it holds just these runs already. Throws DataError.
void make_runs(const std::filesystem::path& folder, const MadeRuns& options);

/// A run of `points` steps that goes on: writes `per_second` steps a second, for as long as the caller lets it. Throws DataError.
void write_live_run(const std::filesystem::path& directory, int64_t points, double per_second);

}  // namespace saccade::test
