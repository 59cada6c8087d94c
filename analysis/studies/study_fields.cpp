#include "analysis/studies/study_fields.h"

#include <algorithm>

#include "kernels/engine/error.h"
#include "models/settings.h"
#include "models/suggest.h"

namespace saccade::study_file {

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

[[noreturn]] void refuse(const std::string& pointer, const Json& value, const std::string& expected) {
  throw UsageError(pointer + " is " + shown(value) + "; expected " + expected);
}

const Json& required(const Json& object, const char* key, const std::string& pointer, const std::string& expected) {
  if (!object.contains(key)) throw UsageError(pointer + "/" + key + " is missing; expected " + expected);
  return object.at(key);
}

std::string text_of(const Json& value, const std::string& pointer) {
  if (!value.is_string() || value.get<std::string>().empty()) refuse(pointer, value, "text");
  return value;
}

std::string choice_of(const Json& value, const std::string& pointer, const std::vector<std::string>& names) {
  Setting setting;
  setting.kind = Setting::Kind::choice, setting.choices = names;
  check_setting(setting, value, pointer);
  return value;
}

std::vector<std::string> choices_of(const Json& value, const std::string& pointer, const std::vector<std::string>& names) {
  if (!value.is_array()) refuse(pointer, value, "a list of " + alternatives(names));
  std::vector<std::string> chosen;
  for (size_t i = 0; i < value.size(); ++i) chosen.push_back(choice_of(value[i], pointer + "/" + std::to_string(i), names));
  return chosen;
}

std::string setting_name(const Json& value, const std::string& pointer) {
  const std::string name = text_of(value, pointer);
  const size_t dot = name.find('.');
  const bool dotted = dot != std::string::npos && dot > 0 && dot + 1 < name.size() && name.find('=') == std::string::npos;
  static const std::vector<std::string> kSections{"architecture", "data", "training"};
  static const std::vector<std::string> kPlain{"device", "precision", "threads"};
  if (!dotted && std::find(kPlain.begin(), kPlain.end(), name) == kPlain.end())
    refuse(pointer, value, "the dotted name of a setting, like architecture.window" + did_you_mean(name, kPlain));
  if (dotted && std::find(kSections.begin(), kSections.end(), name.substr(0, dot)) == kSections.end())
    throw UsageError(pointer + " is " + shown(value) + ", but a config has no section " + shown(name.substr(0, dot)) +
                     did_you_mean(name.substr(0, dot), kSections));
  return name;
}

std::vector<std::string> assignments(const Json& object, const std::string& pointer) {
  if (!object.is_object()) refuse(pointer, object, "settings by their dotted names, like {\"training.steps\": 100}");
  std::vector<std::string> list;
  for (const auto& [key, value] : object.items()) {
    if (key == "training.seed") throw UsageError(pointer + " sets training.seed; expected the seeds in /seeds");
    list.push_back(setting_name(key, pointer) + "=" + value.dump());
  }
  return list;
}

}  // namespace saccade::study_file
