#pragma once
#include "analysis/studies/study.h"

namespace saccade {

/// One point of a study's grid: what is compared with the others.
struct StudyCell {
  std::string name;                            ///< what differs: "window-64", "transformer-pp-tiny_window-64"
  std::vector<std::string> labels;             ///< of each axis
  std::vector<std::optional<double>> numbers;  ///< of each axis, where its values are numbers
  nlohmann::json base;                         ///< the config as written
  std::vector<std::string> settings;           ///< assignments over it, later ones count; with what was solved for

  std::string short_of = {};  ///< of what is to be equal, in words; empty where it is reached

  std::string architecture() const;  ///< title of its architecture: "Transformer++ window 64"
};

/// A run that a study wants.
struct StudyRun {
  size_t cell = 0;
  std::optional<double> tuned;  ///< the value of the tuned setting
  int64_t seed = 1;
  std::string name;  ///< of its folder
  RunConfig config;
  std::string identity;  ///< run_identity()
};

/// The grid in the order of its axes, the last one fastest. Solves for what is held equal. Throws UsageError, DataError naming the cell.
std::vector<StudyCell> study_cells(const Study& study);

/// Throws UsageError naming the study's file, the place of the setting there, and the run.
StudyRun study_run(const Study& study, const std::vector<StudyCell>& cells, size_t cell, std::optional<double> tuned, int64_t seed);

/// SHA-256 of the resolved config without its name, description, number of threads and final evaluation: runs that share it would have the
/// same journal.
/// `config` may have been stored by an earlier version. Throws UsageError.
std::string run_identity(const nlohmann::json& config);
std::string run_identity(const RunConfig& config);

}  // namespace saccade
