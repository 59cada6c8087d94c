#include "analysis/studies/study_folder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <set>

#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/sealed_json.h"
#include "analysis/studies/file_lock.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/suggest.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* kStudyFile = "study.json";
constexpr const char* kStateFile = "state.json";

Json to_json(const StudyState& state, const std::string& name) {
  Json object{{"format_version", 1}, {"name", name}, {"gave_up", state.gave_up}, {"stopped", state.stopped}};
  if (state.budget_hours) object["budget_hours"] = *state.budget_hours;
  if (state.most_runs) object["most_runs"] = *state.most_runs;
  if (!state.left_queue.empty()) object["left_queue"] = state.left_queue;
  if (!state.devices.empty()) object["devices"] = state.devices;
  if (!state.more_seeds.empty()) object["more_seeds"] = state.more_seeds;
  if (!state.more_values.empty()) object["more_values"] = state.more_values;
  return object;
}

Json read_state_json(const fs::path& directory) {
  const fs::path file = directory / kStateFile;
  std::error_code none;
  if (!fs::exists(file, none)) return Json::object();
  return read_sealed_json(file);
}

StudyState state_from(const Json& object, const fs::path& directory) try {
  StudyState state;
  if (object.contains("budget_hours")) state.budget_hours = object.at("budget_hours").get<double>();
  if (object.contains("most_runs")) state.most_runs = object.at("most_runs").get<int64_t>();
  if (object.contains("stopped")) state.stopped = object.at("stopped").get<bool>();
  if (object.contains("devices")) state.devices = object.at("devices").get<std::vector<std::string>>();
  if (object.contains("left_queue")) state.left_queue = object.at("left_queue").get<std::string>();
  if (object.contains("more_seeds")) state.more_seeds = object.at("more_seeds").get<std::map<std::string, std::vector<int64_t>>>();
  if (object.contains("more_values")) state.more_values = object.at("more_values").get<std::vector<double>>();
  if (object.contains("gave_up")) state.gave_up = object.at("gave_up").get<std::map<std::string, std::string>>();
  return state;
} catch (const Json::exception&) {
  throw DataError((directory / kStateFile).string() + " is damaged");
}

std::string stored_name(const fs::path& directory) {
  const Json name = read_state_json(directory).value("name", Json(directory.filename().string()));
  if (!name.is_string()) throw DataError((directory / kStateFile).string() + " is damaged");
  return name;
}

void write_state(const fs::path& directory, const StudyState& state, const std::string& name) {
  write_sealed_json(directory / kStateFile, to_json(state, name));
}

WantedRun::Status status_of(const WantedRun& wanted) {
  using Status = WantedRun::Status;
  if (!wanted.there) return wanted.problem.empty() ? Status::open : Status::gave_up;
  if (wanted.there->live) return Status::live;
  if (wanted.there->state == RunState::finished) return Status::finished;
  if (wanted.there->state == RunState::diverged) return Status::diverged;
  return wanted.problem.empty() ? Status::unfinished : Status::gave_up;
}

bool has_ended(const WantedRun& wanted) {
  return wanted.status == WantedRun::Status::finished || wanted.status == WantedRun::Status::diverged;
}

/// The validation loss that a value is judged by: a run that diverged is worse than any other.
double judged_loss(const WantedRun& wanted) {
  const double loss = wanted.status == WantedRun::Status::diverged ? INFINITY : wanted.there->end.validation;
  return std::isnan(loss) ? INFINITY : loss;
}

/// Makes the list of wanted runs, cell by cell.
class Viewer {
 public:
  Viewer(StudyView& view, const std::vector<RunSummary>& runs, const std::map<std::string, std::string>& unreadable)
      : view_(view), unreadable_(unreadable) {
    for (const RunSummary& run : runs) {
      names_.insert(run.name);
      if (!run.identity.empty()) by_identity_.emplace(run.identity, &run);
      view.seconds += std::isfinite(run.seconds) ? run.seconds : 0;
    }
    view.begun = static_cast<int64_t>(runs.size());
  }

  void view_cell(size_t cell) {
    view_.views.emplace_back();
    std::vector<int64_t>& seeds = view_.views.back().seeds;
    seeds = view_.study.seeds;
    if (const auto more = view_.state.more_seeds.find(view_.cells[cell].name); more != view_.state.more_seeds.end())
      std::copy_if(more->second.begin(), more->second.end(), std::back_inserter(seeds),
                   [&](int64_t seed) { return std::find(seeds.begin(), seeds.end(), seed) == seeds.end(); });
    if (!view_.study.tuning) {
      for (const int64_t seed : seeds) want(cell, {}, seed);
      view_.views.back().tuning = without_search();
      return;
    }
    const StudyTuning& search = *view_.study.tuning;
    std::vector<TriedValue> tried;
    bool all = true;
    const auto try_value = [&](double value) {
      double mean = 0;
      bool ended = true;
      for (const int64_t seed : search.seeds) {
        const WantedRun& wanted = view_.wanted[want(cell, value, seed)];
        ended = ended && has_ended(wanted);
        if (ended) mean += judged_loss(wanted) / static_cast<double>(search.seeds.size());
      }
      if (ended) tried.push_back({value, mean});
      all = all && ended;
    };
    for (const double value : search.values) try_value(value);
    Tuning tuning = judge_tuning(search.setting, tried);
    while (all && search.extend && may_extend(tuning)) {
      try_value(*tuning.extend);
      tuning = judge_tuning(search.setting, tried);
    }
    if (!all) tuning.state = Tuning::State::open, tuning.extend.reset();
    if (all && tuning.best)
      for (const int64_t seed : seeds) want(cell, tuning.best, seed);
    else if (!all)
      view_.later += std::count_if(seeds.begin(), seeds.end(), [&](int64_t seed) {
        return std::find(search.seeds.begin(), search.seeds.end(), seed) == search.seeds.end();
      });
    view_.views.back().tuning = tuning;
  }

 private:
  bool may_extend(const Tuning& tuning) const {
    const StudyTuning& search = *view_.study.tuning;
    return tuning.best && tuning.extend && *tuning.extend >= search.smallest && *tuning.extend <= search.largest;
  }

  Tuning without_search() const {
    Tuning tuning{Tuning::State::untuned, "training.learning_rate", {}, {}, {}};
    for (const size_t at : view_.views.back().wanted) {
      const double rate = view_.wanted[at].run.config.training.learning_rate;
      if (tuning.tried.empty()) tuning.tried = {{rate, std::nan("")}}, tuning.best = rate;
    }
    return tuning;
  }

  /// The place of a run in the list, once for each identity.
  size_t want(size_t cell, std::optional<double> tuned, int64_t seed) {
    StudyRun run = study_run(view_.study, view_.cells, cell, tuned, seed);
    std::vector<size_t>& mine = view_.views.back().wanted;
    if (const auto known = placed_.find(run.identity); known != placed_.end()) {
      if (std::find(mine.begin(), mine.end(), known->second) == mine.end()) mine.push_back(known->second);
      return known->second;
    }
    WantedRun wanted;
    const auto there = by_identity_.find(run.identity);
    if (there != by_identity_.end()) wanted.there = *there->second;
    wanted.name = wanted.there ? wanted.there->name : free_name(run.name);
    if (const auto problem = view_.state.gave_up.find(wanted.name); problem != view_.state.gave_up.end()) wanted.problem = problem->second;
    if (const auto bad = unreadable_.find(wanted.name); !wanted.there && bad != unreadable_.end())
      wanted.unreadable = true, wanted.problem = bad->second;
    wanted.run = std::move(run);
    wanted.status = status_of(wanted);
    const size_t place = view_.wanted.size();
    placed_[wanted.run.identity] = place;
    view_.wanted.push_back(std::move(wanted));
    mine.push_back(place);
    return place;
  }

  /// A name that no run of another config has.
  std::string free_name(const std::string& name) {
    std::string free = name;
    for (int i = 2; !names_.insert(free).second; ++i) free = name + "_" + std::to_string(i);
    return free;
  }

  StudyView& view_;
  const std::map<std::string, std::string>& unreadable_;
  std::map<std::string, const RunSummary*> by_identity_;
  std::map<std::string, size_t> placed_;
  std::set<std::string> names_;
};

}  // namespace

bool holds_study(const fs::path& directory) {
  std::error_code none;
  return fs::exists(directory / kStudyFile, none);
}

namespace {

/// Nothing is in it, or only what a start leaves that was cut short: study.json is written last.
bool can_become_study(const fs::path& directory) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename().string();
    const bool folder = name == "runs" || name == "configs" || name == "logs";
    const bool file = name == "lock" || name == kStateFile || is_aside(name, kStateFile) || is_aside(name, kStudyFile);
    if (!file && !(folder && fs::is_empty(entry.path(), none))) return false;
  }
  return true;
}

}  // namespace

void create_study_folder(const fs::path& directory, const Study& study) {
  std::error_code none;
  if (fs::exists(directory, none) && !holds_study(directory) && !can_become_study(directory))
    throw UsageError(directory.string() + " holds something else than a study; expected a new or empty folder");
  if (holds_study(directory) && stored_name(directory) != study.name)
    throw UsageError(directory.string() + " holds the study " + stored_name(directory) + "; expected another folder for " + study.name);
  make_folders_above(directory);
  make_run_folder(directory);
  make_study_folders(directory);
  const FileLock lock(directory / "lock");
  remove_abandoned_files(directory);
  if (!fs::exists(directory / kStateFile, none)) write_state(directory, {}, study.name);
  replace_text(directory / kStudyFile, study.file.dump(2) + "\n");
}

void make_study_folders(const fs::path& directory) {
  for (const char* folder : {"runs", "configs", "logs"}) make_run_folder(directory / folder);
}

fs::path runs_below(const fs::path& folder) { return holds_study(folder) ? folder / "runs" : folder; }

std::optional<fs::path> study_of_run(const fs::path& run) {
  fs::path at = fs::absolute(run).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  if (at.parent_path().filename() == "branches") at = at.parent_path().parent_path();
  if (at.parent_path().filename() != "runs") return {};
  const fs::path study = at.parent_path().parent_path();
  return holds_study(study) ? std::optional(study) : std::nullopt;
}

Study read_study_folder(const fs::path& directory) {
  if (!holds_study(directory)) throw DataError(directory.string() + " is no study: it has no study.json");
  const fs::path file = directory / kStudyFile;
  return parse_study(read_text(file), file.string(), stored_name(directory));
}

StudyState read_study_state(const fs::path& directory) { return state_from(read_state_json(directory), directory); }

void edit_study_state(const fs::path& directory, const std::function<void(StudyState&)>& change) {
  const FileLock lock(directory / "lock");
  StudyState state = read_study_state(directory);
  change(state);
  write_state(directory, state, stored_name(directory));
}

const char* to_string(WantedRun::Status status) {
  switch (status) {
    case WantedRun::Status::open: return "to do";
    case WantedRun::Status::live: return "running";
    case WantedRun::Status::unfinished: return "unfinished";
    case WantedRun::Status::finished: return "finished";
    case WantedRun::Status::diverged: return "diverged";
    case WantedRun::Status::gave_up: return "given up";
  }
  return "";
}

namespace {

/// Adds numbers that are not there; the list stays ascending.
void join(std::vector<double>& values, const std::vector<double>& more) {
  values.insert(values.end(), more.begin(), more.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

StudyView view_study(const Study& study, std::vector<RunSummary> runs, const StudyState& state,
                     const std::map<std::string, std::string>& unreadable) {
  StudyView view;
  view.study = study;
  view.state = state;
  if (view.study.tuning) join(view.study.tuning->values, state.more_values);
  view.cells = study_cells(study);
  Viewer viewer(view, runs, unreadable);
  for (size_t cell = 0; cell < view.cells.size(); ++cell) viewer.view_cell(cell);
  return view;
}

StudyView view_study(const fs::path& directory) {
  std::map<std::string, std::string> unreadable;
  const Study study = read_study_folder(directory);
  std::vector<RunSummary> runs = run_summaries(directory, &unreadable);
  StudyView view = view_study(study, std::move(runs), read_study_state(directory), unreadable);
  view.directory = directory;
  for (WantedRun& wanted : view.wanted)
    if (wanted.unreadable)
      unreadable[wanted.name] = wanted.problem += "; where nothing mends it, remove the folder " +
                                                  (directory / "runs" / wanted.name).string() +
                                                  ", and saccade study resume trains the run anew";
  for (auto& [name, problem] : unreadable) view.problems.push_back(std::move(problem));
  return view;
}

std::map<std::string, std::vector<int64_t>> add_seeds(const fs::path& directory, int64_t count, const std::vector<std::string>& cells) {
  const StudyView view = view_study(directory);
  std::vector<std::string> known;
  for (const StudyCell& cell : view.cells) known.push_back(cell.name);
  for (const std::string& name : cells)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("the study has no cell \"" + name + "\"" + did_you_mean(name, known));
  std::map<std::string, std::vector<int64_t>> added;
  for (size_t i = 0; i < view.cells.size(); ++i) {
    if (!cells.empty() && std::find(cells.begin(), cells.end(), known[i]) == cells.end()) continue;
    const std::set<int64_t> has(view.views[i].seeds.begin(), view.views[i].seeds.end());
    for (int64_t seed = 1; static_cast<int64_t>(added[known[i]].size()) < count; ++seed)
      if (!has.contains(seed)) added[known[i]].push_back(seed);
  }
  edit_study_state(directory, [&](StudyState& state) {
    for (const auto& [name, seeds] : added) state.more_seeds[name].insert(state.more_seeds[name].end(), seeds.begin(), seeds.end());
  });
  return added;
}

std::vector<double> add_values(const fs::path& directory, std::vector<double> values) {
  const StudyView view = view_study(directory);
  if (!view.study.tuning) throw UsageError(directory.string() + " searches no setting, so there are no values to add to");
  const std::vector<double>& known = view.study.tuning->values;
  for (const double value : values)
    if (!(value > 0) || std::find(known.begin(), known.end(), value) != known.end())
      throw UsageError("the value " + plain_number(value) + " of " + view.study.tuning->setting +
                       (value > 0 ? " is among those that are tried already" : " is none; expected a positive number"));
  if (values.empty())
    for (const CellView& cell : view.views)
      if (cell.tuning.extend) values.push_back(*cell.tuning.extend);
  if (values.empty())
    throw UsageError(directory.string() + ": no cell's best value is known to be at an edge; say which values are to be tried");
  std::vector<double> added;
  join(added, values);
  edit_study_state(directory, [&](StudyState& state) { join(state.more_values, added); });
  return added;
}

bool StudyView::complete() const { return later == 0 && std::all_of(wanted.begin(), wanted.end(), has_ended); }

std::vector<const WantedRun*> StudyView::ready() const {
  std::vector<const WantedRun*> list;
  const bool spent = state.budget_hours && seconds >= *state.budget_hours * 3600;
  int64_t may_begin = state.most_runs ? *state.most_runs - begun : std::numeric_limits<int64_t>::max();
  for (const WantedRun& one : wanted) {
    if (spent) break;
    if (one.status == WantedRun::Status::unfinished) list.push_back(&one);
    if (one.status == WantedRun::Status::open && may_begin-- > 0) list.push_back(&one);
  }
  return list;
}

std::string StudyView::blocked() const {
  if (complete() || !ready().empty()) return "";
  if (std::any_of(wanted.begin(), wanted.end(), [](const WantedRun& w) { return w.status == WantedRun::Status::live; })) return "";
  if (state.budget_hours && seconds >= *state.budget_hours * 3600)
    return "the budget of " + plain_number(*state.budget_hours) + " h is used up";
  if (state.most_runs && begun >= *state.most_runs &&
      std::any_of(wanted.begin(), wanted.end(), [](const WantedRun& w) { return w.status == WantedRun::Status::open; }))
    return "the limit of runs is reached";
  const auto unreadable = std::count_if(wanted.begin(), wanted.end(), [](const WantedRun& w) { return w.unreadable; });
  const auto failed =
      std::count_if(wanted.begin(), wanted.end(), [](const WantedRun& w) { return w.status == WantedRun::Status::gave_up; }) - unreadable;
  std::string text;
  if (failed > 0)
    text = failed == 1 ? "1 run was given up; saccade study resume tries it again"
                       : std::to_string(failed) + " runs were given up; saccade study resume tries them again";
  if (unreadable > 0)
    text +=
        (text.empty() ? "" : "; ") +
        (unreadable == 1 ? "what stands in the folder of 1 run" : "what stands in the folders of " + std::to_string(unreadable) + " runs") +
        " cannot be read, which saccade study status tells of";
  return text;
}

namespace {

/// The folder in STUDY/runs that a run, or a branch of it, stands in.
std::string run_folder_name(const fs::path& directory) {
  fs::path folder = fs::absolute(directory).lexically_normal();
  if (folder.parent_path().filename() == "branches") folder = folder.parent_path().parent_path();
  return folder.filename().string();
}

/// What each run's cell says of the value that the run has, read anew after half a minute.
struct KnownTunings {
  std::map<std::string, Tuning> by_run;
  std::chrono::steady_clock::time_point read;
};

KnownTunings tunings_of(const fs::path& study) {
  KnownTunings known{{}, std::chrono::steady_clock::now()};
  try {
    const StudyView view = view_study(study);
    for (const CellView& cell : view.views)
      for (const size_t place : cell.wanted) {
        const WantedRun& wanted = view.wanted[place];
        known.by_run[wanted.name] = wanted.run.tuned ? of_value(cell.tuning, *wanted.run.tuned) : cell.tuning;
      }
  } catch (const Error&) {  // a study that cannot be read says nothing
  }
  return known;
}

}  // namespace

std::function<Tuning(const Run&)> tuning_by_study() {
  auto studies = std::make_shared<std::map<fs::path, KnownTunings>>();
  return [studies](const Run& run) -> Tuning {
    const auto study = study_of_run(run.info().directory);
    if (!study) return {};
    const auto [known, missing] = studies->try_emplace(*study);
    if (missing || std::chrono::steady_clock::now() - known->second.read > std::chrono::seconds(30)) known->second = tunings_of(*study);
    const std::map<std::string, Tuning>& by_run = known->second.by_run;
    const auto at = by_run.find(run_folder_name(run.info().directory));
    return at == by_run.end() ? Tuning{} : at->second;
  };
}

}  // namespace saccade
