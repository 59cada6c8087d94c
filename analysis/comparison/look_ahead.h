#pragma once
#include <string>

#include "models/json.h"

namespace saccade {

/// Why a position of a resolved config's model can see its future, so that its loss is no causal model's; empty for causal models, and for
/// architectures of other versions.
std::string looks_ahead(const nlohmann::json& config);

}  // namespace saccade
