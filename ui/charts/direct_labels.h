#pragma once
#include <QFontMetricsF>

#include "ui/charts/prepared_figure.h"

class QPainter;

namespace saccade::ui {

/// Names of curves at their ends instead of a legend. In painter units; `unit`: of them a point.
double direct_label_width(const PreparedCurves& curves, const QFontMetricsF& metrics, double unit);
/// Each beside the last point that is seen, moved apart where they would cover each other.
void paint_direct_labels(QPainter& painter, const PreparedCurves& curves, const Plane& plane, const QFont& font, bool dark, double unit);

}  // namespace saccade::ui
