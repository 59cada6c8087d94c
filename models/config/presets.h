#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade {

/// The file of a preset by its name, "mqar-tiny": of one that comes with the program (resource_folder()) or else of one that the user saved
/// (data_folder()). Throws UsageError that suggests a name.
std::filesystem::path preset_file(const std::string& name);

/// A preset's config as it was written. Throws UsageError likewise.
nlohmann::json preset_config(const std::string& name);

/// Every preset's name, in the alphabet's order: those that come with the program and those of the user.
std::vector<std::string> preset_names();

}  // namespace saccade
