#pragma once
#include <filesystem>

namespace saccade::cli {

/// The file of this program, which workers and runs are started with, also where it has been replaced since. Throws Error.
std::filesystem::path this_program();

}  // namespace saccade::cli
