#include "ui/live/point_in_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/figures/line.h"
#include "analysis/runs/run_info.h"
#include "ui/run_selection.h"

namespace saccade::ui {

CurveOfRun curve_of_series(const QString& series, XAxis x_axis) {
  return [name = series.toStdString(), x_axis](const Run& run) { return line_of(run, name, x_axis); };
}

std::optional<PointInRun> point_in_run(const ShownRuns& shown, const std::vector<CurveOfRun>& curves, XAxis x_axis, double x, double y,
                                       const AxisScale& y_scale) {
  std::optional<PointInRun> found;
  double nearest = std::numeric_limits<double>::infinity();
  for (const Run* run : shown.runs())
    for (const CurveOfRun& curve : curves) {
      const Line line = curve(*run);
      if (line.x.empty() || x > line.x.back() * (1 + 1e-9)) continue;
      const auto next = std::lower_bound(line.x.begin(), line.x.end(), x) - line.x.begin();
      auto at = static_cast<size_t>(std::min<std::ptrdiff_t>(next, static_cast<std::ptrdiff_t>(line.x.size()) - 1));
      if (at > 0 && std::abs(line.x[at - 1] - x) < std::abs(line.x[at] - x)) --at;
      const double distance = std::abs(y_scale.shown(line.y[at]) - y_scale.shown(y));
      if (!(distance < nearest)) continue;
      const std::optional<qint64> step = step_at(*run, line.x[at], x_axis);
      if (!step) continue;
      nearest = distance;
      found = PointInRun{directory_of(*run), *step};
    }
  return found;
}

namespace {

/// Steps of a run and where they stand, both ascending.
std::pair<Column, Column> places(const Run& run, XAxis x_axis) {
  const Series* losses = run.find("train/loss");
  if (!losses || losses->value.empty()) return {};
  return {losses->step, line_of(run, losses->name, x_axis).x};
}

/// `to` of the value of `from` that is nearest.
std::optional<double> nearest(const Column& from, const Column& to, double value) {
  if (from.empty() || from.size() != to.size()) return {};
  auto at = static_cast<size_t>(std::min<std::ptrdiff_t>(std::lower_bound(from.begin(), from.end(), value) - from.begin(),
                                                         static_cast<std::ptrdiff_t>(from.size()) - 1));
  if (at > 0 && std::abs(from[at - 1] - value) < std::abs(from[at] - value)) --at;
  return to[at];
}

}  // namespace

std::optional<double> place_of_step(const Run& run, qint64 step, XAxis x_axis) {
  const auto [steps, xs] = places(run, x_axis);
  return nearest(steps, xs, static_cast<double>(step));
}

std::optional<qint64> step_at(const Run& run, double x, XAxis x_axis) {
  const auto [steps, xs] = places(run, x_axis);
  const std::optional<double> step = nearest(xs, steps, x);
  return step ? std::optional(static_cast<qint64>(*step)) : std::nullopt;
}

qint64 nearest_capture(const QString& directory, qint64 step) {
  qint64 nearest = -1;
  for (const int64_t at : step_files(directory.toStdString(), kCaptures))
    if (nearest < 0 || std::abs(at - step) < std::abs(nearest - step)) nearest = at;
  return nearest;
}

}  // namespace saccade::ui
