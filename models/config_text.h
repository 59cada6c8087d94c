#pragma once
#include <string>
#include <string_view>

#include "models/json.h"

namespace saccade {

/// JSON as people write it. Throws UsageError: "origin:line:column: what" for syntax, "origin: /pointer is given twice",
/// and for text nested deeper than 64 levels.
nlohmann::json parse_json_text(const std::string& text, const std::string& origin);
/// JSON as programs write it: discarded (is_discarded()) where it is none, or is nested deeper than 64 levels. `twice` gets a key that
/// one of its objects has twice, of which the last value counts here, or nothing.
nlohmann::json parse_json_or_discard(std::string_view text, std::string* twice = nullptr);

/// Sets what "training.seed=2" says; the value is read as JSON, else as text. Throws UsageError.
void apply_override(nlohmann::json& object, const std::string& assignment);

}  // namespace saccade
