#pragma once
#include <filesystem>

namespace saccade::cli {

/// `saccade study status`: how far a study is, what it has tuned, and what keeps it from going on. `most_rows`: of the runs; 0: all. Throws
/// Error.
int show_study_status(const std::filesystem::path& study, int64_t most_rows);

}  // namespace saccade::cli
