#include "analysis/studies/study_tasks.h"

#include <algorithm>
#include <cmath>

#include "analysis/tasks/task.h"
#include "analysis/tasks/task_steps.h"
#include "models/settings.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostItems = 1'000'000'000, kLongest = 1 << 24;

const Schema<StudyTask> kSchema{
    text_field("task", &StudyTask::task, "A name that `saccade tasks` lists, or a file of your own."),
    list_field("domains", &StudyTask::domains, "Of tasks on symbols: difficulties, like length-64-pairs-4."),
    text_field("data", &StudyTask::data, "Folder with the tasks' files, or the file of one; of S-NIAH in text the text."),
    field("limit", &StudyTask::limit, {1, kMostItems}, "The first items only."),
    field("shots", &StudyTask::shots, {0, 1000}, "Examples before each item."),
    field("max_length", &StudyTask::max_length, {1, kLongest}, "Tokens that the models read at most; beginnings are cut off."),
    field("samples", &StudyTask::samples, {2, kMostItems}, "Of tasks on symbols: examples of each of the domains."),
    field("seed", &StudyTask::seed, {0, kMostItems}, "Of generated prompts."),
    choice_field("prefix", &StudyTask::prefix, {"none", "begin", "end_of_text"}, "Before every item."),
    choice_field("reading", &StudyTask::reading, {"one_pass", "stepwise"}, "Of choices by a model that looks ahead."),
    field("trim", &StudyTask::trim, "White space around prompts and targets of tasks answered by generation goes."),
    field("strict_spaces", &StudyTask::strict_spaces, "One space before the choices of COPA and WSC273.")};

[[noreturn]] void refuse(const std::string& pointer, const Json& value, const std::string& expected) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  throw UsageError(pointer + " is " + (text.size() > 60 ? text.substr(0, 57) + "..." : text) + "; expected " + expected);
}

std::vector<int64_t> lengths_of(const Json& value, const std::string& pointer) {
  const auto is_length = [](const Json& length) {
    const int64_t tokens = whole_number<int64_t>(length).value_or(0);
    return tokens >= 1 && tokens <= kLongest;
  };
  if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_length))
    refuse(pointer, value, "tokens of prompt and answer, like [1024, 2048]");
  return value.get<std::vector<int64_t>>();
}

/// "100%", 500, or a list of these.
std::vector<std::string> checkpoints_of(const Json& value, const std::string& pointer) {
  std::vector<std::string> names;
  for (const Json& one : value.is_array() ? value : Json::array({value})) {
    const int64_t step = whole_number<int64_t>(one).value_or(0);
    if (!one.is_string() && step < 1) refuse(pointer, value, "\"100%\", or a list of steps and shares like [\"90%\", \"95%\", \"100%\"]");
    names.push_back(one.is_string() ? one.get<std::string>() : std::to_string(step));
    static_cast<void>(named_step(names.back(), 1, pointer));
  }
  if (names.empty()) refuse(pointer, value, "at least one step or share");
  return names;
}

StudyTask read_entry(const Json& object, const std::string& pointer) {
  if (!object.is_object()) refuse(pointer, object, "an object like {\"task\": \"s-niah-1\", \"lengths\": [1024]}");
  std::vector<std::string> keys{"lengths", "checkpoints"};
  for (const Setting& setting : kSchema.settings()) keys.push_back(setting.name);
  check_known_keys(object, keys, pointer);
  StudyTask entry = kSchema.read(object, pointer);
  if (entry.task.empty()) throw UsageError(pointer + "/task is missing; expected a name that `saccade tasks` lists, or a task's file");
  if (object.contains("lengths")) entry.lengths = lengths_of(object.at("lengths"), pointer + "/lengths");
  if (object.contains("checkpoints")) entry.checkpoints = checkpoints_of(object.at("checkpoints"), pointer + "/checkpoints");
  if (entry.task.ends_with(".json")) return entry;
  try {
    static_cast<void>(at_difficulties(find_task(entry.task), entry.lengths, entry.domains));
  } catch (const UsageError& error) {
    throw UsageError(pointer + ": " + error.what());
  }
  return entry;
}

}  // namespace

std::vector<StudyTask> read_study_tasks(const Json& study_file) {
  std::vector<StudyTask> tasks;
  if (!study_file.contains("tasks")) return tasks;
  const Json& list = study_file.at("tasks");
  if (!list.is_array()) refuse("/tasks", list, "a list of tasks like [{\"task\": \"s-niah-1\", \"lengths\": [1024]}]");
  for (size_t i = 0; i < list.size(); ++i) tasks.push_back(read_entry(list[i], "/tasks/" + std::to_string(i)));
  return tasks;
}

}  // namespace saccade
