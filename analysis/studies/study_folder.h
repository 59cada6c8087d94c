#pragma once
#include <functional>
#include <map>

#include "analysis/comparison/tuning.h"
#include "analysis/studies/cells.h"
#include "analysis/studies/run_summaries.h"

namespace saccade {

/// STUDY/state.json: what the user asked for besides the study file, and what could not be run.
struct StudyState {
  std::optional<double> budget_hours;          ///< of training, all runs together
  std::optional<int64_t> most_runs;            ///< begun at most
  bool stopped = false;                        ///< by saccade study stop, until it is resumed
  std::vector<std::string> devices;            ///< of this machine that its runs are spread over; empty: the one its configs name
  std::map<std::string, std::string> gave_up;  ///< runs that failed or were stopped by hand, and why: not tried again until resumed
  std::string left_queue;                      ///< why a queue of this machine let it go, where it could not go on; until resumed
  std::map<std::string, std::vector<int64_t>> more_seeds;  ///< of cells, by name, besides the study's
  std::vector<double> more_values;                         ///< of the search, besides the study's
};

/// Makes STUDY with study.json, state.json and runs/, or takes the one that stands there: its study file is then replaced by `study`'s, so
/// that a grid that was extended adds runs. Throws UsageError when the folder holds something else, or a study by another name.
void create_study_folder(const std::filesystem::path& directory, const Study& study);
/// Makes what is missing of STUDY/runs, configs and logs: of a study that was copied without them.
void make_study_folders(const std::filesystem::path& directory);
bool holds_study(const std::filesystem::path& directory);
/// Where the runs of a folder stand that somebody names: STUDY/runs of a study, else the folder itself.
std::filesystem::path runs_below(const std::filesystem::path& folder);
/// The study that a run of it stands in, if any: STUDY of STUDY/runs/RUN, or of a branch of that.
std::optional<std::filesystem::path> study_of_run(const std::filesystem::path& run);
Study read_study_folder(const std::filesystem::path& directory);

StudyState read_study_state(const std::filesystem::path& directory);
/// Changes state.json under its lock.
void edit_study_state(const std::filesystem::path& directory, const std::function<void(StudyState&)>& change);

/// A run that a study wants, and how far it is.
struct WantedRun {
  enum class Status { open, live, unfinished, finished, diverged, gave_up };
  StudyRun run;
  Status status = Status::open;
  std::optional<RunSummary> there;  ///< the run of its identity
  std::string name;                 ///< of the run's folder, which may be older than the name that the grid gives today
  std::string problem;              ///< why it was given up
  bool unreadable = false;          ///< for what stands in its folder cannot be read: only removing that lets it be trained
};
const char* to_string(WantedRun::Status status);

struct CellView {
  Tuning tuning;               ///< State::open until all its values ended
  std::vector<size_t> wanted;  ///< indices into StudyView::wanted
  std::vector<int64_t> seeds;  ///< the study's, then those that were added
};

/// A study as it stands now.
struct StudyView {
  std::filesystem::path directory;
  Study study;
  StudyState state;
  std::vector<StudyCell> cells;
  std::vector<CellView> views;    ///< of the cells
  std::vector<WantedRun> wanted;  ///< cell by cell, the tuning runs of a cell first
  int64_t later = 0;              ///< seeds that follow once the best values are known
  int64_t begun = 0;              ///< run folders that there are
  double seconds = 0;             ///< of training so far
  std::vector<std::string> problems;

  bool complete() const;
  /// Why nothing more is started although runs are missing: budget, limit, given up; empty where something can be.
  std::string blocked() const;
  /// What can be started or taken up now, in order.
  std::vector<const WantedRun*> ready() const;
};
StudyView view_study(const std::filesystem::path& directory);
/// The same for given summaries: of a study that has no folder yet. `unreadable` as run_summaries() tells it.
StudyView view_study(const Study& study, std::vector<RunSummary> runs, const StudyState& state = {},
                     const std::map<std::string, std::string>& unreadable = {});

/// Adds `count` seeds to each of these cells (by name; none: to all): the smallest from 1 on that a cell does not have, so that cells with
/// as many seeds have the same ones, and pair. What every cell got. Throws UsageError on a name that no cell has.
std::map<std::string, std::vector<int64_t>> add_seeds(const std::filesystem::path& directory, int64_t count,
                                                      const std::vector<std::string>& cells);

/// Adds values to a study's search, for every cell; none: for each cell whose best value is at an edge the next one beyond it. What came
/// in, ascending. Throws UsageError where nothing is searched, a value is not positive or is there already, or no cell is at an edge.
std::vector<double> add_values(const std::filesystem::path& directory, std::vector<double> values);

/// What the study that made a run says of its tuning; Tuning::State::unknown without one. What a study says is kept for half a minute.
std::function<Tuning(const Run&)> tuning_by_study();

}  // namespace saccade
