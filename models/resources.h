#pragma once
#include <filesystem>

namespace saccade {

/// The folder of what comes with the program (presets): $SACCADE_RESOURCES; beside the program, installed or unpacked
/// (../share/saccade); in the source tree it was built in; where it was configured to be installed.
/// Throws DataError when none of them exists.
std::filesystem::path resource_folder();

}  // namespace saccade
