#include "ui/charts/strip_painter.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/charts/colours.h"
#include "ui/charts/map_painter.h"
#include "ui/charts/ticks.h"

namespace saccade::ui {

namespace {

constexpr double kGap = 5, kLeast = 46;  // points

QRectF strip_rect(const HeatMap& map, const Plane& plane, const QFont& font, double unit) {
  const double width = strip_width(map, font, unit) - kGap * unit;
  return {plane.area.right() + kGap * unit, plane.area.top(), width, plane.area.height()};
}

/// What the bars reach to on either side of zero. A few that are much longer than all others, as sure choices are, would make those
/// invisible: they are cut there, and the scale says so.
struct Reach {
  double low = 0, high = 1;
  bool cut = false;
  double at(const QRectF& strip, double value) const {
    return strip.left() + (std::clamp(value, low, high) - low) / (high - low) * strip.width();
  }
};
Reach reach(const HeatMap& map) {
  std::vector<double> above;
  Reach reach{0, 0, false};
  for (const float v : map.strip) {
    if (!std::isfinite(v)) continue;
    reach.low = std::min(reach.low, static_cast<double>(v)), reach.high = std::max(reach.high, static_cast<double>(v));
    if (v > 0) above.push_back(static_cast<double>(v));
  }
  if (above.size() >= 20) {
    const auto most = above.begin() + static_cast<std::ptrdiff_t>(above.size() * 95 / 100);
    std::nth_element(above.begin(), most, above.end());
    reach.cut = reach.high > 1.5 * *most;
    if (reach.cut) reach.high = *most;
  }
  if (!(reach.high > reach.low)) reach.high = reach.low + 1;
  return reach;
}

void paint_bars(QPainter& painter, const HeatMap& map, const Plane& plane, const QRectF& strip, const QColor& colour) {
  const Reach scale = reach(map);
  const auto at = [&](double v) { return scale.at(strip, v); };
  const double pixel = 1 / painter.device()->devicePixelRatioF();
  QColor pale = colour;
  pale.setAlphaF(0.45F);
  const auto bar = [&](double value, double top, double bottom, const QColor& of) {
    const auto [left, right] = std::minmax({at(0), at(value)});
    painter.fillRect(QRectF(left, top, std::max(right - left, 0.5 * pixel), bottom - top), of);
  };
  const int64_t rows = cell_rows(map);
  for (int64_t r = 0; r < rows;) {
    QRectF cell = cell_rect(map, plane, r, 0);
    double least = map.strip[static_cast<size_t>(r)], most = least;
    int64_t next = r + 1;
    for (; next < rows && cell.height() < pixel; ++next) {  // rows of one pixel together
      const double v = map.strip[static_cast<size_t>(next)];
      least = std::isnan(least) ? v : std::fmin(least, v), most = std::isnan(most) ? v : std::fmax(most, v);
      cell = cell.united(cell_rect(map, plane, next, 0));
    }
    r = next;
    const double top = std::max(cell.top(), strip.top()), bottom = std::min(cell.bottom(), strip.bottom());
    if (bottom <= top || !std::isfinite(most)) continue;
    if (most > least) bar(most, top, bottom, pale);
    bar(least, top, bottom, colour);
  }
}

}  // namespace

double strip_width(const HeatMap& map, const QFont& font, double unit) {
  if (map.strip.empty() || static_cast<int64_t>(map.strip.size()) != cell_rows(map)) return 0;
  return kGap * unit + std::max(kLeast * unit, QFontMetricsF(font).horizontalAdvance(QString::fromStdString(map.strip_title)));
}

void paint_strip(QPainter& painter, const HeatMap& map, const Plane& plane, const QFont& font, const FigureColours& colours, double unit) {
  if (strip_width(map, font, unit) == 0) return;
  const QRectF strip = strip_rect(map, plane, font, unit);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  paint_bars(painter, map, plane, strip, colours.quiet_text);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colours.axis, 0.5 * unit));
  painter.drawRect(strip);
  paint_strip_mark(painter, map, plane, font, colours, unit, map.strip_row);
  const QFontMetricsF metrics(font);
  painter.setFont(font);
  painter.setPen(colours.quiet_text);
  const Reach scale = reach(map);
  const double line = strip.bottom() + 3 * unit + metrics.ascent();
  const auto rounded = [](double v) { return short_number(QString::number(v, 'g', 2).toDouble()); };
  const QString least = rounded(scale.low), most = (scale.cut ? QString(QChar(0x2265)) : QString()) + rounded(scale.high);
  painter.drawText(QPointF(strip.left(), line), least);
  painter.drawText(QPointF(strip.right() - metrics.horizontalAdvance(most), line), most);
  painter.setPen(colours.text);
  const QString title = QString::fromStdString(map.strip_title);
  painter.drawText(QPointF(strip.center().x() - metrics.horizontalAdvance(title) / 2, line + 1.15 * metrics.height()), title);
  painter.restore();
}

void paint_strip_mark(QPainter& painter, const HeatMap& map, const Plane& plane, const QFont& font, const FigureColours& colours,
                      double unit, int64_t row) {
  if (row < 0 || row >= cell_rows(map) || strip_width(map, font, unit) == 0) return;
  const double value = static_cast<double>(map.strip[static_cast<size_t>(row)]), y = cell_rect(map, plane, row, 0).center().y();
  const QRectF strip = strip_rect(map, plane, font, unit);
  if (!std::isfinite(value) || y < strip.top() || y > strip.bottom()) return;
  const Reach scale = reach(map);
  const double zero = scale.at(strip, 0), end = scale.at(strip, value);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colours.text, 1.2 * unit));
  painter.drawLine(QPointF(zero, y), QPointF(end, y));
  painter.setBrush(colours.accent);
  painter.drawEllipse(QPointF(end, y), 2.4 * unit, 2.4 * unit);
}

std::optional<int64_t> strip_row_at(const HeatMap& map, const Plane& plane, const QFont& font, double unit, const QPointF& at) {
  if (strip_width(map, font, unit) == 0 || !strip_rect(map, plane, font, unit).contains(at)) return {};
  const auto [first, last] = row_extent(map);
  const double value = plane.from({plane.area.center().x(), at.y()}).y();
  const auto row = static_cast<int64_t>(std::floor((value - first) / (last - first) * static_cast<double>(cell_rows(map))));
  return row >= 0 && row < cell_rows(map) ? std::optional(row) : std::nullopt;
}

}  // namespace saccade::ui
