#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace saccade {

/// JSON as people write it. Throws UsageError: "origin:line:column: what" for syntax, "origin: /pointer is given twice",
/// and for text nested deeper than 64 levels.
nlohmann::json parse_json_text(const std::string& text, const std::string& origin);

/// Sets what "training.seed=2" says; the value is read as JSON, else as text. Throws UsageError.
void apply_override(nlohmann::json& object, const std::string& assignment);

}  // namespace saccade
