#include "analysis/studies/study.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "analysis/comparison/tuning.h"
#include "analysis/figures/recipe.h"
#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/config/presets.h"
#include "models/config_text.h"
#include "models/resources.h"
#include "models/settings.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

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

/// One of `names`.
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
  if (!dotted && name != "precision" && name != "device" && name != "threads")
    refuse(pointer, value, "the dotted name of a setting, like architecture.window");
  if (dotted && std::find(kSections.begin(), kSections.end(), name.substr(0, dot)) == kSections.end())
    throw UsageError(pointer + " is " + shown(value) + ", but a config has no section " + shown(name.substr(0, dot)) +
                     did_you_mean(name.substr(0, dot), kSections));
  return name;
}

/// {"training.steps": 100} as assignments.
std::vector<std::string> assignments(const Json& object, const std::string& pointer) {
  if (!object.is_object()) refuse(pointer, object, "settings by their dotted names, like {\"training.steps\": 100}");
  std::vector<std::string> list;
  for (const auto& [key, value] : object.items()) {
    if (key == "training.seed") throw UsageError(pointer + " sets training.seed; expected the seeds in /seeds");
    list.push_back(setting_name(key, pointer) + "=" + value.dump());
  }
  return list;
}

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

/// {"from": 0.001, "to": 0.008, "count": 4}: a geometric grid with both ends, of numbers with four digits between them.
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

/// The values that stand under "values" or "log_range".
Json grid_values(const Json& axis, const std::string& pointer) {
  if (axis.contains("values") == axis.contains("log_range"))
    throw UsageError(pointer + " has " + (axis.contains("values") ? "both" : "none of") + " values and log_range; expected one of them");
  if (axis.contains("log_range")) return log_range(axis.at("log_range"), pointer + "/log_range");
  if (!axis.at("values").is_array()) refuse(pointer + "/values", axis.at("values"), "a list");
  return axis.at("values");
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

std::vector<int64_t> read_seeds(const Json& file) {
  if (!file.contains("seeds")) return {1};
  const Json& seeds = file.at("seeds");
  if (!seeds.is_array() || seeds.empty()) refuse("/seeds", seeds, "a list of integers, like [1, 2, 3]");
  std::vector<int64_t> list;
  for (const Json& seed : seeds) {
    const auto whole = whole_number<int64_t>(seed);
    if (!whole) refuse("/seeds", seeds, "a list of integers, like [1, 2, 3]");
    if (std::find(list.begin(), list.end(), *whole) != list.end()) refuse("/seeds", seeds, "each seed once");
    list.push_back(*whole);
  }
  return list;
}

void check_decides(const Json& tuning) {
  if (!tuning.contains("decides") || tuning.at("decides") == "validation") return;
  refuse("/tuning/decides", tuning.at("decides"),
         "validation: OOD domains and the test split never choose anything, else what they report would no longer be unseen");
}

/// How far a grid is extended: to /tuning/bound, else to 16 times beyond its ends.
void read_bound(const Json& object, StudyTuning& tuning) {
  constexpr double kFactor = 16;
  tuning.smallest = tuning.values.front() / kFactor, tuning.largest = tuning.values.back() * kFactor;
  if (!object.contains("bound")) return;
  const Json& bound = object.at("bound");
  const bool pair = bound.is_array() && bound.size() == 2 && bound[0].is_number() && bound[1].is_number() && bound[0] < bound[1];
  if (!pair) refuse("/tuning/bound", bound, "the smallest and the largest value, like [0.0001, 0.1]");
  tuning.smallest = bound[0], tuning.largest = bound[1];
}

/// "seed": one, "seeds": several; the study's first where neither is given.
std::vector<int64_t> read_tuning_seeds(const Json& object, const std::vector<int64_t>& of_study) {
  if (object.contains("seed") && object.contains("seeds")) throw UsageError("/tuning has \"seed\" and \"seeds\"; expected one of them");
  if (object.contains("seed") && !whole_number<int64_t>(object.at("seed"))) refuse("/tuning/seed", object.at("seed"), "an integer");
  if (object.contains("seed")) return {object.at("seed").get<int64_t>()};
  if (!object.contains("seeds")) return {of_study.front()};
  const Json& seeds = object.at("seeds");
  const auto is_integer = [](const Json& seed) { return whole_number<int64_t>(seed).has_value(); };
  if (!seeds.is_array() || seeds.empty() || !std::all_of(seeds.begin(), seeds.end(), is_integer) ||
      std::set<Json>(seeds.begin(), seeds.end()).size() != seeds.size())
    refuse("/tuning/seeds", seeds, "integers, each once");
  return seeds.get<std::vector<int64_t>>();
}

std::optional<StudyTuning> read_tuning(const Json& file, const std::vector<int64_t>& seeds) {
  if (!file.contains("tuning")) return {};
  const Json& object = file.at("tuning");
  check_known_keys(object, {"setting", "values", "log_range", "decides", "seed", "seeds", "extend", "bound"}, "/tuning");
  check_decides(object);
  StudyTuning tuning;
  tuning.setting = setting_name(required(object, "setting", "/tuning", "a setting, like training.learning_rate"), "/tuning/setting");
  const Json values = grid_values(object, "/tuning");
  for (const Json& value : values) {
    if (!value.is_number() || !(value.get<double>() > 0)) refuse("/tuning/values", values, "positive numbers");
    tuning.values.push_back(value);
  }
  std::sort(tuning.values.begin(), tuning.values.end());
  if (tuning.values.empty() || std::adjacent_find(tuning.values.begin(), tuning.values.end()) != tuning.values.end())
    refuse("/tuning/values", values, "at least one value, each once");
  tuning.seeds = read_tuning_seeds(object, seeds);
  if (object.contains("extend")) {
    if (!object.at("extend").is_boolean()) refuse("/tuning/extend", object.at("extend"), "true or false");
    tuning.extend = object.at("extend");
  }
  read_bound(object, tuning);
  return tuning;
}

std::optional<StudyEqual> read_equal(const Json& file) {
  if (!file.contains("equal")) return {};
  const Json& object = file.at("equal");
  if (!object.is_object()) refuse("/equal", object, "{\"what\": \"parameters\", \"by\": [\"architecture.width\"]}");
  check_known_keys(object, {"what", "by", "to"}, "/equal");
  using enum StudyEqual::What;
  const std::vector<std::pair<std::string, StudyEqual::What>> kinds{
      {"parameters", parameters}, {"state", state}, {"flops", flops}, {"tokens", tokens}, {"seconds", seconds}};
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds) names.push_back(name);
  const std::string what = choice_of(required(object, "what", "/equal", alternatives(names)), "/equal/what", names);
  StudyEqual equal;
  for (const auto& [name, kind] : kinds)
    if (name == what) equal.what = kind;
  if (object.contains("by") && (equal.what == flops || equal.what == tokens))
    throw UsageError("/equal/by goes with \"parameters\" and \"state\"; equal " + what + " are reached by training.steps");
  for (const char* key : {"by", "to"})
    if (object.contains(key) && equal.what == seconds)
      throw UsageError("/equal/" + std::string(key) +
                       " goes with what is solved for; seconds are those of the run that took least, at which the report reads the losses");
  const Json by = object.value("by", Json::array({"architecture.width"}));
  if (!by.is_array() || by.empty()) refuse("/equal/by", by, "a list of settings, coarse to fine, like [\"architecture.width\"]");
  for (size_t i = 0; i < by.size(); ++i) equal.by.push_back(setting_name(by[i], "/equal/by/" + std::to_string(i)));
  if (object.contains("to")) equal.to = text_of(object.at("to"), "/equal/to"), static_cast<void>(preset_config(equal.to));
  return equal;
}

StudyEvaluation read_evaluation(const Json& file) {
  StudyEvaluation evaluation;
  if (!file.contains("evaluations")) return evaluation;
  const Json& object = file.at("evaluations");
  check_known_keys(object, {"split", "tokens", "length", "paired_error"}, "/evaluations");
  if (object.contains("split")) evaluation.split = choice_of(object.at("split"), "/evaluations/split", {"validation", "test"});
  const Json& tokens = required(object, "tokens", "/evaluations", "tokens of every domain");
  if (whole_number<int64_t>(tokens).value_or(0) < 1) refuse("/evaluations/tokens", tokens, "a positive integer");
  evaluation.tokens = tokens;
  if (object.contains("length")) {
    evaluation.length = whole_number<int64_t>(object.at("length")).value_or(0);
    if (evaluation.length < 2 || evaluation.length > evaluation.tokens)
      refuse("/evaluations/length", object.at("length"), "tokens of a sequence, from 2 to /evaluations/tokens");
  }
  if (!object.contains("paired_error")) return evaluation;
  const Json& error = object.at("paired_error");
  if (!error.is_number() || !(error.get<double>() >= 0))
    refuse("/evaluations/paired_error", error, "nats, a positive number like 0.005, or 0 for the given tokens alone");
  evaluation.paired_error = error;
  return evaluation;
}

/// 0.5, 3000, {"tokens": 1000000} or {"loss": 3.4}.
StudyBranch read_branch(const Json& branch, const std::string& pointer) {
  using At = StudyBranch::At;
  const std::string wanted = "a step, a share of all below 1, {\"tokens\": N} or {\"loss\": nats}";
  if (!branch.is_object() && !branch.is_number()) refuse(pointer, branch, wanted);
  if (branch.is_object()) check_known_keys(branch, {"tokens", "loss"}, pointer);
  if (branch.is_object() && branch.size() != 1) refuse(pointer, branch, wanted);
  const Json& value = branch.is_number() ? branch : branch.begin().value();
  if (!value.is_number() || !(value.get<double>() > 0)) refuse(pointer, branch, wanted + ", of a positive number");
  return {branch.is_number() ? At::step : branch.contains("tokens") ? At::tokens : At::loss, value};
}

std::vector<StudyBranch> read_branches(const Json& file) {
  if (!file.contains("branches")) return {};
  const Json& branches = file.at("branches");
  if (!branches.is_array()) refuse("/branches", branches, "a list of where cooldown branches begin");
  std::vector<StudyBranch> list;
  for (size_t i = 0; i < branches.size(); ++i) list.push_back(read_branch(branches[i], "/branches/" + std::to_string(i)));
  return list;
}

/// Branches cool down, which the schedule wsd alone does; another one would be replaced by it under its own name.
void check_no_other_schedule(const std::vector<std::string>& settings, const std::string& pointer) {
  for (const std::string& setting : settings) {
    const bool is_schedule = setting.starts_with("training.schedule=") && setting != "training.schedule=\"wsd\"";
    if (is_schedule || setting.starts_with("training.cooldown_at=") || setting.starts_with("training.cooldown_at_loss="))
      throw UsageError(pointer + " sets " + setting.substr(0, setting.find('=')) +
                       ", but /branches are cooldowns of the schedule wsd that it gives; expected one of them");
  }
}

void check_branches(const Study& study) {
  if (study.branches.empty()) return;
  check_no_other_schedule(study.settings, "/set");
  for (size_t i = 0; i < study.axes.size(); ++i)
    for (const StudyAxis::Value& value : study.axes[i].values) check_no_other_schedule(value.settings, "/axes/" + std::to_string(i));
}

void read_pretraining(const Json& report, PretrainingLoss& loss) {
  if (report.contains("pretraining"))
    loss.kind = parse_pretraining_loss(choice_of(report.at("pretraining"), "/report/pretraining", {"validation", "weighted", "train"}));
  if (!report.contains("window")) return;
  const Json& window = report.at("window");
  if (loss.kind != PretrainingLoss::Kind::train)
    throw UsageError("/report/window goes with /report/pretraining \"train\": the tokens whose mean training loss it is");
  if (!window.is_number() || !(window.get<double>() > 0)) refuse("/report/window", window, "a positive number of tokens");
  loss.window = window;
}

/// Those of every study, and recipes that come with the program.
void read_figures(const Json& figures, Study& study) {
  const std::string wanted = alternatives(study_figures()) + ", or the name of a figure's recipe";
  if (!figures.is_array()) refuse("/report/figures", figures, "a list of " + wanted);
  const std::vector<std::string>& own = study_figures();
  std::vector<std::string> known = shipped_recipes();
  known.insert(known.end(), own.begin(), own.end());
  for (size_t i = 0; i < figures.size(); ++i) {
    const std::string pointer = "/report/figures/" + std::to_string(i), name = text_of(figures[i], pointer);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = nearest_name(name, known);
      throw UsageError(pointer + " is " + shown(figures[i]) + "; " +
                       (near.empty() ? "expected " + wanted : "did you mean \"" + near + "\"?"));
    }
    (std::find(own.begin(), own.end(), name) != own.end() ? study.figures : study.recipes).push_back(name);
  }
}

void read_report(const Json& report, Study& study) {
  check_known_keys(report, {"tables", "figures", "pretraining", "window"}, "/report");
  study.tables = report.contains("tables") ? choices_of(report.at("tables"), "/report/tables", study_tables()) : study_tables();
  read_pretraining(report, study.pretraining);
  if (report.contains("figures"))
    read_figures(report.at("figures"), study);
  else
    study.figures = study_figures();
}

Study read_study(const Json& file) {
  check_known_keys(file,
                   {"question", "source", "base", "set", "axes", "seeds", "tuning", "equal", "branches", "evaluations", "tasks", "report"},
                   "the study");
  Study study;
  study.file = file;
  study.question = text_of(required(file, "question", "", "one sentence"), "/question");
  if (file.contains("source")) study.source = text_of(file.at("source"), "/source");
  const Json& base = required(file, "base", "", "a preset's name or a config");
  if (!base.is_string() && !base.is_object()) refuse("/base", base, "a preset's name or a config { … }");
  if (base.is_string()) study.base_name = base;
  study.base = base.is_string() ? preset_config(base) : base;
  if (file.contains("set")) study.settings = assignments(file.at("set"), "/set");
  study.axes = read_axes(file);
  study.seeds = read_seeds(file);
  study.tuning = read_tuning(file, study.seeds);
  for (size_t i = 0; study.tuning && i < study.axes.size(); ++i)
    if (study.axes[i].setting == study.tuning->setting)
      throw UsageError("/axes/" + std::to_string(i) + "/setting is " + study.tuning->setting +
                       ", which /tuning searches; expected another");
  study.equal = read_equal(file);
  study.branches = read_branches(file);
  check_branches(study);
  study.evaluation = read_evaluation(file);
  study.tasks = read_study_tasks(file);
  read_report(file.value("report", Json::object()), study);
  return study;
}

}  // namespace

bool evaluated_as_recorded(const StudyEvaluation& evaluation, const DataConfig& data) {
  return evaluation.tokens == 0 || evaluation.length == 0 || evaluation.length == data.sequence_length;
}

const std::vector<std::string>& study_tables() {
  static const std::vector<std::string> names{"end", "equal-loss", "differences", "tuning", "cost", "equal-cost", "scaling", "scores"};
  return names;
}

const std::vector<std::string>& study_figures() {
  static const std::vector<std::string> names{"ood-against-pretraining", "tuning", "loss-by-setting", "best-by-setting",
                                              "entropy-by-setting"};
  return names;
}

Study parse_study(const std::string& text, const std::string& origin, const std::string& name) {
  const Json file = parse_json_text(text, origin);
  try {
    Study study = read_study(file);
    study.name = name, study.origin = origin;
    return study;
  } catch (const UsageError& error) {
    throw UsageError(origin + ": " + error.what());
  }
}

Study load_study(const fs::path& file, const std::vector<std::string>& overrides) {
  if (!fs::exists(file)) throw DataError(file.string() + ": there is no such study file");
  if (overrides.empty()) return parse_study(read_text(file), file.string(), file.stem().string());
  Json object = parse_json_text(read_text(file), file.string());
  for (const std::string& assignment : overrides) {
    Json config = Json::object();  // of one value: its dotted name is its path
    apply_override(config, assignment);
    const std::string name = assignment.substr(0, assignment.find('='));
    object["set"][name] = config.at(setting_pointer(name));
  }
  return parse_study(object.dump(), file.string(), file.stem().string());
}

std::vector<std::string> shipped_studies() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(resource_folder() / "studies", error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_study(const std::string& name_or_file) {
  if (name_or_file.ends_with(".json") || name_or_file.find('/') != std::string::npos) return name_or_file;
  const std::vector<std::string> names = shipped_studies();
  if (std::find(names.begin(), names.end(), name_or_file) != names.end()) return resource_folder() / "studies" / (name_or_file + ".json");
  throw UsageError("there is no study \"" + name_or_file + "\"" + did_you_mean(name_or_file, names));
}

}  // namespace saccade
