#include "analysis/studies/study_axes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "analysis/comparison/tuning.h"
#include "analysis/studies/study_fields.h"
#include "kernels/engine/error.h"
#include "models/config/presets.h"
#include "models/settings.h"

namespace saccade::study_file {

namespace {

/// A value in file-name letters.
std::string slug(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+';
    if (plain)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "none" : name.substr(0, 60);
}

std::string slug_of(const Json& value) {
  if (value.is_string()) return slug(value.get<std::string>());
  return slug(value.is_number() ? plain_number(value.get<double>()) : value.dump());
}

double four_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return std::strtod(text.data(), nullptr);
}

std::vector<double> log_range(const Json& range, const std::string& pointer) {
  check_known_keys(range, {"from", "to", "count"}, pointer);
  const auto number = [&](const char* key) {
    const Json& value = required(range, key, pointer, "a positive number");
    if (!value.is_number() || !(value.get<double>() > 0)) refuse(pointer + "/" + key, value, "a positive number");
    return value.get<double>();
  };
  const double from = number("from"), to = number("to"), count = number("count");
  if (count != std::floor(count) || count < 2 || count > 1000) refuse(pointer + "/count", range.at("count"), "an integer from 2 to 1000");
  if (to <= from) refuse(pointer + "/to", range.at("to"), "more than " + pointer + "/from, " + plain_number(from));
  std::vector<double> values{from};
  for (double i = 1; i + 1 < count; ++i) values.push_back(four_digits(from * std::pow(to / from, i / (count - 1))));
  values.push_back(to);
  return values;
}

void check_distinct(const std::vector<StudyAxis::Value>& values, const std::string& pointer) {
  std::set<std::string> labels;
  for (const StudyAxis::Value& value : values)
    if (!labels.insert(value.label).second) throw UsageError(pointer + " holds \"" + value.label + "\" twice; expected each value once");
  if (values.empty()) throw UsageError(pointer + " is empty; expected at least one value");
}

StudyAxis setting_axis(const Json& object, const std::string& pointer) {
  check_known_keys(object, {"setting", "values", "log_range", "name"}, pointer);
  StudyAxis axis;
  const bool bases = object.at("setting") == "base";
  axis.setting = bases ? "" : setting_name(object.at("setting"), pointer + "/setting");
  if (axis.setting == "training.seed") throw UsageError(pointer + "/setting is training.seed; expected the seeds in /seeds");
  axis.name = object.contains("name") ? text_of(object.at("name"), pointer + "/name")
              : bases                 ? "base"
                                      : axis.setting.substr(axis.setting.rfind('.') + 1);
  for (const Json& value : grid_values(object, pointer)) {
    StudyAxis::Value entry;
    if (bases) {
      entry.base = text_of(value, pointer + "/values");
      static_cast<void>(preset_config(entry.base));
      entry.label = slug(entry.base);
    } else {
      entry.label = slug(axis.name) + "-" + slug_of(value);
      entry.settings = {axis.setting + "=" + value.dump()};
      if (value.is_number()) entry.number = value.get<double>();
    }
    axis.values.push_back(std::move(entry));
  }
  check_distinct(axis.values, pointer + "/values");
  return axis;
}

/// A case whose name is a number is a point of a numeric axis: several settings that change together.
std::optional<double> number_of(const std::string& name) {
  double number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || !std::isfinite(number)) return {};
  return number;
}

StudyAxis case_axis(const Json& object, const std::string& pointer) {
  check_known_keys(object, {"name", "cases"}, pointer);
  StudyAxis axis;
  axis.name = object.contains("name") ? text_of(object.at("name"), pointer + "/name") : "case";
  const Json& cases = object.at("cases");
  if (!cases.is_array()) refuse(pointer + "/cases", cases, "a list of {\"name\": …, \"set\": {…}}");
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string at = pointer + "/cases/" + std::to_string(i);
    check_known_keys(cases[i], {"name", "base", "set"}, at);
    StudyAxis::Value entry;
    const std::string name = text_of(required(cases[i], "name", at, "a short name"), at + "/name");
    entry.number = number_of(name);
    entry.label = (entry.number ? slug(axis.name) + "-" : "") + slug(name);
    if (cases[i].contains("base")) entry.base = text_of(cases[i].at("base"), at + "/base"), static_cast<void>(preset_config(entry.base));
    if (cases[i].contains("set")) entry.settings = assignments(cases[i].at("set"), at + "/set");
    axis.values.push_back(std::move(entry));
  }
  check_distinct(axis.values, pointer + "/cases");
  return axis;
}

/// Of two axes that set one thing the later one decides, and the labels of the other would not be true.
void check_axes_are_apart(const std::vector<StudyAxis>& axes) {
  std::map<std::string, size_t> owner;
  for (size_t i = 0; i < axes.size(); ++i)
    for (const StudyAxis::Value& value : axes[i].values)
      for (const std::string& assignment : value.settings) {
        const std::string setting = assignment.substr(0, assignment.find('='));
        if (const auto [at, first] = owner.try_emplace(setting, i); !first && at->second != i)
          throw UsageError("/axes/" + std::to_string(at->second) + " and /axes/" + std::to_string(i) + " both set " + setting +
                           "; expected each setting on one axis");
      }
}

}  // namespace

Json grid_values(const Json& axis, const std::string& pointer) {
  if (axis.contains("values") == axis.contains("log_range"))
    throw UsageError(pointer + " has " + (axis.contains("values") ? "both" : "none of") + " values and log_range; expected one of them");
  if (axis.contains("log_range")) return log_range(axis.at("log_range"), pointer + "/log_range");
  if (!axis.at("values").is_array()) refuse(pointer + "/values", axis.at("values"), "a list");
  return axis.at("values");
}

std::vector<StudyAxis> read_axes(const Json& file) {
  std::vector<StudyAxis> axes;
  if (!file.contains("axes")) return axes;
  if (!file.at("axes").is_array()) refuse("/axes", file.at("axes"), "a list of axes");
  std::set<std::string> names;
  for (size_t i = 0; i < file.at("axes").size(); ++i) {
    const Json& object = file.at("axes")[i];
    const std::string pointer = "/axes/" + std::to_string(i);
    if (!object.is_object()) refuse(pointer, object, "an object { … }");
    if (!object.contains("setting") && !object.contains("cases"))
      check_known_keys(object, {"setting", "cases", "values", "log_range", "name"}, pointer);
    if (object.contains("cases") && !object.contains("setting"))
      axes.push_back(case_axis(object, pointer));
    else if (object.contains("setting"))
      axes.push_back(setting_axis(object, pointer));
    else
      throw UsageError(pointer + " has neither a setting nor cases; expected one of them");
    if (!names.insert(axes.back().name).second)
      throw UsageError(pointer + "/name is \"" + axes.back().name + "\", as of another axis; expected a name of its own");
  }
  check_axes_are_apart(axes);
  return axes;
}

}  // namespace saccade::study_file
