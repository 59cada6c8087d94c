#include "analysis/runs/task_items_group.h"

#include <algorithm>
#include <cmath>

#include "analysis/runs/sealed_json.h"
#include "kernels/engine/error.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// The items of the result that a record is of; empty where it was not kept.
Json items_of(const std::filesystem::path& run, const TaskScoreRecord& record) {
  const std::string options = record.options.empty() ? "" : "-" + record.options;
  const std::filesystem::path file = run / "tasks" / (record.task + "-step-" + std::to_string(record.step) + options + ".json");
  if (!std::filesystem::is_regular_file(file)) return Json::array();
  try {
    const Json result = read_sealed_json(file), &key = result.at("key");
    const bool is_of_record = key.at("data_hash") == record.data_hash && key.at("checkpoint_hash") == record.checkpoint_hash;
    return is_of_record ? result.at("items") : Json::array();
  } catch (const DataError&) {  // who reads the result itself is told
    return Json::array();
  }
}

void describe(const h5::Group& group, const char* name, const char* unit, const char* long_name) {
  group.set_attribute("units", unit, name);
  group.set_attribute("long_name", long_name, name);
}

/// A number of every item; null is NaN.
void write_column(const h5::Group& group, const Json& items, const char* name, const char* unit, const char* long_name) {
  std::vector<double> values;
  for (const Json& item : items) values.push_back(number_or_nan(item.at(name)));
  group.write(name, values);
  describe(group, name, unit, long_name);
}

/// A number of every choice of every item.
void write_choices(const h5::Group& group, const Json& items, const char* name, const char* unit, const char* long_name) {
  size_t most = 0;
  for (const Json& item : items) most = std::max(most, item.value(name, Json::array()).size());
  if (most == 0) return;
  std::vector<double> values;
  for (const Json& item : items) {
    const std::vector<double> own = item.value(name, std::vector<double>());
    values.insert(values.end(), own.begin(), own.end());
    values.resize(values.size() + most - own.size(), std::nan(""));
  }
  group.write<double>(name, values, {static_cast<int64_t>(items.size()), static_cast<int64_t>(most)});
  describe(group, name, unit, long_name);
}

void write_texts(const h5::Group& group, const Json& items, const char* name) {
  std::vector<std::string> texts;
  for (const Json& item : items) texts.push_back(item.at(name));
  group.write_texts(name, texts);
}

const char* chosen_by(const std::string& metric) {
  return metric == "acc_norm" ? "chosen_norm" : metric == "acc_bytes" ? "chosen_bytes" : "chosen";
}

void write_items(const h5::Group& group, const Json& items, const std::string& metric) {
  group.set_attribute("metric", metric);
  if (items.front().contains("right")) {
    write_column(group, items, "right", "1", "right, a share of the item");
    write_column(group, items, "prompt_tokens", "tokens", "tokens of the prompt");
    write_column(group, items, "depth", "1", "the needle's token over the prompt's");
    write_texts(group, items, "answer"), write_texts(group, items, "target");
    return;
  }
  std::vector<double> right;
  for (const Json& item : items) right.push_back(item.at(chosen_by(metric)) == item.at("gold") ? 1 : 0);
  group.write("right", right);
  describe(group, "right", "1", "right by the task's metric");
  write_choices(group, items, "log_likelihoods", "nats", "log-likelihood of each choice");
  write_choices(group, items, "characters", "1", "characters of each choice");
  write_choices(group, items, "tokens", "tokens", "tokens of each choice");
  for (const char* chosen : {"chosen", "chosen_norm", "chosen_bytes"}) write_column(group, items, chosen, "1", "the choice taken, from 0");
  write_column(group, items, "gold", "1", "the right choice, from 0");
}

}  // namespace

void write_task_items(const h5::Group& task, const std::filesystem::path& run, const TaskScoreRecord& record) {
  try {
    const Json items = items_of(run, record);
    if (!items.empty()) write_items(task.create("items/step-" + std::to_string(record.step)), items, record.metric);
  } catch (const Json::exception&) {  // an earlier version's form
  }
}

}  // namespace saccade
