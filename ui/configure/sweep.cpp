#include "ui/configure/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/engine/error.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;
using Kind = Setting::Kind;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n"), end = text.find_last_not_of(" \t\n");
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

/// Numbers and the like as JSON, all else as text.
Json value_of(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

/// What stands between commas, or between semicolons where there are any: groups of layers have commas themselves.
Json list_of(const std::string& text, bool commas) {
  const char between = !commas || text.find(';') != std::string::npos ? ';' : ',';
  Json list = Json::array();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(between, begin), text.size());
    if (const std::string part = trimmed(text.substr(begin, end - begin)); !part.empty()) list.push_back(value_of(part));
    begin = end + 1;
  }
  return list;
}

double number_at(const Json& axis, const char* key, const std::string& pointer) {
  const Json value = value_of(trimmed(axis.value(key, std::string())));
  if (!value.is_number()) throw UsageError(pointer + "/" + key + " is " + value.dump() + "; expected a number");
  return value;
}

/// "0.5, 800, 2000000 tokens, 3.4 nats" as a study file has them: shares or steps, tokens trained on, validation losses.
Json branches_of(const std::string& text) {
  Json branches = Json::array();
  for (const Json& part : list_of(text, true)) {
    const std::string words = part.is_string() ? part.get<std::string>() : std::string();
    const auto end = words.find(' ');
    const Json number = value_of(words.substr(0, end));
    const std::string unit = end == std::string::npos ? "" : trimmed(words.substr(end));
    if (number.is_number() && unit == "tokens")
      branches.push_back({{"tokens", number}});
    else if (number.is_number() && unit == "nats")
      branches.push_back({{"loss", number}});
    else
      branches.push_back(part);  // a number, or what the study file's reader refuses with its place
  }
  return branches;
}

/// Without the digits that only the arithmetic made.
double short_number(double value) { return std::round(value * 1e9) / 1e9; }

/// Integers from one end to the other, each once.
Json rounded(double from, double to, int64_t count, bool log) {
  std::set<int64_t> values;
  for (int64_t i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    values.insert(std::llround(log ? from * std::pow(to / from, share) : from + share * (to - from)));
  }
  return values;
}

/// Of a setting that is not an integer.
Json spaced(double from, double to, int64_t count) {
  Json values = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    values.push_back(short_number(from + share * (to - from)));
  }
  return values;
}

/// "setting" with "values" or "log_range".
Json axis_of(const Json& axis, const std::string& pointer, const std::vector<FormField>& fields) {
  const std::string setting = trimmed(axis.value("setting", "")), kind = axis.value("kind", "values");
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const FormField& f) { return dotted_name(f) == setting; });
  const Kind type = field == fields.end() ? Kind::text : field->setting.kind;
  Json made{{"setting", setting}};
  if (kind == "values") {
    made["values"] = list_of(axis.value("values", ""), type != Kind::layers && type != Kind::mixer);
    return made;
  }
  const double from = number_at(axis, "from", pointer), to = number_at(axis, "to", pointer);
  const int64_t count = axis.value("count", int64_t{3});
  const bool log = kind == "log", whole = type == Kind::integer || type == Kind::layers;
  if (log && (whole || from <= 0) && !(from > 0 && to > 0))
    throw UsageError(pointer + "/from is " + Json(from).dump() + "; expected a positive number, where values are log spaced");
  if (whole)
    made["values"] = rounded(from, to, count, log);
  else if (log)
    made["log_range"] = {{"from", from}, {"to", to}, {"count", count}};
  else
    made["values"] = spaced(from, to, count);
  return made;
}

std::string text_of(double value) { return Json(short_number(value)).dump(); }

}  // namespace

Json empty_sweep() {
  return {{"name", "sweep"},
          {"question", ""},
          {"seeds", "1"},
          {"axes", Json::array()},
          {"tuned", false},
          {"tuning", {{"setting", "training.learning_rate"}, {"kind", "log"}, {"from", "0.001"}, {"to", "0.008"}, {"count", 4}}},
          {"extend", true},
          {"every_seed", false},
          {"equal", ""},
          {"equal_by", "architecture.width"},
          {"branches", ""}};
}

bool equal_by_settings(const std::string& what) { return what == "parameters" || what == "state"; }

std::string dotted_name(const FormField& field) {
  std::string name = field.pointer.substr(1);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

Json proposed_axis(const FormField& field, const Json& value) {
  Json axis{{"setting", dotted_name(field)}, {"kind", "values"}, {"values", ""}};
  const auto join = [&](const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
    axis["values"] = text;
  };
  const Setting& setting = field.setting;
  if (setting.kind == Kind::boolean) join({"false", "true"});
  if (setting.kind == Kind::choice) join(setting.choices);
  if (setting.kind == Kind::text && value.is_string()) join({value.get<std::string>()});
  if (!value.is_number()) return axis;
  const double now = value;
  if (setting.kind == Kind::real && now > 0) {
    axis.update({{"kind", "log"},
                 {"from", text_of(std::max(setting.minimum, now / 4))},
                 {"to", text_of(std::min(setting.maximum, now * 4))},
                 {"count", 5}});
    return axis;
  }
  const auto most = std::min(setting.maximum, 9e15);
  std::set<int64_t> near;
  for (const double factor : {0.5, 1.0, 2.0}) near.insert(std::llround(std::clamp(now * factor, std::max(setting.minimum, -9e15), most)));
  std::vector<std::string> parts;
  for (const int64_t each : near) parts.push_back(std::to_string(each));
  join(parts);
  return axis;
}

Json study_file(const Json& sweep, const Json& base, const std::vector<FormField>& fields) {
  const std::string question = trimmed(sweep.value("question", ""));
  std::string varied;
  Json file{{"base", base}, {"axes", Json::array()}, {"seeds", list_of(sweep.value("seeds", ""), true)}};
  const Json axes = sweep.value("axes", Json::array());
  for (size_t i = 0; i < axes.size(); ++i) {
    file["axes"].push_back(axis_of(axes[i], "/axes/" + std::to_string(i), fields));
    varied += (varied.empty() ? "" : " and ") + axes[i].value("setting", std::string());
  }
  file["question"] = !question.empty() ? question : "What does " + (varied.empty() ? "the seed" : varied) + " change?";
  if (sweep.value("tuned", false)) {
    file["tuning"] = axis_of(sweep.value("tuning", Json::object()), "/tuning", fields);
    file["tuning"]["extend"] = sweep.value("extend", false);
    if (sweep.value("every_seed", false)) file["tuning"]["seeds"] = file["seeds"];
  }
  if (const std::string what = sweep.value("equal", ""); !what.empty()) {
    file["equal"] = {{"what", what}};
    if (equal_by_settings(what)) file["equal"]["by"] = list_of(sweep.value("equal_by", ""), true);
  }
  if (const Json branches = branches_of(sweep.value("branches", "")); !branches.empty()) file["branches"] = branches;
  return file;
}

}  // namespace saccade::ui
