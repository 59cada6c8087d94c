#include "ui/charts/direct_labels.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/charts/colours.h"

namespace saccade::ui {
namespace {

constexpr double kGap = 5;  // points, between curve and name

bool has_name(const PreparedCurve& curve) { return curve.curve().in_legend && !curve.curve().label.empty() && curve.size() > 0; }

struct Label {
  const Curve* curve;
  QPointF end;
  double y;
};

/// The last point within the plot area; with a reversed axis that is the one furthest to the right.
std::optional<QPointF> end_of(const PreparedCurve& curve, const Plane& plane) {
  std::optional<QPointF> end;
  for (size_t i = 0; i < curve.size(); ++i) {
    if (std::isnan(curve.shown_y(i))) continue;
    const QPointF p = plane.to(curve.curve().x[i], curve.curve().y[i]);
    if (plane.area.adjusted(-1, -1, 1, 1).contains(p) && (!end || p.x() >= end->x())) end = p;
  }
  return end;
}

/// At least `height` apart, within the area, in their order.
void move_apart(std::vector<Label>& labels, double height, const QRectF& area) {
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, i == 0 ? area.top() + height / 2 : labels[i - 1].y + height);
  for (size_t i = labels.size(); i-- > 0;)
    labels[i].y = std::min(labels[i].y, i + 1 == labels.size() ? area.bottom() - height / 2 : labels[i + 1].y - height);
}

}  // namespace

double direct_label_width(const PreparedCurves& curves, const QFontMetricsF& metrics, double unit) {
  double widest = 0;
  for (const auto& curve : curves)
    if (has_name(*curve)) widest = std::max(widest, metrics.horizontalAdvance(QString::fromStdString(curve->curve().label)));
  return widest > 0 ? widest + (kGap + 3) * unit : 0;
}

void paint_direct_labels(QPainter& painter, const PreparedCurves& curves, const Plane& plane, const QFont& font, bool dark, double unit) {
  const QFontMetricsF metrics(font);
  std::vector<Label> labels;
  for (const auto& curve : curves)
    if (has_name(*curve))
      if (const auto end = end_of(*curve, plane)) labels.push_back({&curve->curve(), *end, end->y()});
  move_apart(labels, 1.05 * metrics.height(), plane.area);
  painter.setFont(font);
  for (const Label& label : labels) {
    const QColor colour = seen_colour(label.curve->colour, dark);
    const QPointF begin(plane.area.right() + kGap * unit, label.y);
    if (std::hypot(begin.x() - label.end.x(), begin.y() - label.end.y()) > (kGap + 3) * unit) {
      painter.setPen(QPen(colour, 0.4 * unit, Qt::DotLine));
      painter.drawLine(label.end, begin - QPointF(unit, 0));
    }
    painter.setPen(colour);
    painter.drawText(begin + QPointF(0, 0.36 * metrics.ascent()), QString::fromStdString(label.curve->label));
  }
}

}  // namespace saccade::ui
