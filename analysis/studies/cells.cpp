#include "analysis/studies/cells.h"

#include <algorithm>
#include <set>

#include "analysis/comparison/tuning.h"
#include "analysis/studies/equal.h"
#include "kernels/engine/error.h"
#include "models/architectures/registry.h"
#include "models/config/presets.h"
#include "models/config_text.h"
#include "models/corpus/sha256.h"

namespace saccade {

using Json = nlohmann::json;

namespace {

constexpr size_t kLongestName = 160;

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
    cell.settings.emplace_back("training.schedule=wsd");
    cell.settings.push_back("training.cooldown_at=" + Json(study.branches).dump());
  }
  return cell;
}

/// An override of the schedule drops what only the one before had, and what the schedules give another default.
Json without_schedule(Json config, const std::vector<std::string>& settings) {
  if (std::find(settings.begin(), settings.end(), "training.schedule=wsd") == settings.end() || !config.contains("training")) return config;
  if (config["training"].value("schedule", "") != "wsd") config["training"].erase("min_lr_ratio");
  return config;
}

RunConfig parse_cell(const StudyCell& cell, std::vector<std::string> settings, const std::string& origin) {
  settings.insert(settings.begin(), cell.settings.begin(), cell.settings.end());
  return parse_config(without_schedule(cell.base, settings).dump(), origin, settings);
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
  const RunConfig goal = parse_cell(reference, {}, "study, " + reference.name);
  for (StudyCell& cell : cells) {
    const auto parse = [&](const std::vector<std::string>& more) { return parse_cell(cell, more, "study, " + cell.name); };
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
  run.config = parse_cell(cells[cell], settings, "study, run " + run.name);
  run.config.name = title.substr(0, kLongestName);
  run.identity = run_identity(run.config);
  return run;
}

std::string run_identity(const RunConfig& config) {
  Json resolved = to_json(config);
  for (const char* key : {"name", "description", "threads"}) resolved.erase(key);
  return hex(sha256(resolved.dump()));
}

std::string run_identity(const Json& config) { return run_identity(resolve_config(config, "run.json")); }

}  // namespace saccade
