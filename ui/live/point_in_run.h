#pragma once
#include <QString>
#include <functional>
#include <optional>
#include <vector>

#include "analysis/figures/line.h"
#include "ui/charts/axis_scale.h"
#include "ui/shown_runs.h"

namespace saccade::ui {

/// A place in a run: what was pointed at in a chart.
struct PointInRun {
  QString directory;
  qint64 step = 0;
};

/// What a chart draws of a run, over the axis that is shown.
using CurveOfRun = std::function<Line(const Run& run)>;
CurveOfRun curve_of_series(const QString& series, XAxis x_axis);

/// The run one of whose `curves` comes nearest to (x, y), across the scale of the chart's y axis; of seeds drawn as their mean the one
/// nearest to it. Nothing where no run reaches x.
std::optional<PointInRun> point_in_run(const ShownRuns& shown, const std::vector<CurveOfRun>& curves, XAxis x_axis, double x, double y,
                                       const AxisScale& y_scale);
/// Where a step of a run stands on an axis, and the step that stands nearest to a place; nothing where the run has no losses.
std::optional<double> place_of_step(const Run& run, qint64 step, XAxis x_axis);
std::optional<qint64> step_at(const Run& run, double x, XAxis x_axis);
/// The capture nearest to a step; −1 where the run has none.
qint64 nearest_capture(const QString& directory, qint64 step);

}  // namespace saccade::ui
