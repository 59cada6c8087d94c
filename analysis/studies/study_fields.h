#pragma once
#include <string>
#include <vector>

#include "models/json.h"

/// Fields of a study file, each with the JSON pointer to it that messages name. All throw UsageError.
namespace saccade::study_file {

using Json = nlohmann::json;

/// As messages show it: JSON, of which they show 60 characters.
std::string shown(const Json& value);
[[noreturn]] void refuse(const std::string& pointer, const Json& value, const std::string& expected);
const Json& required(const Json& object, const char* key, const std::string& pointer, const std::string& expected);
/// Not empty.
std::string text_of(const Json& value, const std::string& pointer);
/// One of `names`.
std::string choice_of(const Json& value, const std::string& pointer, const std::vector<std::string>& names);
std::vector<std::string> choices_of(const Json& value, const std::string& pointer, const std::vector<std::string>& names);
/// "architecture.window".
std::string setting_name(const Json& value, const std::string& pointer);
/// {"training.steps": 100} as assignments, "training.steps=100".
std::vector<std::string> assignments(const Json& object, const std::string& pointer);

}  // namespace saccade::study_file
