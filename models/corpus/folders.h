#pragma once
#include <filesystem>

namespace saccade {

/// Folder of what a user has set up, profiles of clusters among it: $SACCADE_CONFIG, else $XDG_CONFIG_HOME/saccade, else ~/.config/saccade.
/// Throws UsageError where there is no place for it.
std::filesystem::path config_folder();

}  // namespace saccade
