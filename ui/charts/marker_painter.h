#pragma once
#include <QColor>
#include <QPointF>

#include "analysis/figures/figure.h"

class QPainter;

namespace saccade::ui {

/// A marker of about `radius`, equal in area whatever its shape. `hollow`: filled with the ground.
void paint_marker(QPainter& painter, Marker marker, const QPointF& at, double radius, const QColor& colour, const QColor& hollow = {});

}  // namespace saccade::ui
