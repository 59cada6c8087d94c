#include "analysis/studies/study.h"

#include <algorithm>
#include <set>

#include "analysis/figures/recipe.h"
#include "analysis/runs/files.h"
#include "analysis/studies/study_axes.h"
#include "analysis/studies/study_fields.h"
#include "kernels/engine/error.h"
#include "models/config/presets.h"
#include "models/config_text.h"
#include "models/resources.h"
#include "models/settings.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using namespace study_file;

namespace {

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
  std::vector<std::string> names;
  for (const std::string& assignment : overrides) {
    Json config = Json::object();  // of one value: its dotted name is its path
    apply_override(config, assignment);
    const std::string name = setting_name(assignment.substr(0, assignment.find('=')), "--set");
    object["set"][name] = config.at(setting_pointer(name));
    names.push_back(name);
  }
  Study study = parse_study(object.dump(), file.string(), file.stem().string());
  study.overrides = std::move(names);
  return study;
}

std::vector<std::string> shipped_studies() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(resource_folder() / "studies", error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

/// "; did you mean "tuned-tiny"?": the nearest name, else those that have the word in them, three at most; ";" where there is none.
std::string names_like(const std::string& word, const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  std::vector<std::string> near;
  if (const std::string name = nearest_name(word, names); !name.empty()) near.push_back(name);
  for (const std::string& name : names)
    if (near.size() < kMost && !word.empty() && name.find(word) != std::string::npos &&
        std::find(near.begin(), near.end(), name) == near.end())
      near.push_back(name);
  for (std::string& name : near) name = "\"" + name + "\"";
  return near.empty() ? ";" : "; did you mean " + alternatives(near) + "?";
}

}  // namespace

fs::path find_study(const std::string& name_or_file) {
  if (name_or_file.ends_with(".json") || name_or_file.find('/') != std::string::npos) return name_or_file;
  const std::vector<std::string> names = shipped_studies();
  if (std::find(names.begin(), names.end(), name_or_file) != names.end()) return resource_folder() / "studies" / (name_or_file + ".json");
  throw UsageError("there is no study \"" + name_or_file + "\"" + names_like(name_or_file, names) +
                   " saccade study list names those that come with the program");
}

}  // namespace saccade
