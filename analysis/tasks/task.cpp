#include "analysis/tasks/task.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/corpus/byte_stream.h"
#include "models/corpus/sha256.h"
#include "models/resources.h"
#include "models/suggest.h"
#include "models/tasks/prompt_task.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

using nlohmann::json;

constexpr int64_t kLongestTaskFile = 16 << 20;  ///< bytes

std::vector<std::string> texts(const json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

const std::set<std::string>& known_keys() {
  static const std::set<std::string> keys{"name",
                                          "version",
                                          "description",
                                          "source",
                                          "origin",
                                          "split",
                                          "items",
                                          "files",
                                          "context",
                                          "choices",
                                          "gold",
                                          "labels",
                                          "first_label",
                                          "delimiter",
                                          "header",
                                          "labels_files",
                                          "group",
                                          "groups",
                                          "shots",
                                          "metric",
                                          "form",
                                          "data",
                                          "shots_files",
                                          "target",
                                          "stop",
                                          "max_tokens",
                                          "generator",
                                          "columns",
                                          "chance_of_majority"};
  return keys;
}

Task task_of(const json& j, const std::string& origin) {
  if (!j.is_object()) throw UsageError(origin + ": expected an object that describes a task");
  for (const auto& [key, value] : j.items())
    if (!known_keys().contains(key))
      throw UsageError(origin + ": a task has no \"" + key + "\"" + did_you_mean(key, {known_keys().begin(), known_keys().end()}));
  Task task;
  try {
    task.name = j.at("name");
    task.version = j.value("version", int64_t{1});
    task.description = j.value("description", "");
    task.source = j.value("source", "");
    task.origin = j.value("origin", "");
    task.split = j.value("split", "");
    task.items = j.value("items", int64_t{0});
    task.files = texts(j.value("files", j.value("data", json(task.name + ".jsonl"))));
    task.labels_files = texts(j.value("labels_files", json::array()));
    task.columns = texts(j.value("columns", json::array()));
    task.form = j.value("form", "");
    task.context = j.value("context", "");
    task.choices = j.value("choices", json());
    task.gold = j.value("gold", "");
    task.labels = j.value("labels", json());
    task.first_label = j.value("first_label", int64_t{0});
    task.delimiter = j.value("delimiter", " ");
    task.header = j.value("header", "");
    task.group = j.value("group", "");
    const json groups = j.value("groups", json::object());
    for (const auto& [name, members] : groups.items())
      for (const std::string& member : texts(members)) task.group_names[member] = name;
    task.shots = j.value("shots", int64_t{0});
    task.chance_of_majority = j.value("chance_of_majority", false);
    task.shots_files = texts(j.value("shots_files", json::array()));
    task.generator = j.value("generator", "");
    task.target = j.value("target", "");
    if (!task.target.empty() || !task.generator.empty()) task.kind = Task::Kind::generation;
    task.stop = texts(j.value("stop", json::array()));
    task.max_tokens = j.value("max_tokens", int64_t{0});
    task.metric = j.value("metric", task.kind == Task::Kind::generation ? "contains" : "acc");
  } catch (const json::exception& error) {
    throw UsageError(origin + ": " + error.what());
  }
  if (task.kind == Task::Kind::generation) {
    if (task.metric != "contains" && task.metric != "exact")
      throw UsageError(origin + ": metric is \"" + task.metric + "\", expected contains or exact");
    if (task.generator.empty() && (task.max_tokens < 1 || task.context.empty()))
      throw UsageError(origin + ": a task answered by generation has context, target and max_tokens");
    return task;
  }
  if (task.metric != "acc" && task.metric != "acc_norm" && task.metric != "acc_bytes")
    throw UsageError(origin + ": metric is \"" + task.metric + "\", expected acc, acc_norm or acc_bytes");
  if (task.form.empty() && (task.choices.is_null() || task.gold.empty()))
    throw UsageError(origin + ": a task has choices and gold, or a form");
  return task;
}

Task read_task(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) throw UsageError("cannot read " + file.string());
  const std::string text = read_all(file, kLongestTaskFile);
  Task task = task_of(parse_json_text(text, file.string()), file.string());
  task.hash = hex(sha256(text));
  return task;
}

/// "choices.text[0]" in parts: names and numbers.
std::vector<json> path_parts(const std::string& path) {
  std::vector<json> parts;
  for (size_t at = 0; at < path.size();) {
    if (path[at] == '[') {
      const size_t end = path.find(']', at);
      if (end == path.npos || end == at + 1 || end > at + 10 || path.find_first_not_of("0123456789", at + 1) != end)
        throw UsageError("{" + path + "}: expected a number of at most nine digits between [ and ]");
      parts.emplace_back(std::stoull(path.substr(at + 1, end - at - 1)));
      at = end + 1;
    } else {
      const size_t begin = path[at] == '.' ? at + 1 : at, end = std::min(path.find_first_of(".[", begin), path.size());
      parts.emplace_back(path.substr(begin, end - begin));
      at = end;
    }
  }
  return parts;
}

}  // namespace

std::vector<Task> shipped_tasks() {
  std::vector<Task> tasks;
  for (const auto& entry : std::filesystem::directory_iterator(resource_folder() / "tasks"))
    if (entry.path().extension() == ".json") tasks.push_back(read_task(entry.path()));
  std::sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.name < b.name; });
  return tasks;
}

std::vector<Task> symbol_task_list() {
  std::vector<Task> list;
  for (const SymbolTask* entry : symbol_tasks()) {
    Task task;
    task.kind = Task::Kind::symbols;
    task.name = entry->id, task.description = entry->title, task.source = entry->paper;
    task.generator = entry->id;
    list.push_back(std::move(task));
  }
  return list;
}

std::vector<Task> at_difficulties(const Task& task, const std::vector<int64_t>& lengths, const std::vector<std::string>& domains) {
  const bool on_symbols = task.kind == Task::Kind::symbols, is_generated = !task.generator.empty() && !on_symbols;
  if (!lengths.empty() && !is_generated) throw UsageError("--lengths is for generated prompts; " + task.name + " is none");
  if (!domains.empty() && !on_symbols) throw UsageError("--domains is for generated tasks on symbols; " + task.name + " is none");
  std::vector<Task> tasks;
  if (is_generated)
    for (const int64_t length : lengths.empty() ? prompt_task(task.generator).lengths : lengths) {
      tasks.push_back(task);
      tasks.back().length = length;
      tasks.back().name += "-" + std::to_string(length);
    }
  if (on_symbols) {
    const SymbolTask& entry = symbol_task(task.generator);
    for (const std::string& domain : !domains.empty() ? domains : entry.test.empty() ? entry.train : entry.test) {
      tasks.push_back(task);
      tasks.back().domain = domain;
      tasks.back().name += "-" + domain;
      tasks.back().hash = SymbolDomain(entry, domain, "--domains").hash();
    }
  }
  return tasks.empty() ? std::vector<Task>{task} : tasks;
}

Task find_task(const std::string& name_or_file) {
  if (name_or_file.ends_with(".json")) {
    Task own = read_task(name_or_file);
    own.own_file = std::filesystem::absolute(name_or_file);
    return own;
  }
  std::string name = name_or_file;
  std::replace(name.begin(), name.end(), '_', '-');
  std::vector<std::string> names;
  for (Task& task : shipped_tasks()) {
    if (task.name == name) return std::move(task);
    names.push_back(task.name);
  }
  for (Task& task : symbol_task_list()) {
    if (task.name == name) return std::move(task);
    names.push_back(task.name);
  }
  std::error_code none;
  if (std::filesystem::is_regular_file(name_or_file, none))
    throw UsageError(name_or_file +
                     " is no task: a task of your own is a JSON file that says what its rows mean, named NAME.json (docs/tasks.md), and " +
                     "--data names the rows");
  throw UsageError("there is no task \"" + name_or_file + "\"" + did_you_mean(name, names) + "; `saccade tasks` lists them");
}

const json& field_of(const json& row, const std::string& path) {
  const json* at = &row;
  for (const json& part : path_parts(path)) {
    const bool is_there = part.is_number() ? at->is_array() && part.get<size_t>() < at->size()
                                           : at->is_object() && at->contains(part.get_ref<const std::string&>());
    if (!is_there) throw DataError("has no field \"" + path + "\"");
    at = part.is_number() ? &(*at)[part.get<size_t>()] : &(*at)[part.get_ref<const std::string&>()];
  }
  return *at;
}

std::string fill_template(const std::string& text, const json& row) {
  std::string filled;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at), close = open == text.npos ? text.npos : text.find('}', open);
    filled += text.substr(at, open == text.npos || close == text.npos ? text.npos : open - at);
    if (open == text.npos || close == text.npos) break;
    const std::string path = text.substr(open + 1, close - open - 1);
    const json& value = field_of(row, path);
    if (value.is_string())
      filled += value.get<std::string>();
    else if (value.is_number() || value.is_boolean())
      filled += value.dump();
    else
      throw DataError("field \"" + path + "\" is no text, number or truth value");
    at = close + 1;
  }
  return filled;
}

}  // namespace saccade
