#pragma once
#include "models/json.h"

namespace saccade {

/// Versions of this program (with the commit it was built from, where known) and of the libraries that it runs with.
nlohmann::json library_versions();

}  // namespace saccade
