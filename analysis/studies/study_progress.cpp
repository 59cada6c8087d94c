#include "analysis/studies/study_progress.h"

#include <algorithm>
#include <cmath>

namespace saccade {
namespace {

using Status = WantedRun::Status;

/// What training took so far.
struct Pace {
  double seconds = 0, steps = 0;
  void add(const RunSummary& run) {
    if (std::isfinite(run.seconds) && run.step > 0) seconds += run.seconds, steps += static_cast<double>(run.step);
  }
  double per_step() const { return steps > 0 && seconds > 0 ? seconds / steps : std::nan(""); }
};

bool has_ended(const WantedRun& run) { return run.status == Status::finished || run.status == Status::diverged; }

double steps_done(const WantedRun& run, double steps) {
  if (has_ended(run)) return steps;
  return run.there ? std::min(steps, static_cast<double>(run.there->step)) : 0;
}

void count(const StudyView& view, StudyProgress& progress) {
  progress.runs = static_cast<int64_t>(view.wanted.size()) + view.later;
  for (const WantedRun& run : view.wanted) {
    progress.finished += run.status == Status::finished;
    progress.diverged += run.status == Status::diverged;
    progress.running += run.status == Status::live;
    progress.gave_up += run.status == Status::gave_up;
  }
  progress.searches = view.study.tuning.has_value();
  for (const CellView& cell : view.views) {
    progress.tuned += cell.tuning.state == Tuning::State::tuned;
    progress.edge += cell.tuning.state == Tuning::State::edge;
  }
}

}  // namespace

StudyProgress progress_of(const StudyView& view, int64_t jobs) {
  StudyProgress progress;
  count(view, progress);
  Pace all;
  std::vector<Pace> by_cell(view.cells.size());
  for (const WantedRun& run : view.wanted)
    if (run.there) all.add(*run.there), by_cell[run.run.cell].add(*run.there);
  double steps = 0, done = 0, left = 0;
  for (const WantedRun& run : view.wanted) {
    const auto mine = static_cast<double>(run.run.config.training.steps);
    const double pace = by_cell[run.run.cell].per_step();
    steps += mine, done += steps_done(run, mine);
    if (run.status != Status::gave_up) left += (mine - steps_done(run, mine)) * (std::isnan(pace) ? all.per_step() : pace);
  }
  if (!view.wanted.empty()) {
    const double later = static_cast<double>(view.later) * steps / static_cast<double>(view.wanted.size());
    steps += later;
    if (later > 0) left += later * all.per_step();
  }
  progress.share = view.complete() ? 1 : steps > 0 ? done / steps : 0;
  if (view.complete() || view.state.stopped || !view.blocked().empty()) return progress;
  if (view.state.budget_hours) left = std::min(left, std::max(0.0, *view.state.budget_hours * 3600 - view.seconds));
  progress.seconds_left = left / static_cast<double>(std::max<int64_t>(1, jobs));
  return progress;
}

}  // namespace saccade
