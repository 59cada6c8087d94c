#pragma once
#include <filesystem>

namespace saccade::cli {

/// The file of this program, which workers and runs are started with. Throws Error.
std::filesystem::path this_program();

}  // namespace saccade::cli
