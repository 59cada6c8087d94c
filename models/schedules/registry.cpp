#include "models/schedules/registry.h"

#include <algorithm>
#include <memory>

#include "models/suggest.h"

namespace saccade {
namespace {

std::vector<std::unique_ptr<Schedule>>& entries() {
  static std::vector<std::unique_ptr<Schedule>> list;
  return list;
}

}  // namespace

RegisterSchedule::RegisterSchedule(Schedule entry) {
  entries().push_back(std::make_unique<Schedule>(std::move(entry)));
  std::sort(entries().begin(), entries().end(), [](const auto& a, const auto& b) { return a->id < b->id; });
}

const std::vector<const Schedule*>& schedules() {
  static const std::vector<const Schedule*> list = [] {
    std::vector<const Schedule*> all;
    for (const auto& entry : entries()) all.push_back(entry.get());
    return all;
  }();
  return list;
}

const Schedule& schedule(const std::string& id) {
  std::vector<std::string> names;
  for (const Schedule* entry : schedules()) {
    if (entry->id == id) return *entry;
    names.push_back(entry->id);
  }
  throw UsageError("there is no schedule \"" + id + "\"" + did_you_mean(id, names));
}

}  // namespace saccade
