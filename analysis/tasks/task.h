#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade {

/// A task: of choices, each item has a context and continuations, and the model chooses the one it finds likeliest; answered by
/// generation, each item has a context and a target, and the model goes on; of a generated task on symbols (models/tasks/symbol_task.h),
/// each example asks at some of its positions. The first two are JSON files: those that ship stand in resources/tasks, a user's own are
/// named by their path. Prompts and scores follow EleutherAI's evaluation harness (github.com/EleutherAI/lm-evaluation-harness), as both
/// papers' tables do.
struct Task {
  enum class Kind { choices, generation, symbols };
  Kind kind = Kind::choices;
  std::string name;         ///< "arc-easy"
  int64_t version = 1;      ///< another number: scores do not compare
  std::string description;  ///< a line
  std::string source;       ///< citation
  std::string origin;       ///< where the file comes from, a sentence
  std::string split;        ///< what is scored, "test"; may be empty
  int64_t items = 0;        ///< in the public data set; 0: not known

  std::vector<std::string> files;         ///< names that the data may have in its folder, the first is ours
  std::vector<std::string> labels_files;  ///< where labels stand in a second file, one a line (as PIQA has them); may be empty
  std::vector<std::string> columns;       ///< names of the columns of a CSV file whose first row does not have them
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

  // Answered by generation.
  std::string target;             ///< template
  std::vector<std::string> stop;  ///< where generation ends, which is cut off
  int64_t max_tokens = 0;         ///< that are generated at most
  std::string generator;          ///< of prompts that no file holds (models/tasks/prompt_task.h); empty: items are rows of a file

  int64_t length = 0;  ///< of generated prompts, in tokens
  std::string domain;  ///< of a task on symbols: its difficulty

  std::string metric = "acc";  ///< the one that tables give: acc, acc_norm, acc_bytes, contains or exact
  bool chance_of_majority =
      false;         ///< guessing says the most frequent answer (BoolQ: all items have the same two); else one of the choices
  std::string hash;  ///< SHA-256 of the task's own file
  std::filesystem::path own_file = {};  ///< where a user's own task stands, absolute; empty: it ships, or is generated
};

/// Those that ship, sorted by name. Throws DataError where one is damaged.
std::vector<Task> shipped_tasks();
/// The generated tasks on symbols, sorted by name; `files` are empty.
std::vector<Task> symbol_task_list();
/// By name ("arc-easy"; "arc_easy" is as good), or a file of a user's own (a name that ends in .json). Throws UsageError with a
/// suggestion when there is none, or when the file is not a task's.
Task find_task(const std::string& name_or_file);

/// A generated task at these lengths (empty: its usual ones), or a task on symbols at these domains (empty: those to test on): a task each,
/// whose name says which. Any other task is itself; throws UsageError where lengths or domains are asked of one that has none.
std::vector<Task> at_difficulties(const Task& task, const std::vector<int64_t>& lengths, const std::vector<std::string>& domains);

/// Fills "{field}" in from a row. Throws DataError that names the field which is missing or no text, number or truth value.
std::string fill_template(const std::string& text, const nlohmann::json& row);
/// What one "{field}" points at. Throws DataError.
const nlohmann::json& field_of(const nlohmann::json& row, const std::string& path);

}  // namespace saccade
