#include "models/settings.h"

#include <algorithm>
#include <cmath>

#include "models/suggest.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr double kLargestInteger = 9007199254740992.0;  // 2^53: beyond it a JSON number is not exact

/// A value as a message shows it: one short line.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string number(double x) {
  return std::abs(x) < kLargestInteger && x == std::floor(x) ? Json(static_cast<int64_t>(x)).dump() : Json(x).dump();
}

std::string range_text(const Setting& setting) {
  const bool low = std::isfinite(setting.minimum), high = std::isfinite(setting.maximum);
  if (low && high) return " from " + number(setting.minimum) + " to " + number(setting.maximum);
  if (low) return " of at least " + number(setting.minimum);
  if (high) return " of at most " + number(setting.maximum);
  return "";
}

std::string expectation(const Setting& setting) {
  switch (setting.kind) {
    case Setting::Kind::boolean: return "true or false";
    case Setting::Kind::integer: return "an integer" + range_text(setting);
    case Setting::Kind::real: return "a number" + range_text(setting);
    case Setting::Kind::choice: return alternatives(setting.choices);
    case Setting::Kind::text: return "text";
    case Setting::Kind::text_list: return "a list of texts, like [\"a\", \"b\"]";
    case Setting::Kind::layers:
      return "an integer" + range_text(setting) + ", or groups of layers like \"3 gated_deltanet, 1 attention(window=64)\"";
    case Setting::Kind::mixer: return "a mixer, like \"attention(window=64)\" or {\"mixer\": \"attention\", \"window\": 64}";
    case Setting::Kind::number_list: return "a list of numbers" + range_text(setting) + ", like [1, 2]";
  }
  return "";
}

bool in_range(const Setting& setting, double x) { return x >= setting.minimum && x <= setting.maximum; }

bool fits(const Setting& setting, const Json& value) {
  switch (setting.kind) {
    case Setting::Kind::boolean: return value.is_boolean();
    case Setting::Kind::mixer: return value.is_string() || value.is_object();
    case Setting::Kind::layers:
      if (value.is_string() || value.is_array()) return true;
      [[fallthrough]];
    case Setting::Kind::integer:
      return whole_number<int64_t>(value) && std::abs(value.get<double>()) <= kLargestInteger && in_range(setting, value.get<double>());
    case Setting::Kind::real: return value.is_number() && std::isfinite(value.get<double>()) && in_range(setting, value.get<double>());
    case Setting::Kind::choice:
      return value.is_string() &&
             std::find(setting.choices.begin(), setting.choices.end(), value.get<std::string>()) != setting.choices.end();
    case Setting::Kind::text: return value.is_string();
    case Setting::Kind::text_list:
      return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
    case Setting::Kind::number_list:
      return value.is_array() && std::all_of(value.begin(), value.end(), [&](const Json& v) {
               return v.is_number() && std::isfinite(v.get<double>()) && in_range(setting, v.get<double>());
             });
  }
  return false;
}

}  // namespace

void check_setting(const Setting& setting, const Json& value, const std::string& pointer) {
  if (fits(setting, value)) return;
  std::string message = pointer + " is " + shown(value) + "; expected " + expectation(setting);
  if (setting.kind == Setting::Kind::choice && value.is_string())
    if (const std::string name = nearest_name(value.get<std::string>(), setting.choices); !name.empty())
      message += "; did you mean \"" + name + "\"?";
  throw UsageError(message);
}

Json resolved_values(const std::vector<Setting>& settings, const Json& object, const std::string& pointer) {
  Json values = Json::object();
  for (const Setting& s : settings) {
    values[s.name] = s.default_value;
    if (!object.contains(s.name)) continue;
    check_setting(s, object.at(s.name), pointer + "/" + s.name);
    values[s.name] = object.at(s.name);
    if (s.kind == Setting::Kind::integer) values[s.name] = object.at(s.name).get<int64_t>();
    if (s.kind == Setting::Kind::real) values[s.name] = object.at(s.name).get<double>();
  }
  return values;
}

void check_known_keys(const Json& object, const std::vector<std::string>& names, const std::string& pointer) {
  if (!object.is_object())
    throw UsageError((pointer.empty() ? "the config" : pointer) + " is " + shown(object) + "; expected an object { … }");
  for (const auto& [key, value] : object.items())
    if (std::find(names.begin(), names.end(), key) == names.end())
      throw UsageError((pointer.empty() ? "the config" : pointer) + " has no setting " + shown(Json(key)) + did_you_mean(key, names));
}

}  // namespace saccade
