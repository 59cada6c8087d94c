#include "analysis/tasks/scored_items.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/engine/error.h"
#include "models/tasks/prompt_task.h"

namespace saccade {
namespace {

namespace fs = std::filesystem;

bool is_in(const std::string& name, const std::optional<ItemGroup>& group) {
  if (!group) return true;
  const std::string begin = group->kind + " ";
  return name.starts_with(begin) && std::strtod(name.c_str() + begin.size(), nullptr) == group->number;
}

size_t chosen_by(const std::string& metric, const ItemScore& item) {
  return metric == "acc_norm" ? item.chosen_norm : metric == "acc_bytes" ? item.chosen_bytes : item.chosen;
}

/// "mqar-length-64-pairs-8" is "mqar" at a difficulty: the task of the longest name that it begins with.
std::optional<Task> known_task(const TaskResult& result) {
  if (!result.task_file.empty()) return find_task(result.task_file.string());
  std::optional<Task> found;
  for (const std::vector<Task>& list : {shipped_tasks(), symbol_task_list()})
    for (const Task& task : list)
      if ((result.task == task.name || result.task.starts_with(task.name + "-")) && (!found || task.name.size() > found->name.size()))
        found = task;
  return found;
}

/// The task that a result is of, at its difficulty.
Task task_of(const TaskResult& result) {
  std::optional<Task> task = known_task(result);
  if (task && result.task.size() > task->name.size()) {
    const std::string difficulty = result.task.substr(task->name.size() + 1);
    if (task->kind == Task::Kind::symbols)
      task = at_difficulties(*task, {}, {difficulty}).front();
    else
      task = at_difficulties(*task, {std::strtoll(difficulty.c_str(), nullptr, 10)}, {}).front();
  }
  if (!task || task->name != result.task)
    throw DataError("the task " + result.task +
                    " is none that ships, and its score does not say where its file is; score it again with --again");
  if (task->hash != result.task_hash) throw DataError("the task " + result.task + " is not the one any more that was scored");
  return *task;
}

TaskItem item_of_file(const TaskResult& result, const Task& task, int64_t number) {
  if (result.data.empty())
    throw DataError("the score of " + result.task + " does not say which file its items came from; score it again with --again");
  TaskItemOptions options;
  options.limit = result.limit, options.shots = result.shots, options.trim = result.trim, options.strict_spaces = result.strict_spaces;
  TaskItems items = read_task_items(task, result.data, options);
  if (items.hash != result.data_hash) throw DataError(items.file.string() + " is not what it was when " + result.task + " was scored");
  return std::move(items.items.at(static_cast<size_t>(number)));
}

TaskItem item_of_seed(const TaskResult& result, const Task& task, int64_t number, const RunConfig& config, const Tokenizer& tokenizer) {
  const std::string haystack = task_haystack(config, task, result.data);
  TaskItemOptions options;
  options.seed = result.seed, options.adjectives = result.adjectives, options.nouns = result.nouns;
  const PromptSample sample = prompt_task(task.generator).maker(prompt_input(task, tokenizer, haystack, options))(number);
  TaskItem item{{{sample.prompt, "", ""}}, 0, "depth " + sample.depth, sample.answer, sample.max_tokens, sample.needle};
  const AnswerScore& known = result.answers.at(static_cast<size_t>(number));
  std::vector<int32_t> prompt = tokenizer.encode(sample.prompt);
  add_prefix(tokenizer, result.prefix, prompt.empty(), prompt);
  const bool same_length = result.cut > 0 || static_cast<int64_t>(prompt.size()) == known.prompt_tokens;
  if (item.target != known.target || item.group != known.group || !same_length)
    throw DataError("item " + std::to_string(number) + " of " + result.task +
                    " comes out otherwise than it was scored: with another seed, text or tokenizer");
  return item;
}

}  // namespace

FailedItems failed_items(const fs::path& directory, const std::string& task, int64_t step, const std::optional<ItemGroup>& group) {
  const TaskResult result = read_task_result(directory, task, step);
  FailedItems failed;
  const auto add = [&](AnsweredItem item) {
    if (!is_in(item.group, group)) return;
    ++failed.asked;
    if (item.right < 1) failed.items.push_back(std::move(item));
  };
  for (size_t i = 0; i < result.items.size(); ++i) {
    const ItemScore& item = result.items[i];
    const size_t chosen = chosen_by(result.metric, item);
    add({static_cast<int64_t>(i), item.group, chosen == item.gold ? 1.0 : 0.0, {}, {}, chosen, item.gold});
  }
  for (size_t i = 0; i < result.answers.size(); ++i) {
    const AnswerScore& item = result.answers[i];
    failed.kind = item.target.empty() ? Task::Kind::symbols : Task::Kind::generation;
    add({static_cast<int64_t>(i), item.group, item.right, item.answer, item.target, 0, 0});
  }
  return failed;
}

std::vector<double> right_of(const TaskResult& result) {
  std::vector<double> right;
  for (const ItemScore& item : result.items) right.push_back(chosen_by(result.metric, item) == item.gold ? 1 : 0);
  for (const AnswerScore& item : result.answers) right.push_back(item.right);
  return right;
}

ScoredItem scored_item(const fs::path& directory, const std::string& task_name, int64_t step, int64_t number, const RunConfig& config,
                       const Tokenizer& tokenizer) {
  const TaskResult result = read_task_result(directory, task_name, step);
  const auto count = static_cast<int64_t>(std::max(result.items.size(), result.answers.size()));
  if (number < 0 || number >= count)
    throw UsageError("item is " + std::to_string(number) + "; expected 0 to " + std::to_string(count - 1) + " of " + task_name);
  const Task task = task_of(result);
  if (task.kind == Task::Kind::symbols) {
    const SymbolDomain domain(symbol_task(task.generator), task.domain, "--domains");
    if (!domain.reads(config.data.tokenizer))
      throw DataError(task_name + " is read by the tokenizer " + domain.tokenizer() + ", the run's is " + config.data.tokenizer +
                      ": its items say nothing to this run");
    return {{}, domain.example(Split::test, static_cast<uint64_t>(number))};
  }
  if (task.generator.empty()) return {item_of_file(result, task, number), {}};
  return {item_of_seed(result, task, number, config, tokenizer), {}};
}

}  // namespace saccade
