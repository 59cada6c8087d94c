#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analysis/tasks/task_items.h"

namespace saccade {

/// How rows of a task become items where templates are not enough. Source: the tasks of EleutherAI's evaluation harness.
struct TaskForm {
  std::string name;
  /// Brings other forms in which the data set is published into the one that the templates name; may be empty.
  std::function<void(nlohmann::json& row)> normalise = {};
  /// The item of a row; empty: by the templates. Throws DataError.
  std::function<TaskItem(const Task& task, const nlohmann::json& row, const TaskItemOptions& options)> make = {};
};
/// Throws UsageError when there is none of that name.
const TaskForm& task_form(const std::string& name);

/// HellaSwag's cleaning of WikiHow's text: brackets and titles go.
std::string clean_hellaswag(std::string text);

}  // namespace saccade
