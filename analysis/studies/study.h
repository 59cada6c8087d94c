#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/studies/study_tasks.h"
#include "models/config/config.h"
#include "models/json.h"

namespace saccade {

/// One dimension of a study's grid.
struct StudyAxis {
  struct Value {
    std::string label;                  ///< in names and tables: "window-64"
    std::string base;                   ///< a preset in place of the study's; may be empty
    std::vector<std::string> settings;  ///< "architecture.window=64"
    std::optional<double> number = {};  ///< of a setting's numeric value
  };
  std::string name;     ///< what tables call it: "window", "base", or as given
  std::string setting;  ///< "architecture.window"; empty for cases and bases
  std::vector<Value> values;
};

/// The search for the best value of one setting, by the validation loss at the end of a run, the mean over seeds where it has several.
struct StudyTuning {
  std::string setting;
  std::vector<double> values;        ///< ascending
  std::vector<int64_t> seeds;        ///< each value is trained with all of them
  bool extend = false;               ///< while the best value is at an edge, try the next one
  double smallest = 0, largest = 0;  ///< how far to extend
};

/// What the runs of a study have in common, and which settings are solved for that.
struct StudyEqual {
  /// Seconds are not solved for: the report reads losses at those of the run that took least.
  enum class What { parameters, state, flops, tokens, seconds };
  What what = What::parameters;
  std::vector<std::string> by;  ///< integer settings of the architecture, coarse to fine; for parameters and state
  std::string to;               ///< a preset, or empty: the study's first cell
};

/// Where a cooldown branch begins.
struct StudyBranch {
  enum class At { step, tokens, loss };
  At at = At::step;
  double value = 0;  ///< a step or, below 1, a share of all; tokens trained on; a validation loss, nats per token
  bool operator==(const StudyBranch&) const = default;
};

/// What reports evaluate besides what the runs recorded.
struct StudyEvaluation {
  static constexpr int64_t kAsErrorAsks = -1;  ///< of a study that says nothing of it
  std::string split = "validation";            ///< validation or test
  /// Of every domain, to begin with; kAsErrorAsks: of text, and where rows are compared, what the runs evaluated at their ends; 0: nothing
  /// is evaluated anew.
  int64_t tokens = kAsErrorAsks;
  int64_t length = 0;           ///< of the sequences, in tokens; 0: the one that each run was trained with
  double paired_error = 0.005;  ///< nats: tokens are added until differences are as exact, or the split ends; 0: they are not
};
/// Whether the losses that a run recorded while it trained are of sequences of the length that its report evaluates.
bool evaluated_as_recorded(const StudyEvaluation& evaluation, const DataConfig& data);

/// A study file: a question, a grid of configs, and what decides. Never changed by what came out.
struct Study {
  std::string name, question, source;
  std::string origin;                  ///< of the file, in messages
  std::vector<std::string> overrides;  ///< settings by their names that the command line gave in place of the file's
  nlohmann::json file;                 ///< as it was written
  nlohmann::json base;                 ///< the config all cells start from, as it was written
  std::string base_name;               ///< a preset, or empty for a config in the file
  std::vector<std::string> settings;
  std::vector<StudyAxis> axes;
  std::vector<int64_t> seeds;
  std::optional<StudyTuning> tuning;
  std::optional<StudyEqual> equal;
  std::vector<StudyBranch> branches;  ///< training.cooldown_at and cooldown_at_loss
  StudyEvaluation evaluation;
  std::vector<StudyTask> tasks;
  PretrainingLoss pretraining;  ///< at which OOD losses are equal
  std::vector<std::string> tables, figures;
  std::vector<std::string> recipes;  ///< figures of papers, by the names of their recipes
};

/// What tables and figures a report can have.
const std::vector<std::string>& study_tables();
const std::vector<std::string>& study_figures();

/// Throws UsageError "ORIGIN: /axes/0/… is …; expected …".
Study parse_study(const std::string& text, const std::string& origin, const std::string& name);
/// A file, with assignments that go into its "set" (and so into the study's folder). Throws DataError where there is none, UsageError.
Study load_study(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});
/// The file of a study that comes with the program (its name), or the path itself. Throws UsageError that suggests names.
std::filesystem::path find_study(const std::string& name_or_file);
/// Names of the studies that come with the program, sorted.
std::vector<std::string> shipped_studies();

}  // namespace saccade
