#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace saccade {

/// A task with choices: each item has a context and continuations, and the model chooses the one it finds likeliest. Tasks are JSON
/// files: those that ship stand in resources/tasks, a user's own are named by their path. Prompts and scores follow EleutherAI's
/// evaluation harness (github.com/EleutherAI/lm-evaluation-harness), as both papers' tables do.
struct Task {
  std::string name;         ///< "arc-easy"
  int64_t version = 1;      ///< another number: scores do not compare
  std::string description;  ///< a line
  std::string source;       ///< citation
  std::string origin;       ///< where the file comes from, a sentence
  std::string split;        ///< what is scored, "test"; may be empty
  int64_t items = 0;        ///< in the public data set; 0: not known

  std::vector<std::string> files;         ///< names that the data may have in its folder, the first is ours
  std::vector<std::string> labels_files;  ///< where labels stand in a second file, one a line (as PIQA has them); may be empty
  std::string form;                       ///< how a row is read (task_forms.h); empty: by the templates below

  // Templates: "{field}" is a field of the row; dots lead inside, [i] into arrays.
  std::string context;
  nlohmann::json choices;       ///< array of templates, or one "{field}" that holds an array
  std::string gold;             ///< number of the right choice, or one of `labels`
  nlohmann::json labels;        ///< what gold may say, in the order of the choices: array or one "{field}"; null: gold is a number
  int64_t first_label = 0;      ///< number of the first choice
  std::string delimiter = " ";  ///< between context and choice
  std::string header;           ///< before everything
  std::string group;            ///< template: items of a group are also scored apart (MMLU's subjects)
  std::map<std::string, std::string> group_names = {};  ///< groups of groups
  int64_t shots = 0;                                    ///< examples before each item, unless asked otherwise
  std::vector<std::string> shots_files;  ///< where they come from: the first rows, of the item's group where there are groups
  std::string metric = "acc";            ///< "acc" or "acc_norm": the one that tables give
  std::string hash;                      ///< SHA-256 of the task's own file
};

/// Those that ship, sorted by name. Throws DataError where one is damaged.
std::vector<Task> shipped_tasks();
/// By name ("arc-easy"; "arc_easy" is as good), or a file of a user's own (a name that ends in .json). Throws UsageError with a
/// suggestion when there is none, or when the file is not a task's.
Task find_task(const std::string& name_or_file);

/// Fills "{field}" in from a row. Throws DataError that names the field which is missing or no text, number or truth value.
std::string fill_template(const std::string& text, const nlohmann::json& row);
/// What one "{field}" points at. Throws DataError.
const nlohmann::json& field_of(const nlohmann::json& row, const std::string& path);

}  // namespace saccade
