#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/runs/column.h"
#include "analysis/runs/run_notes.h"
#include "analysis/runs/run_records.h"
#include "models/json.h"

namespace saccade {

/// One measured quantity over a run. All vectors have equal length; NaN is kept as NaN.
struct Series {
  std::string name;  ///< "train/loss", "validation/loss/prose", "ood/loss/c", "ood/loss" (mean), "gradient_norm",
                     ///< "learning_rate", "tokens_per_second", "device_memory", "process_memory", "entropy/layer0" (mean over heads),
                     ///< "captured_mass/layer2" …
  std::string unit;  ///< nats, 1, tokens/s …
  Column step, tokens, flops, seconds, value;
  Column error = {};  ///< standard errors of the values, NaN where not known; empty where none is
};

/// What stands in run.json, and what can be told from outside.
struct RunInfo {
  std::filesystem::path directory;
  std::string name, title;  ///< title: of the architecture, as legends call it
  RunState state = RunState::created;
  nlohmann::json config;      ///< resolved, with today's names of settings
  nlohmann::json provenance;  ///< code version, device, libraries, corpus and tokenizer hash, parameters, host …
  int64_t parameters = 0, seed = 0, steps = 0, step = 0;
  std::string message;         ///< why it failed or diverged, one line
  int64_t records = -1;        ///< in the journal when run.json was written; −1: not known (of earlier versions)
  bool edited = false;         ///< run.json is not as it was written: its CRC-32C differs; earlier versions wrote none
  bool config_edited = false;  ///< the config is not the one that the provenance has the hash of
  std::string host = {};       ///< that the run is mirrored from; empty: it is of this machine
  std::string as_of = {};      ///< of a mirrored run at work: UTC when its host was last heard of, if it is not connected now
  std::string old_names;       ///< settings that run.json has under names of an earlier version, in one line; empty when there are none
};

/// How much of a run is read.
struct RunDetail {
  /// More steps than these are thinned: of equally long stretches the least and the greatest value stay, at their own places; the means of
  /// the stretches are the series "NAME/mean". 0: all values.
  size_t most_points = 0;
  /// Only what run.json and the end of the journal say, for a list: the last values without their past.
  bool outline = false;
  /// For who follows a run: so many seconds what seems lost may be on its way, from another machine by a network file system or as a copy
  /// that is renewed again and again: a bad line at the journal's end, records or a journal that run.json knows of. At most 5 where the
  /// run's writer was a process of this machine. 0: what is not there is lost.
  double patience = 0;
};

/// A run directory, read only; follows a live one from its journal. Never waits, never locks, never writes. A copy shares the numbers read
/// so far, so that one thread may go on reading its copy while others look at theirs.
class Run {
 public:
  /// Throws DataError when the directory is no run.
  explicit Run(const std::filesystem::path& directory, const RunDetail& detail = {});
  ~Run();
  Run(const Run&);
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;

  /// Reads what has come since; true when anything changed.
  bool poll();
  /// Whether poll() might find something new: run.json, the journal or its process are not as they were. Reads no file.
  bool outdated() const;
  const RunDetail& detail() const;
  const RunInfo& info() const;
  /// As its user called it, else its folder's.
  std::string name() const;
  /// experiment_of() its config, with the precision it computed in ("auto" where that is not recorded).
  const nlohmann::json& experiment() const;
  /// The same as text: what repetitions of one experiment have in common.
  const std::string& setting() const;
  /// Why the run does not stand as it was recorded last, in one line: the journal is missing, ends too early, or is damaged at its end.
  /// saccade resume mends it as far as the checkpoints reach. Empty when all is well. As of the last poll().
  std::string damage() const;
  /// Whether something seems lost that may be on its way yet; damage() does not tell it then. As of the last poll().
  bool waits() const;
  /// What the journal lost further on, in one line: the series have gaps there, for ever; and whether run.json was changed since it was
  /// written. Empty when it lost nothing.
  std::string lost() const;
  /// Star, tags and note; empty with notes_problem() where notes.json cannot be read.
  const RunNotes& notes() const;
  const std::string& notes_problem() const;
  /// Reads them anew, and nothing else.
  void poll_notes();
  const std::vector<Series>& series() const;
  const Series* find(const std::string& series_name) const;
  /// The last statistics record with all heads (entropy matrix …), if any.
  const std::optional<StatisticsRecord>& last_statistics() const;
  /// The last losses by domain and position, if any.
  const std::optional<EvaluationRecord>& last_evaluation() const;
  std::vector<std::string> ood_domains() const;
  /// Where the training loss was NaN or infinite, thinned or not: the beginnings, at most a thousand. A run that diverged ends in one.
  const std::vector<LossGap>& loss_gaps() const;
  /// Of tasks that were evaluated: one for each task and step, the one that is preferred (is_preferred) of those with different options.
  const std::vector<TaskScoreRecord>& task_scores() const;
  /// From now to the last step of a run at work, at the pace of its steps while this followed it, evaluation and checkpoints
  /// included; before any was seen, at that of its training alone. NaN when nothing tells the pace.
  double seconds_left() const;
  /// Trained tokens by seconds of training, over the whole run, evaluation apart. NaN before the first step.
  double tokens_per_second() const;
  /// Values of a series at training steps `low` to `high`, all of them, read from the journal where they had been thinned. Throws
  /// DataError.
  Series exact(const std::string& series_name, double low, double high) const;

  /// Steps at which captures exist, ascending; samples in each are read on demand. Throws DataError.
  std::vector<int64_t> capture_steps() const;
  std::vector<Capture> captures(int64_t step) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Run directories below `folder`, one level deep with their cooldown branches, those mirrored there from hosts, and the folder itself,
/// newest first; what looks like a run and cannot be read (or lacks run.json) is skipped with a message each.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder, std::vector<std::string>* problems = nullptr);

}  // namespace saccade
