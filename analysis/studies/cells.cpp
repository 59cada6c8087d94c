#include "analysis/studies/cells.h"

#include <algorithm>
#include <set>

#include "analysis/comparison/tuning.h"
#include "analysis/studies/blame.h"
#include "analysis/studies/equal.h"
#include "kernels/engine/error.h"
#include "models/architectures/registry.h"
#include "models/config/presets.h"
#include "models/config_text.h"
#include "models/corpus/sha256.h"
#include "models/training/branch_starts.h"

namespace saccade {

using Json = nlohmann::json;

namespace {

constexpr size_t kLongestName = 160;
constexpr const char* kCoolsDown = "training.schedule=wsd";  ///< of a study with branches, in every cell

/// Every combination of values, as indices into the axes.
std::vector<std::vector<size_t>> combinations(const std::vector<StudyAxis>& axes) {
  constexpr size_t kMost = 100000;
  std::vector<std::vector<size_t>> all{{}};
  for (const StudyAxis& axis : axes) {
    std::vector<std::vector<size_t>> longer;
    for (const std::vector<size_t>& one : all)
      for (size_t i = 0; i < axis.values.size(); ++i) {
        longer.push_back(one);
        longer.back().push_back(i);
      }
    if (longer.size() > kMost) throw UsageError("the grid has more than 100 000 points; expected fewer values on its axes");
    all = std::move(longer);
  }
  return all;
}

StudyCell make_cell(const Study& study, const std::vector<size_t>& at) {
  StudyCell cell;
  cell.base = study.base;
  cell.settings = study.settings;
  for (size_t i = 0; i < at.size(); ++i) {
    const StudyAxis::Value& value = study.axes[i].values[at[i]];
    if (!value.base.empty()) cell.base = preset_config(value.base);
    cell.settings.insert(cell.settings.end(), value.settings.begin(), value.settings.end());
    cell.labels.push_back(value.label);
    cell.numbers.push_back(value.number);
    cell.name += (cell.name.empty() ? "" : "_") + value.label;
  }
  if (cell.name.empty()) cell.name = study.base_name.empty() ? "base" : study.base_name;
  if (!study.branches.empty()) {
    cell.settings.emplace_back(kCoolsDown);
  }
  return cell;
}

/// An override of the schedule drops what only the one before had, and what the schedules give another default.
Json without_schedule(Json config, const std::vector<std::string>& settings) {
  if (std::find(settings.begin(), settings.end(), kCoolsDown) == settings.end() || !config.contains("training")) return config;
  if (config["training"].value("schedule", "") != "wsd") config["training"].erase("min_lr_ratio");
  return config;
}

RunConfig parse_cell(const StudyCell& cell, std::vector<std::string> settings, const std::string& origin) {
  settings.insert(settings.begin(), cell.settings.begin(), cell.settings.end());
  return parse_config(without_schedule(cell.base, settings).dump(), origin, settings);
}

/// Where the study's branches begin, of a config whose batches are known: tokens become steps.
std::vector<std::string> branch_settings(const Study& study, const TrainingConfig& training) {
  std::vector<std::string> settings;
  Json steps = Json::array(), losses = Json::array();
  for (const StudyBranch& branch : study.branches) {
    if (branch.at == StudyBranch::At::loss) losses.push_back(branch.value);
    if (branch.at == StudyBranch::At::step) steps.push_back(branch.value);
    if (branch.at == StudyBranch::At::tokens) steps.push_back(step_at_tokens(training, branch.value));
  }
  settings.push_back("training.cooldown_at=" + steps.dump());
  if (!losses.empty()) settings.push_back("training.cooldown_at_loss=" + losses.dump());
  return settings;
}

/// The same with the study's branches; a mistake is told with its place in the study's file.
RunConfig parse_cell(const Study& study, const StudyCell& cell, std::vector<std::string> settings, const std::string& origin) try {
  const bool branches = std::find(cell.settings.begin(), cell.settings.end(), kCoolsDown) != cell.settings.end();
  RunConfig config = parse_cell(cell, settings, origin);
  if (study.branches.empty() || !branches) return config;
  for (std::string& setting : branch_settings(study, config.training)) settings.push_back(std::move(setting));
  return parse_cell(cell, settings, origin);
} catch (const UsageError& error) {
  std::vector<std::string> all = cell.settings;
  all.insert(all.end(), settings.begin(), settings.end());
  all.insert(all.end(), {"training.cooldown_at=", "training.cooldown_at_loss="});
  throw UsageError(blamed(study, all, error.what()));
}

std::string last_part(const std::string& setting) { return setting.substr(setting.rfind('.') + 1); }

std::string shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  return name.substr(0, kLongestName - 13) + "-" + hex(sha256(name)).substr(0, 12);
}

}  // namespace

std::string StudyCell::architecture() const { return architecture_title(parse_cell(*this, {}, "study, " + name).architecture); }

std::vector<StudyCell> study_cells(const Study& study) {
  std::vector<StudyCell> cells;
  for (const std::vector<size_t>& at : combinations(study.axes)) cells.push_back(make_cell(study, at));
  if (!study.equal) return cells;
  StudyCell reference = cells.front();
  if (!study.equal->to.empty()) reference.base = preset_config(study.equal->to), reference.settings = study.settings;
  const RunConfig goal = parse_cell(study, reference, {}, "study, " + reference.name);
  for (StudyCell& cell : cells) {
    const auto parse = [&](const std::vector<std::string>& more) { return parse_cell(study, cell, more, "study, " + cell.name); };
    Json written = cell.base;
    for (const std::string& setting : cell.settings) apply_override(written, setting);
    const EqualSolution solved = solve_equal(*study.equal, goal, {cell.name, std::move(written), parse});
    cell.settings.insert(cell.settings.end(), solved.settings.begin(), solved.settings.end());
    cell.short_of = solved.short_of;
  }
  return cells;
}

StudyRun study_run(const Study& study, const std::vector<StudyCell>& cells, size_t cell, std::optional<double> tuned, int64_t seed) {
  StudyRun run;
  run.cell = cell, run.tuned = tuned, run.seed = seed;
  std::string title = cells[cell].name;
  run.name = title;
  std::vector<std::string> settings{"training.seed=" + std::to_string(seed)};
  if (tuned) {
    settings.push_back(study.tuning->setting + "=" + plain_number(*tuned));
    run.name += "_" + last_part(study.tuning->setting) + "-" + plain_number(*tuned);
    title += ", " + last_part(study.tuning->setting) + " " + plain_number(*tuned);
  }
  run.name = shortened(run.name + "_seed-" + std::to_string(seed));
  run.config = parse_cell(study, cells[cell], settings, "study, run " + run.name);
  run.config.name = title.substr(0, kLongestName);
  run.identity = run_identity(run.config);
  return run;
}

std::string run_identity(const RunConfig& config) {
  Json resolved = to_json(config);
  for (const char* key : {"name", "description", "threads"}) resolved.erase(key);
  resolved["training"]["final_evaluation_tokens"] = 0;  // what is measured of the finished model; 0 was the default of earlier versions
  return hex(sha256(resolved.dump()));
}

std::string run_identity(const Json& config) { return run_identity(resolve_config(config, "run.json")); }

}  // namespace saccade
