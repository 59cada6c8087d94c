#include "ui/charts/marker_painter.h"

#include <QPainter>
#include <QPolygonF>
#include <cmath>
#include <numbers>

namespace saccade::ui {

namespace {

/// Corners on a circle, the first at `turn` of it, counted from the right.
QPolygonF corners(int count, const QPointF& at, double radius, double turn) {
  QPolygonF polygon;
  for (int i = 0; i < count; ++i) {
    const double angle = 2 * std::numbers::pi * (turn + static_cast<double>(i) / count);
    polygon << at + radius * QPointF(std::cos(angle), std::sin(angle));
  }
  return polygon;
}

}  // namespace

void paint_marker(QPainter& painter, Marker marker, const QPointF& at, double radius, const QColor& colour, const QColor& hollow) {
  const bool filled = !hollow.isValid();
  painter.setPen(filled ? QPen(Qt::NoPen) : QPen(colour, 0.5 * radius, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin));
  painter.setBrush(filled ? colour : hollow);
  switch (marker) {
    case Marker::none: break;
    case Marker::circle: painter.drawEllipse(at, radius, radius); break;
    case Marker::square: painter.drawPolygon(corners(4, at, 1.25 * radius, 0.125)); break;
    case Marker::triangle: painter.drawPolygon(corners(3, at, 1.5 * radius, -0.25)); break;
    case Marker::diamond: painter.drawPolygon(corners(4, at, 1.35 * radius, 0)); break;
    case Marker::wedge: painter.drawPolygon(corners(3, at, 1.5 * radius, 0.25)); break;
    case Marker::cross: {
      const double arm = 1.2 * radius;
      painter.setPen(QPen(colour, 0.7 * radius, Qt::SolidLine, Qt::FlatCap));
      painter.drawLine(at - QPointF(arm, arm), at + QPointF(arm, arm));
      painter.drawLine(at - QPointF(arm, -arm), at + QPointF(arm, -arm));
      break;
    }
  }
}

}  // namespace saccade::ui
