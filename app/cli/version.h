#pragma once
#include <string>

#include "models/json.h"

namespace saccade::cli {

/// Version of the program and of the libraries it runs with.
nlohmann::json version_json();
std::string version_text();

}  // namespace saccade::cli
