#pragma once
#include <QString>
#include <QStringList>
#include <optional>

#include "ui/charts/axis_scale.h"
#include "ui/shown_runs.h"

namespace saccade::ui {

/// A place in a run: what was pointed at in a chart.
struct PointInRun {
  QString directory;
  qint64 step = 0;
};

/// The run one of whose `series` comes nearest to (x, y), across the scale of the chart's y axis; of seeds drawn as their mean the one
/// nearest to it. Nothing where no run reaches x.
std::optional<PointInRun> point_in_run(const ShownRuns& shown, const QStringList& series, XAxis x_axis, double x, double y,
                                       const AxisScale& y_scale);
/// The capture nearest to a step; −1 where the run has none.
qint64 nearest_capture(const QString& directory, qint64 step);

}  // namespace saccade::ui
