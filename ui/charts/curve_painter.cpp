#include "ui/charts/curve_painter.h"

#include <QPaintEngine>
#include <QPainter>
#include <QPen>
#include <QPolygonF>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ui/charts/marker_painter.h"

namespace saccade::ui {

namespace {

/// The part of a line inside a rectangle (Liang and Barsky 1984).
bool clip_line(QPointF& a, QPointF& b, const QRectF& r) {
  const double dx = b.x() - a.x(), dy = b.y() - a.y();
  const double p[4] = {-dx, dx, -dy, dy};
  const double q[4] = {a.x() - r.left(), r.right() - a.x(), a.y() - r.top(), r.bottom() - a.y()};
  double enter = 0, leave = 1;
  for (int i = 0; i < 4; ++i) {
    if (p[i] == 0) {
      if (q[i] < 0) return false;
    } else if (p[i] < 0) {
      enter = std::max(enter, q[i] / p[i]);
    } else {
      leave = std::min(leave, q[i] / p[i]);
    }
  }
  if (enter > leave) return false;
  const QPointF start = a;
  if (leave < 1) b = start + leave * QPointF(dx, dy);
  if (enter > 0) a = start + enter * QPointF(dx, dy);
  return true;
}

/// Takes points one by one, gives clipped lines and lone dots.
class PathBuilder {
 public:
  PathBuilder(CurvePath& path, const QRectF& area) : path_(path), area_(area) {}
  ~PathBuilder() { lift(); }

  void add(const QPointF& point) {
    if (started_) {
      QPointF a = last_, b = point;
      if (clip_line(a, b, area_)) append(a, b);
    }
    alone_ = !started_;
    started_ = true;
    last_ = point;
  }
  /// A point that is drawn already: the line may go on from it, or come to it, but it is no dot by itself.
  void leave_from(const QPointF& point) {
    add(point);
    alone_ = false;
  }
  void arrive_at(const QPointF& point) {
    if (started_) add(point);
  }
  void lift() {
    if (started_ && alone_ && inside(last_)) path_.dots.push_back(last_);
    started_ = alone_ = connected_ = false;
  }

 private:
  bool inside(const QPointF& p) const {
    return p.x() >= area_.left() && p.x() <= area_.right() && p.y() >= area_.top() && p.y() <= area_.bottom();
  }
  void append(const QPointF& a, const QPointF& b) {
    if (!connected_ || path_.lines.back().back() != a) path_.lines.push_back({a});
    path_.lines.back().push_back(b);
    connected_ = true;
  }

  CurvePath& path_;
  const QRectF area_;
  QPointF last_;
  bool started_ = false, alone_ = false, connected_ = false;
};

bool drawable(const PreparedCurve& c, size_t i, const Plane& plane) {
  return std::isfinite(c.shown_y(i)) && std::isfinite(plane.x.shown(c.curve().x[i]));
}

double clamped(double v) { return std::clamp(v, -1e7, 1e7); }

QPointF point_of(const PreparedCurve& c, size_t i, const Plane& plane) {
  const QPointF p = plane.to(c.curve().x[i], plane.y.value(c.shown_y(i)));
  return {clamped(p.x()), clamped(p.y())};
}

void exact(PathBuilder& path, const PreparedCurve& c, size_t begin, size_t end, const Plane& plane) {
  for (size_t i = begin; i < end; ++i) drawable(c, i, plane) ? path.add(point_of(c, i, plane)) : path.lift();
}

/// Points that share a column, as bars; goes along with a PathBuilder that draws what lies between.
class Envelope {
 public:
  Envelope(CurvePath& path, PathBuilder& line, const PreparedCurve& curve, const Plane& plane)
      : path_(path), line_(line), c_(curve), plane_(plane) {}

  void add(size_t begin, size_t end, double x) {
    const MinMaxPyramid::Extent extent = c_.pyramid().extent(begin, end);
    if (extent.empty()) {
      line_.lift();
      return leave();
    }
    double low = extent.low, high = extent.high;
    if (drawable(c_, begin, plane_) && !std::isnan(before_)) {
      low = std::min(low, before_);
      high = std::max(high, before_);
    } else if (drawable(c_, begin, plane_)) {
      line_.arrive_at(point_of(c_, begin, plane_));
    }
    line_.lift();
    bar(x, low, high);
    before_ = drawable(c_, end - 1, plane_) ? c_.shown_y(end - 1) : std::numeric_limits<double>::quiet_NaN();
    last_ = end - 1;
  }
  /// The next points are drawn one by one: the line starts at the last point of the bars.
  void leave() {
    if (!std::isnan(before_)) line_.leave_from(point_of(c_, last_, plane_));
    before_ = std::numeric_limits<double>::quiet_NaN();
  }

 private:
  void bar(double x, double low, double high) {
    const QRectF& a = plane_.area;
    const auto y = [&](double shown) { return a.bottom() - plane_.y.fraction(plane_.y.value(shown)) * a.height(); };
    const auto [top, bottom] = std::minmax({y(low), y(high)});
    if (bottom < a.top() || top > a.bottom()) return;
    path_.bars.push_back({x, std::max(top, a.top()), std::min(bottom, a.bottom())});
  }

  CurvePath& path_;
  PathBuilder& line_;
  const PreparedCurve& c_;
  const Plane& plane_;
  double before_ = std::numeric_limits<double>::quiet_NaN();  ///< NaN: nothing to go on from
  size_t last_ = 0;
};

void sorted_path(CurvePath& path, PathBuilder& line, const PreparedCurve& c, const Plane& plane, double column) {
  const auto [inside_begin, inside_end] = c.range(plane.x.low, plane.x.high);
  const size_t begin = inside_begin > 0 ? inside_begin - 1 : 0, end = std::min(c.size(), inside_end + 1);  // lines from and to outside
  if (static_cast<double>(end - begin) * column <= 2 * plane.area.width()) return exact(line, c, begin, end, plane);
  const auto x = c.curve().x.begin();
  const int columns = std::max(1, static_cast<int>(std::ceil(plane.area.width() / column)));
  Envelope envelope(path, line, c, plane);
  exact(line, c, begin, inside_begin, plane);
  size_t i = inside_begin;
  for (int k = 0; k < columns && i < inside_end; ++k) {  // in the order of growing x, whichever way the axis runs
    const AxisScale forward{plane.x.low, plane.x.high, plane.x.logarithmic, false, plane.x.linear_within};
    const auto last = x + static_cast<std::ptrdiff_t>(inside_end);
    const auto stop = k + 1 == columns ? last : std::upper_bound(x + static_cast<std::ptrdiff_t>(i), last, forward.at((k + 1.0) / columns));
    const size_t next = static_cast<size_t>(stop - x);
    if (next - i > 4) {
      const double across = (k + 0.5) / columns;
      envelope.add(i, next, plane.area.left() + (plane.x.reversed ? 1 - across : across) * plane.area.width());
    } else if (next > i) {
      envelope.leave();
      exact(line, c, i, next, plane);
    }
    i = next;
  }
  envelope.leave();
  exact(line, c, inside_end, end, plane);
}

/// Qt's rasterizer takes time quadratic in the edges that cross a scan line: 10⁶ noisy points took 5 s as one polyline.
void draw_in_pieces(QPainter& painter, const std::vector<QPointF>& line) {
  constexpr size_t kPiece = 24;
  QPen pen = painter.pen();
  const bool dashed = pen.style() != Qt::SolidLine;
  double offset = 0;
  for (size_t begin = 0; begin + 1 < line.size(); begin += kPiece) {
    const size_t end = std::min(line.size(), begin + kPiece + 1);
    if (dashed) {
      pen.setDashOffset(offset / pen.widthF());
      painter.setPen(pen);
      for (size_t i = begin + 1; i < end; ++i) offset += std::hypot(line[i].x() - line[i - 1].x(), line[i].y() - line[i - 1].y());
    }
    painter.drawPolyline(line.data() + begin, static_cast<int>(end - begin));
  }
}

/// Whether a dashed line that began at 0 draws at `along`, both in painter units.
bool dash_on(const QPen& pen, double along) {
  if (pen.style() == Qt::SolidLine) return true;
  const QList<qreal> pattern = pen.dashPattern();
  double phase = std::fmod(along / pen.widthF(), std::accumulate(pattern.begin(), pattern.end(), 0.0));
  for (qsizetype i = 0; i < pattern.size(); ++i) {
    if (phase < pattern[i]) return i % 2 == 0;
    phase -= pattern[i];
  }
  return true;
}

}  // namespace

PreparedCurve::PreparedCurve(const Curve& curve, const AxisScale& kind_of_y) : curve_(curve), kind_(kind_of_y) {
  const size_t n = std::min(curve.x.size(), curve.y.size());
  shown_y_.assign(curve.y.begin(), curve.y.begin() + static_cast<std::ptrdiff_t>(n));
  for (double& y : shown_y_) {
    y = kind_.shown(y);
    if (!std::isfinite(y)) y = std::numeric_limits<double>::quiet_NaN();
  }
  for (const auto& [edge, shown] : {std::pair(&curve.low, &shown_low_), std::pair(&curve.high, &shown_high_)})
    for (const double y : *edge) shown->push_back(kind_.shown(y));
  sorted_ = curve.x.size() == n;
  for (size_t i = 0; sorted_ && i < n; ++i) sorted_ = !std::isnan(curve.x[i]) && (i == 0 || curve.x[i - 1] <= curve.x[i]);
  if (sorted_) pyramid_ = MinMaxPyramid(shown_y_);
}

std::pair<size_t, size_t> PreparedCurve::range(double low, double high) const {
  const auto& x = curve_.x;
  const auto first = std::lower_bound(x.begin(), x.end(), low), last = std::upper_bound(first, x.end(), high);
  return {static_cast<size_t>(first - x.begin()), static_cast<size_t>(last - x.begin())};
}

std::optional<size_t> PreparedCurve::nearest(double x) const {
  const auto right = static_cast<size_t>(std::lower_bound(curve_.x.begin(), curve_.x.end(), x) - curve_.x.begin());
  std::optional<size_t> best;
  const auto offer = [&](size_t i) {
    if (!best || std::abs(curve_.x[i] - x) < std::abs(curve_.x[*best] - x)) best = i;
  };
  for (size_t i = right; i < size(); ++i)
    if (!std::isnan(shown_y_[i])) {
      offer(i);
      break;
    }
  for (size_t i = right; i > 0; --i)
    if (!std::isnan(shown_y_[i - 1])) {
      offer(i - 1);
      break;
    }
  return best;
}

double PreparedCurve::at(double x) const {
  const auto right = static_cast<size_t>(std::lower_bound(curve_.x.begin(), curve_.x.end(), x) - curve_.x.begin());
  if (right == size()) return std::nan("");
  if (curve_.x[right] == x) return kind_.value(shown_y_[right]);
  if (right == 0) return std::nan("");
  const double share = (x - curve_.x[right - 1]) / (curve_.x[right] - curve_.x[right - 1]);
  return kind_.value(shown_y_[right - 1] + share * (shown_y_[right] - shown_y_[right - 1]));
}

CurvePath curve_path(const PreparedCurve& curve, const Plane& plane, double column) {
  CurvePath path;
  PathBuilder builder(path, plane.area);
  curve.sorted() ? sorted_path(path, builder, curve, plane, column) : exact(builder, curve, 0, curve.size(), plane);
  builder.lift();
  return path;
}

QPen curve_pen(const Curve& curve, const QColor& colour, double unit) {
  QPen pen(colour, curve.width * unit, Qt::SolidLine, Qt::FlatCap, Qt::BevelJoin);
  switch (curve.dash) {  // lengths in pen widths
    case Dash::solid: break;
    case Dash::dash: pen.setDashPattern({4.5, 2.5}); break;
    case Dash::dot: pen.setDashPattern({1.2, 1.8}); break;
    case Dash::dash_dot: pen.setDashPattern({5, 2, 1.2, 2}); break;
  }
  return pen;
}

namespace {

/// On a screen, of a band with several points a column: a bar a column, which hides none of them and takes a small part of the time of a
/// polygon with as many corners.
void paint_columns(QPainter& painter, const Curve& of, size_t begin, size_t end, const Plane& plane, const QColor& colour, double column) {
  struct Bar {
    double top = INFINITY, bottom = -INFINITY;
  };
  std::vector<Bar> bars(static_cast<size_t>(std::ceil(plane.area.width() / column)));
  for (size_t i = begin; i < end; ++i) {
    const QPointF low = plane.to(of.x[i], of.low[i]), high = plane.to(of.x[i], of.high[i]);
    const double at = std::floor((high.x() - plane.area.left()) / column);
    if (!(at >= 0) || at >= static_cast<double>(bars.size()) || !std::isfinite(high.y())) continue;
    Bar& bar = bars[static_cast<size_t>(at)];
    bar.top = std::min(bar.top, high.y());
    bar.bottom = std::max(bar.bottom, std::isfinite(low.y()) ? low.y() : plane.area.bottom());
  }
  const auto filled = [](const Bar& bar) { return bar.top <= bar.bottom; };
  const auto first = std::find_if(bars.begin(), bars.end(), filled), last = std::find_if(bars.rbegin(), bars.rend(), filled).base();
  painter.setRenderHint(QPainter::Antialiasing, false);  // bars that meet have no seam
  Bar bar;
  for (auto place = first; place < last; ++place) {
    if (filled(*place)) bar = *place;
    const QRectF rect(plane.area.left() + column * static_cast<double>(place - bars.begin()), bar.top, column, bar.bottom - bar.top);
    painter.fillRect(rect.intersected(plane.area), colour);
  }
  painter.setRenderHint(QPainter::Antialiasing);
}

/// With ends as wide as a marker where they lie inside the axes.
void paint_bars(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, double unit) {
  const Curve& of = curve.curve();
  const QRectF& a = plane.area;
  const double half = 2 * unit;
  QColor pale = colour;
  pale.setAlphaF(0.7F);
  painter.setPen(QPen(pale, 0.7 * unit, Qt::SolidLine, Qt::FlatCap));
  for (size_t i = 0; i < of.x.size(); ++i) {
    const QPointF low = plane.to(of.x[i], of.low[i]), high = plane.to(of.x[i], of.high[i]);
    const double x = high.x() + *of.bars * unit, top = high.y(), bottom = std::isfinite(low.y()) ? low.y() : a.bottom();
    if (!std::isfinite(x) || !std::isfinite(top) || !drawable(curve, i, plane) || bottom - top < 0.5 * unit) continue;
    if (high.x() < a.left() - 0.5 || high.x() > a.right() + 0.5 || bottom < a.top() || top > a.bottom()) continue;
    painter.drawLine(QPointF(x, std::max(top, a.top())), QPointF(x, std::min(bottom, a.bottom())));
    for (const double end : {top, bottom})
      if (end >= a.top() - 0.5 && end <= a.bottom() + 0.5) painter.drawLine(QPointF(x - half, end), QPointF(x + half, end));
  }
}

}  // namespace

void paint_band(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, double unit, double column) {
  const Curve& of = curve.curve();
  if (of.low.empty() || of.low.size() != of.x.size() || of.high.size() != of.x.size() || !curve.sorted()) return;
  if (of.bars) return paint_bars(painter, curve, plane, colour, unit);
  const auto [inside, end_inside] = curve.range(plane.x.low, plane.x.high);
  const size_t begin = inside > 0 ? inside - 1 : 0, end = std::min(of.x.size(), end_inside + 1);
  QColor pale = colour;
  pale.setAlphaF(0.18F);
  const bool screen = painter.paintEngine() && painter.paintEngine()->type() == QPaintEngine::Raster;
  if (screen && static_cast<double>(end - begin) * column > 1.5 * plane.area.width())
    return paint_columns(painter, of, begin, end, plane, pale, column);
  const size_t stride = 1 + (end - begin) / static_cast<size_t>(2 * std::max(1.0, plane.area.width()));
  QPolygonF polygon;
  std::vector<QPointF> back;
  const auto inside_area = [&](const QPointF& p) {
    return QPointF(std::clamp(p.x(), plane.area.left(), plane.area.right()), std::clamp(p.y(), plane.area.top(), plane.area.bottom()));
  };
  for (size_t i = begin; i < end; i += stride) {
    const QPointF low = plane.to(of.x[i], of.low[i]), high = plane.to(of.x[i], of.high[i]);
    if (!std::isfinite(low.x()) || !std::isfinite(high.y())) continue;
    polygon << inside_area(high);
    back.push_back(inside_area(std::isfinite(low.y()) ? low : QPointF(low.x(), plane.area.bottom())));
  }
  for (auto point = back.rbegin(); point != back.rend(); ++point) polygon << *point;
  painter.setPen(Qt::NoPen);
  painter.setBrush(pale);
  painter.drawPolygon(polygon);
}

void paint_curve(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, double unit, double column) {
  const CurvePath path = curve_path(curve, plane, column);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(curve_pen(curve.curve(), colour, unit));
  for (const auto& line : path.lines) draw_in_pieces(painter, line);
  const QPen pen = curve_pen(curve.curve(), colour, unit);
  const double half = std::max(pen.widthF(), 1.2 * column) / 2;  // bars overlap their neighbours: no seams
  for (const auto& bar : path.bars)
    if (dash_on(pen, bar.x - plane.area.left()))
      painter.fillRect(QRectF(QPointF(bar.x - half, bar.top - half), QPointF(bar.x + half, bar.bottom + half)).intersected(plane.area),
                       colour);
  if (curve.curve().marker != Marker::none && !curve.curve().sparse) return;  // a point that stands alone has its marker
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  for (const QPointF& dot : path.dots) painter.drawEllipse(dot, 1.1 * curve.curve().width * unit, 1.1 * curve.curve().width * unit);
}

std::vector<QPointF> sparse_places(const PreparedCurve& curve, const Plane& plane, double unit) {
  std::vector<size_t> chosen;
  if (curve.sorted()) {
    const Curve& of = curve.curve();
    const double turn = 0.17 * static_cast<double>(of.marker) + 0.13 * ((of.colour.r + 2 * of.colour.g + 3 * of.colour.b) % 7);
    const double step = 90 * unit, from = step * turn;  // shapes and colours take turns, so that they seldom meet
    for (double x = std::fmod(from, step); x < plane.area.width(); x += step) {
      const auto i = curve.nearest(plane.from({plane.area.left() + x, plane.area.center().y()}).x());
      if (i && std::abs(point_of(curve, *i, plane).x() - plane.area.left() - x) < step / 2) chosen.push_back(*i);
    }
    const auto [begin, end] = curve.range(plane.x.low, plane.x.high);
    for (size_t i = end; i > begin; --i)
      if (drawable(curve, i - 1, plane)) {
        chosen.push_back(i - 1);
        break;
      }
  } else {
    const size_t step = std::max<size_t>(1, curve.size() / 6);
    for (size_t i = step - 1; i < curve.size(); i += step) chosen.push_back(i);
  }
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  std::vector<QPointF> places;
  for (const size_t i : chosen) {
    if (!drawable(curve, i, plane)) continue;
    const QPointF p = point_of(curve, i, plane);
    if (plane.area.adjusted(-0.5, -0.5, 0.5, 0.5).contains(p)) places.push_back(p);
  }
  return places;
}

double marker_radius(const Curve& curve, double unit) { return std::max(1.8, (curve.sparse ? 1.6 : 1.3) * curve.width) * unit; }

void paint_markers(QPainter& painter, const PreparedCurve& curve, const Plane& plane, const QColor& colour, const QColor& ground,
                   double unit) {
  const Curve& of = curve.curve();
  if (of.marker == Marker::none) return;
  const double radius = marker_radius(of, unit);
  if (of.sparse) {
    for (const QPointF& p : sparse_places(curve, plane, unit)) paint_marker(painter, of.marker, p, radius, colour, ground);
    return;
  }
  for (size_t i = 0; i < curve.size(); ++i) {
    if (!drawable(curve, i, plane)) continue;
    const QPointF p = point_of(curve, i, plane);
    if (plane.area.adjusted(-0.5, -0.5, 0.5, 0.5).contains(p)) paint_marker(painter, of.marker, p, radius, colour);
  }
}

}  // namespace saccade::ui
