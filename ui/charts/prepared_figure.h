#pragma once
#include <QImage>
#include <memory>
#include <vector>

#include "ui/charts/curve_painter.h"

namespace saccade::ui {

/// A value beyond the edge of what an axis shows by itself.
struct RunsOff {
  Qt::Edge edge;
  double value;
};

using PreparedCurves = std::vector<std::shared_ptr<const PreparedCurve>>;

/// A figure with all that can be reckoned before its size is known. Never changes, so it is made in one thread and shown in another.
struct PreparedFigure {
  Figure figure;
  PreparedCurves curves;
  AxisScale x, y;                 ///< of the whole figure
  std::vector<RunsOff> runs_off;  ///< beyond these
  std::vector<QImage> map;        ///< map_levels(); empty: none
  bool filled = false;            ///< there is anything to see
};

/// `before`: curves that are the same there are not prepared again, and are the same objects.
std::shared_ptr<const PreparedFigure> prepare_figure(Figure figure, const std::shared_ptr<const PreparedFigure>& before = {});

}  // namespace saccade::ui
