#include "analysis/studies/blame.h"

#include <algorithm>
#include <cctype>

#include "analysis/comparison/tuning.h"

namespace saccade {

namespace {

enum class Fault { none, name, value };

/// What the message holds against a setting: that there is none of its name, or its value.
Fault fault_of(const std::string& setting, const std::string& message) {
  const std::string pointer = setting_pointer(setting).to_string();
  const size_t slash = pointer.rfind('/');
  const std::string section = slash == 0 ? "the config" : pointer.substr(0, slash);
  if (message.find(section + " has no setting \"" + pointer.substr(slash + 1) + "\"") != std::string::npos) return Fault::name;
  const auto goes_on = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = message.find(pointer); at != std::string::npos; at = message.find(pointer, at + 1))
    if (const size_t end = at + pointer.size(); end == message.size() || !goes_on(message[end])) return Fault::value;
  return Fault::none;
}

std::string place_on_axis(const Study& study, size_t axis, size_t value, const std::string& setting, Fault fault) {
  const std::string pointer = "/axes/" + std::to_string(axis);
  if (study.axes[axis].setting.empty()) return pointer + "/cases/" + std::to_string(value) + "/set/" + setting;
  if (fault == Fault::name) return pointer + "/setting";
  const bool listed = study.file.at(nlohmann::json::json_pointer(pointer)).contains("values");
  return listed ? pointer + "/values/" + std::to_string(value) : pointer + "/log_range";
}

/// Where the study's file has an assignment; empty where it has not.
std::string place_of(const Study& study, const std::string& assignment, Fault fault) {
  const std::string setting = assignment.substr(0, assignment.find('='));
  const auto holds = [&](const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), assignment) != list.end(); };
  for (size_t axis = 0; axis < study.axes.size(); ++axis)
    for (size_t value = 0; value < study.axes[axis].values.size(); ++value)
      if (holds(study.axes[axis].values[value].settings)) return place_on_axis(study, axis, value, setting, fault);
  if (holds(study.settings)) return "/set/" + setting;
  if (study.tuning && setting == study.tuning->setting) return fault == Fault::name ? "/tuning/setting" : "/tuning";
  if (setting == "training.seed") return "/seeds";
  return setting.starts_with("training.cooldown_at") ? "/branches" : "";
}

}  // namespace

std::string blamed(const Study& study, const std::vector<std::string>& settings, const std::string& message) {
  const std::string origin = study.origin.empty() ? "" : study.origin + ": ";
  for (auto assignment = settings.rbegin(); assignment != settings.rend(); ++assignment) {
    const Fault fault = fault_of(assignment->substr(0, assignment->find('=')), message);
    const std::string place = fault == Fault::none ? "" : place_of(study, *assignment, fault);
    const std::string setting = assignment->substr(0, assignment->find('='));
    const bool given = std::find(study.overrides.begin(), study.overrides.end(), setting) != study.overrides.end();
    if (given && place == "/set/" + setting) return "--set " + setting + ": " + message;
    if (!place.empty()) return origin + place + ": " + message;
  }
  return origin + message;
}

}  // namespace saccade
