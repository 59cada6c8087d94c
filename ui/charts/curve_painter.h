#pragma once
#include <QColor>
#include <QPen>
#include <QPointF>
#include <QRectF>
#include <optional>
#include <vector>

#include "analysis/figures/figure.h"
#include "ui/charts/axis_scale.h"
#include "ui/charts/pyramid.h"

class QPainter;

namespace saccade::ui {

/// A curve made ready for painting and read-out.
class PreparedCurve {
 public:
  PreparedCurve(const Curve& curve, const AxisScale& kind_of_y);
  PreparedCurve(const PreparedCurve&) = delete;
  PreparedCurve(PreparedCurve&&) = delete;

  const Curve& curve() const { return curve_; }
  bool sorted() const { return sorted_; }  ///< x never falls: envelope and bisection apply
  size_t size() const { return shown_y_.size(); }
  double shown_y(size_t i) const { return shown_y_[i]; }  ///< as the axis scales it; NaN where it cannot be drawn
  const MinMaxPyramid& pyramid() const { return pyramid_; }
  /// The same of the edges of the band, as far as there are some: taken once, for curves outlive many figures that they are drawn in.
  const std::vector<double>& shown_low() const { return shown_low_; }
  const std::vector<double>& shown_high() const { return shown_high_; }

  /// Index range with low <= x <= high; needs sorted().
  std::pair<size_t, size_t> range(double low, double high) const;
  /// The drawable point next to x; nothing when there is none. Needs sorted().
  std::optional<size_t> nearest(double x) const;
  /// y at x, between its neighbours on a straight line of the axis; NaN where none or a gap is. Needs sorted().
  double at(double x) const;

 private:
  const Curve curve_;
  const AxisScale kind_;  ///< of y; its ends mean nothing
  std::vector<double> shown_y_, shown_low_, shown_high_;
  MinMaxPyramid pyramid_;
  bool sorted_ = false;
};

/// Plot area with its two axes.
struct Plane {
  QRectF area;
  AxisScale x, y;

  QPointF to(double vx, double vy) const {
    return {area.left() + x.fraction(vx) * area.width(), area.bottom() - y.fraction(vy) * area.height()};
  }
  QPointF from(const QPointF& p) const {
    return {x.at((p.x() - area.left()) / area.width()), y.at((area.bottom() - p.y()) / area.height())};
  }
};

/// What paint_curve draws, in painter units and clipped to the plot area by computation (SVG knows no clip): lines, points
/// that stand alone, and bars. A bar reaches from the least to the greatest of more than four points that share a column of
/// `column` units, and to the last point before, so nothing that would show is lost.
struct CurvePath {
  struct Bar {
    double x, top, bottom;
  };
  std::vector<std::vector<QPointF>> lines;
  std::vector<QPointF> dots;
  std::vector<Bar> bars;
};
CurvePath curve_path(const PreparedCurve& curve, const Plane& plane, double column);

/// The points at which a curve of sparse markers has them: about every 90 points of paper, and the last that is seen.
std::vector<QPointF> sparse_places(const PreparedCurve& curve, const Plane& plane, double unit);

/// `unit`: painter units per point (1/72 inch). Markers apart, so that no line covers them.
void paint_curve(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, double unit, double column);
void paint_markers(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, const QColor& ground,
                   double unit);
/// The band of a mean, pale, or its bars. `unit`, `column`: see paint_curve().
void paint_band(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, double unit, double column);
double marker_radius(const Curve& curve, double unit);
QPen curve_pen(const Curve& curve, const QColor& colour, double unit);

}  // namespace saccade::ui
