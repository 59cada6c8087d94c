#include "ui/shown_runs.h"

namespace saccade::ui {
namespace {

DrawnRuns thing(const RunLook& look, std::vector<const Run*> seeds) {
  return {look.label, look.colour, look.marker, look.dash, std::move(seeds)};
}

void append(const ShownGroup& group, DrawnSet& set) {
  if (!group.opened && group.seeds.size() > 1) {
    std::vector<const Run*> seeds;
    for (const SharedRun& run : group.seeds) seeds.push_back(run.get());
    return set.push_back(thing(group.look, std::move(seeds)));
  }
  for (size_t i = 0; i < group.seeds.size(); ++i) set.push_back(thing(group.looks[i], {group.seeds[i].get()}));
}

}  // namespace

RunSet ShownRuns::runs() const {
  RunSet all;
  for (const ShownGroup& group : groups)
    for (const SharedRun& run : group.seeds) all.push_back(run.get());
  return all;
}

DrawnSet ShownRuns::drawn() const {
  DrawnSet set;
  for (const ShownGroup& group : groups) append(group, set);
  return set;
}

std::optional<DrawnRuns> ShownRuns::drawn_with(const QString& directory) const {
  for (const DrawnRuns& each : drawn())
    for (const Run* run : each.seeds)
      if (QString::fromStdString(run->info().directory.string()) == directory) return each;
  return {};
}

}  // namespace saccade::ui
