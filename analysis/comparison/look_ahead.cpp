#include "analysis/comparison/look_ahead.h"

#include "models/architectures/registry.h"

namespace saccade {

std::string looks_ahead(const nlohmann::json& config) {
  try {
    const nlohmann::json& values = config.at("architecture");
    const Architecture& block = architecture(values.at("block"));
    return block.looks_ahead ? block.looks_ahead(values) : "";
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace saccade
