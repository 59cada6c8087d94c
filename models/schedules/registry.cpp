#include "models/schedules/registry.h"

#include "models/entries.h"

namespace saccade {
namespace {

Entries<Schedule>& entries() {
  static Entries<Schedule> list;
  return list;
}

}  // namespace

RegisterSchedule::RegisterSchedule(Schedule entry) {
  entries().add(std::move(entry), [](const Schedule& e) { return e.id; });
}

const std::vector<const Schedule*>& schedules() { return entries().all(); }

const Schedule& schedule(const std::string& id) { return entries().find("schedule", id); }

}  // namespace saccade
