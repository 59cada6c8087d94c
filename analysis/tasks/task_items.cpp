#include "analysis/tasks/task_items.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "analysis/tasks/csv_rows.h"
#include "analysis/tasks/mmlu_csv.h"
#include "analysis/tasks/scoring.h"
#include "analysis/tasks/task_forms.h"
#include "analysis/tasks/unicode_text.h"
#include "kernels/engine/error.h"
#include "kernels/engine/parallel.h"
#include "models/config_text.h"
#include "models/corpus/byte_stream.h"
#include "models/corpus/document_reader.h"
#include "models/corpus/parquet_rows.h"
#include "models/corpus/sha256.h"
#include "models/corpus/utf8.h"
#include "models/tasks/prompt_task.h"

namespace saccade {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int64_t kLargestText = int64_t{1} << 30;  ///< bytes of a haystack
constexpr int64_t kLargestWords = 1 << 20;          ///< bytes of a list of words

json parse(std::string_view text, const std::string& where) {
  try {
    return parse_json_text(std::string(text), where);
  } catch (const UsageError& error) {  // nobody typed this file
    throw DataError(error.what());
  }
}

void require_room(const fs::path& file, size_t rows, int64_t bytes) {
  if (rows > kMostTaskRows) throw DataError(file.string() + " holds more than " + std::to_string(kMostTaskRows) + " items");
  if (bytes > kLargestTaskData) throw DataError(file.string() + ": more than " + std::to_string(kLargestTaskData) + " bytes");
}

class RowReader : public DocumentVisitor {
 public:
  RowReader(const fs::path& file, std::vector<TaskRow>& rows) : file_(file), rows_(rows) {}
  void piece(std::string_view bytes, int64_t line) override {
    const std::string where = file_.string() + ":" + std::to_string(line);
    TaskRow row{parse(bytes, where), where};
    if (!row.fields.is_object()) throw DataError(where + ": expected an object on each line");
    rows_.push_back(std::move(row));
    require_room(file_, rows_.size(), bytes_ += static_cast<int64_t>(bytes.size()));
  }
  void too_long(int64_t line) override { throw DataError(file_.string() + ":" + std::to_string(line) + ": a line of more than 64 MiB"); }
  void malformed(int64_t line, const std::string& what) override {
    throw DataError(file_.string() + ":" + std::to_string(line) + ": " + what);
  }
  void progress(int64_t) override {}

 private:
  const fs::path& file_;
  std::vector<TaskRow>& rows_;
  int64_t bytes_ = 0;
};

/// The first thing in the file that is no white space is "[".
bool holds_array(const fs::path& file) {
  const auto stream = ByteStream::open(file);
  int64_t blank = 0;
  for (std::string bytes; stream->read(bytes); bytes.clear()) {
    if (const size_t first = bytes.find_first_not_of(" \t\r\n"); first != bytes.npos) return bytes[first] == '[';
    require_room(file, 0, blank += static_cast<int64_t>(bytes.size()));
  }
  return false;
}

/// Where the items of an array of JSON begin, which is known to be well-formed: lines from 1.
std::vector<int64_t> lines_of_items(std::string_view text) {
  std::vector<int64_t> lines;
  int64_t line = 1, depth = 0;
  bool quoted = false, awaited = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) continue;
    if (awaited && c != ']') lines.push_back(line);
    awaited = false;
    if (quoted) {
      if (c == '\\') ++at;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    if (c == '[' || c == '{') awaited = ++depth == 1;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 1) awaited = true;
  }
  return lines;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return list;
}

/// One of these names in the folder, plain, packed or as Parquet; nothing when there is none.
fs::path find_file(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const std::string& form : {name, name + ".gz", name + ".zst", fs::path(name).replace_extension(".parquet").string()})
      if (const fs::path file = folder / form; fs::is_regular_file(file)) return file;
  return {};
}
fs::path require_file(const Task& task, const fs::path& data, const std::vector<std::string>& names) {
  if (!fs::exists(data)) throw MissingTaskData("--data: there is no " + data.string());
  if (fs::is_regular_file(data) && &names == &task.files) return data;
  const fs::path folder = fs::is_directory(data) ? data : data.parent_path();
  const fs::path file = find_file(folder, names);
  if (file.empty())
    throw MissingTaskData("task " + task.name + ": " + folder.string() + " has no " + quoted_list(names) +
                          (task.origin.empty() ? "" : ". " + task.origin));
  return file;
}

/// The rows of one of these files, or of MMLU's own, a file for each subject, where it has none of them.
struct ReadRows {
  fs::path file;  ///< of MMLU's own: what the user named
  std::vector<TaskRow> rows;
};
ReadRows rows_of(const Task& task, const fs::path& data, const std::vector<std::string>& names, const std::string& split) {
  if (task.form == "mmlu" && (fs::is_regular_file(data) || find_file(data, names).empty()))
    if (const std::vector<fs::path> files = find_mmlu_csv(data, split); !files.empty()) return {data, read_mmlu_csv(files)};
  const fs::path file = require_file(task, data, names);
  return {file, read_task_rows(file, task.columns)};
}

/// Labels of a second file, one a line, become the rows' field "label".
void add_labels(const Task& task, const fs::path& data, const std::vector<std::string>& names, std::vector<TaskRow>& rows, Sha256& hash) {
  if (names.empty() || rows.empty() || rows.front().fields.contains("label")) return;
  const fs::path file = require_file(task, data, names);
  const std::string text = read_all(file, kLargestTaskData);
  if (valid_utf8(text) != text.size()) throw DataError(file.string() + " is not valid UTF-8");
  hash.update(text);
  std::vector<std::string> labels;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) labels.push_back(line);
    at = end + 1;
  }
  if (labels.size() != rows.size())
    throw DataError(file.string() + " has " + std::to_string(labels.size()) + " labels for " + std::to_string(rows.size()) + " items");
  for (size_t i = 0; i < rows.size(); ++i) rows[i].fields["label"] = labels[i];
}

/// An array of templates, or one "{field}" that holds an array.
std::vector<std::string> texts_of(const json& what, const json& row) {
  std::vector<std::string> list;
  if (what.is_string()) {
    const auto& text = what.get_ref<const std::string&>();
    if (!text.starts_with('{') || !text.ends_with('}')) throw DataError("\"" + text + "\" names no field");
    const std::string path = text.substr(1, text.size() - 2);
    const json& values = field_of(row, path);
    if (!values.is_array()) throw DataError("field \"" + path + "\" is no array");
    for (size_t i = 0; i < values.size(); ++i) list.push_back(fill_template("{" + path + "[" + std::to_string(i) + "]}", row));
  } else {
    for (const json& each : what) list.push_back(fill_template(each.get<std::string>(), row));
  }
  return list;
}

/// "{label}" is the field "label"; what is made of several is told as it stands.
std::string named(const std::string& text) {
  const bool is_field = text.starts_with('{') && text.find('}') + 1 == text.size();
  return is_field ? "field \"" + text.substr(1, text.size() - 2) + "\"" : "\"" + text + "\"";
}

size_t gold_of(const Task& task, const json& row, size_t choices) {
  const std::string gold = fill_template(task.gold, row);
  if (!task.labels.is_null()) {
    const std::vector<std::string> labels = texts_of(task.labels, row);
    const auto at = std::find(labels.begin(), labels.end(), gold);
    if (at != labels.end() && static_cast<size_t>(at - labels.begin()) < choices) return static_cast<size_t>(at - labels.begin());
    throw DataError(named(task.gold) + " is \"" + gold + "\", which none of the choices' labels is");
  }
  const bool is_number = !gold.empty() && gold.size() < 10 && gold.find_first_not_of("0123456789") == gold.npos;
  const int64_t number = is_number ? std::stoll(gold) - task.first_label : -1;
  if (number < 0 || number >= static_cast<int64_t>(choices))
    throw DataError(named(task.gold) + " is \"" + gold + "\", expected a number from " + std::to_string(task.first_label) + " to " +
                    std::to_string(task.first_label + static_cast<int64_t>(choices) - 1));
  return static_cast<size_t>(number);
}

TaskItem make_by_templates(const Task& task, const json& row, const TaskItemOptions& options) {
  const auto filled = [&](const std::string& text) {
    const std::string whole = fill_template(text, row);
    return options.trim && task.kind == Task::Kind::generation ? trimmed(whole) : whole;
  };
  const std::string context = filled(task.context);
  TaskItem item;
  if (task.kind == Task::Kind::generation) {
    item.target = filled(task.target);
    if (item.target.empty()) throw DataError("has an empty target");
    item.requests.push_back({context, task.delimiter + item.target, item.target});
    item.max_tokens = task.max_tokens;
    return item;
  }
  for (const std::string& choice : texts_of(task.choices, row)) item.requests.push_back({context, task.delimiter + choice, choice});
  if (item.requests.size() < 2) throw DataError("has fewer than two choices");
  item.gold = gold_of(task, row, item.requests.size());
  return item;
}

TaskItem make_item(const Task& task, TaskRow& row, const TaskItemOptions& options) {
  const TaskForm none{}, &form = task.form.empty() ? none : task_form(task.form);
  try {
    if (form.normalise) form.normalise(row.fields);
    TaskItem item = form.make ? form.make(task, row.fields, options) : make_by_templates(task, row.fields, options);
    if (!task.group.empty()) item.group = fill_template(task.group, row.fields);
    return item;
  } catch (const DataError& error) {
    throw DataError(row.where + ": " + error.what());
  } catch (const json::exception& error) {
    throw DataError(row.where + ": " + error.what());
  }
}

/// Labels of examples stand beside them, where those of the data have a file of their own: train-labels.lst of train.jsonl.
std::vector<std::string> labels_of_examples(const Task& task, fs::path file) {
  if (task.labels_files.empty()) return {};
  while (file.has_extension()) file.replace_extension();
  return {file.filename().string() + "-labels.lst"};
}

/// The share of the most frequent right choice.
double majority_of(const Task& task, const std::vector<TaskRow>& rows, const TaskItemOptions& options) {
  std::map<std::string, int64_t> answers;
  int64_t most = 0;
  for (TaskRow row : rows) {
    const TaskItem item = make_item(task, row, options);
    most = std::max(most, ++answers[item.requests[item.gold].choice]);
  }
  return static_cast<double>(most) / static_cast<double>(rows.size());
}

/// What stands before every item of a group: the examples with their answers.
std::map<std::string, std::string> examples_of(const Task& task, const fs::path& data, const TaskItemOptions& options, int64_t shots,
                                               Sha256& hash) {
  std::map<std::string, std::string> texts;
  if (shots == 0) return texts;
  if (task.shots_files.empty()) throw UsageError("task " + task.name + " has no file of examples (shots_files); --shots can only be 0");
  auto [file, rows] = rows_of(task, data, task.shots_files, "dev");
  add_labels(task, data, labels_of_examples(task, file), rows, hash);
  std::map<std::string, int64_t> taken;
  for (TaskRow& row : rows) {
    const TaskItem item = make_item(task, row, options);
    if (taken[item.group] >= shots) continue;
    ++taken[item.group];
    const TaskRequest& right = item.requests[item.gold];
    texts[item.group] += right.context + right.continuation + "\n\n";
  }
  for (const auto& [group, text] : texts) {
    hash.update(text);
    if (taken[group] < shots)
      throw DataError(file.string() + " has " + std::to_string(taken[group]) + " examples" + (group.empty() ? "" : " of " + group) + ", " +
                      std::to_string(shots) + " are wanted");
  }
  return texts;
}

}  // namespace

std::vector<TaskRow> read_task_rows(const fs::path& file, const std::vector<std::string>& columns) {
  std::vector<TaskRow> rows;
  if (is_csv(file)) {
    rows = read_csv_rows(file, columns);
  } else if (is_parquet(file)) {
    RowReader reader(file, rows);
    read_parquet_rows(file, {}, reader);
  } else if (holds_array(file)) {
    const std::string text = read_all(file, kLargestTaskData);
    json all = parse(text, file.string());
    require_room(file, all.size(), 0);
    const std::vector<int64_t> lines = lines_of_items(text);
    for (size_t i = 0; i < all.size(); ++i) {
      rows.push_back({std::move(all[i]), file.string() + ":" + std::to_string(lines.at(i))});
      if (!rows.back().fields.is_object()) throw DataError(rows.back().where + ": expected an object as each item");
    }
  } else {
    RowReader reader(file, rows);
    read_documents({file, true, {}, {}, 0}, reader);
  }
  if (rows.empty()) throw DataError(file.string() + " holds no items");
  return rows;
}

TaskItems generate_task_items(const Task& task, const Tokenizer& tokenizer, const std::string& haystack, const TaskItemOptions& options) {
  if (options.shots > 0) throw UsageError("task " + task.name + " is generated, without examples; --shots can only be 0");
  const PromptTask& entry = prompt_task(task.generator);
  const MakePrompt make = entry.maker(prompt_input(task, tokenizer, haystack, options));
  const int64_t count = options.limit > 0 ? std::min(options.limit, entry.samples) : entry.samples;
  std::vector<PromptSample> samples(static_cast<size_t>(count));
  parallel_for(count, [&](int64_t i) { samples[static_cast<size_t>(i)] = make(i); });  // each is encoded several times, to fit
  TaskItems made;
  made.there = entry.samples;
  Sha256 hash;
  hash.update(tokenizer.hash());
  for (PromptSample& sample : samples) {
    hash.update(sample.prompt), hash.update(sample.answer);
    made.items.push_back(
        {{{std::move(sample.prompt), "", ""}}, 0, "depth " + sample.depth, sample.answer, sample.max_tokens, sample.needle});
  }
  made.hash = hex(hash.finish());
  return made;
}

PromptInput prompt_input(const Task& task, const Tokenizer& tokenizer, const std::string& haystack, const TaskItemOptions& options) {
  const auto words = [&](const fs::path& file) {
    if (file.empty()) return std::vector<std::string>();
    if (!prompt_task(task.generator).has_keys) throw UsageError("task " + task.name + " has no keys to make of words");
    std::istringstream lines(read_all(file, kLargestWords));
    std::vector<std::string> read;
    for (std::string word; lines >> word;) read.push_back(word);
    if (read.empty()) throw DataError(file.string() + " has no words");
    return read;
  };
  return {task.length, options.seed, tokenizer, haystack, words(options.adjectives), words(options.nouns)};
}

bool needs_haystack(const Task& task) {
  return task.kind == Task::Kind::generation && !task.generator.empty() && prompt_task(task.generator).needs_text;
}

std::string read_haystack(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.find(".json") == name.npos) return read_all(file, kLargestText);
  std::string text;
  for (const TaskRow& row : read_task_rows(file)) try {
      text += (text.empty() ? "" : " ") + fill_template("{text}", row.fields);
    } catch (const DataError& error) {
      throw DataError(row.where + ": " + error.what());
    }
  return text;
}

TaskItems read_task_items(const Task& task, const fs::path& data, const TaskItemOptions& options) {
  TaskItems read;
  read.shots = options.shots < 0 ? task.shots : options.shots;
  auto [file, rows] = rows_of(task, data, task.files, "test");
  read.file = std::move(file);
  Sha256 hash;
  for (const TaskRow& row : rows) hash.update(row.fields.dump());
  add_labels(task, data, task.labels_files, rows, hash);
  read.there = static_cast<int64_t>(rows.size());
  if (task.chance_of_majority) read.chance = majority_of(task, rows, options);
  if (options.limit > 0 && read.there > options.limit) rows.resize(static_cast<size_t>(options.limit));
  const auto examples = examples_of(task, data, options, read.shots, hash);
  for (TaskRow& row : rows) {
    TaskItem item = make_item(task, row, options);
    std::string before;
    if (!task.header.empty()) before = fill_template(task.header, row.fields);
    if (const auto at = examples.find(item.group); at != examples.end())
      before += at->second;
    else if (read.shots > 0)
      throw DataError(row.where + ": there are no examples of " + item.group);
    for (TaskRequest& request : item.requests) request.context = before + request.context;
    read.items.push_back(std::move(item));
  }
  if (!task.chance_of_majority) read.chance = chance_level(read.items);
  read.hash = hex(hash.finish());
  return read;
}

}  // namespace saccade
