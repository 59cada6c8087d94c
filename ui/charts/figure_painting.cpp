#include <QFontMetricsF>
#include <QPainter>
#include <limits>

#include "ui/charts/chart_scene.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/ticks.h"

namespace saccade::ui {

FigureStyle FigureStyle::fromPalette(const QPalette& palette, const QFont& font) {
  FigureStyle style;
  style.dark = palette.color(QPalette::Base).lightness() < 128;
  style.font_points = 0.9 * (font.pointSizeF() > 0 ? font.pointSizeF() : 10);
  style.families = font.families();
  style.whole_legend = false;
  style.legend = LegendKind::fitting;
  return style;
}

bool has_data(const Figure& figure) {
  if (figure.map && figure.map->rows > 0 && figure.map->columns > 0) return true;
  const AxisScale x = AxisScale::of(figure.x), y = AxisScale::of(figure.y);
  for (const Curve& curve : figure.curves)
    for (size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i)
      if (std::isfinite(x.shown(curve.x[i])) && std::isfinite(y.shown(curve.y[i]))) return true;
  return false;
}

void paintFigure(QPainter& painter, const QRectF& area, const Figure& figure, const FigureStyle& style) {
  // On paper the scene is laid out in half points, so that fonts in whole scene units are fine enough; on a screen in its pixels.
  const double dpi = painter.device()->logicalDpiX();
  const bool paper = dpi > 130;
  const double unit = paper ? 2 : dpi / 72, scale = paper ? dpi / 144 : 1;
  ChartScene scene(figure, style, unit);
  scene.layout(area.size() / scale);
  painter.save();
  painter.translate(area.topLeft());
  painter.scale(scale, scale);
  scene.paint(painter, paper ? 0.2 * unit : 1 / painter.device()->devicePixelRatioF(), paper);
  painter.restore();
}

QSizeF figure_size_mm(const Figure& figure, const FigureStyle& style) {
  constexpr double kUnit = 2, kUnitsPerMm = 72 * kUnit / 25.4;
  const ChartScene scene(Figure{}, style, kUnit);
  const QSizeF endless(figure.width_mm * kUnitsPerMm, std::numeric_limits<int>::max());
  const double legend = legend_of(figure, QFontMetricsF(scene.font()), endless, kUnit, style.legend).height / kUnitsPerMm;
  return {figure.width_mm, figure.height_mm + std::max(0.0, legend - figure.height_mm / 3)};
}

namespace {

QString curve_summary(const Curve& curve) {
  const size_t n = std::min(curve.x.size(), curve.y.size());
  size_t first = n, last = n, least = n;
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(curve.y[i])) continue;
    if (first == n) first = i;
    last = i;
    if (least == n || curve.y[i] < curve.y[least]) least = i;
  }
  const QString label = QString::fromStdString(curve.label);
  if (first == n) return QStringLiteral("%1: no values.").arg(label);
  return QStringLiteral("%1: from %2 at %3 to %4 at %5, least %6.")
      .arg(label, short_number(curve.y[first]), short_number(curve.x[first]), short_number(curve.y[last]), short_number(curve.x[last]),
           short_number(curve.y[least]));
}

}  // namespace

QString figure_summary(const Figure& figure) {
  if (!has_data(figure)) return QStringLiteral("No data.");
  QStringList parts;
  if (figure.map && figure.map->cells[0] > 0)
    parts << QStringLiteral("Map of %1 rows (%2) and %3 columns (%4), drawn in blocks of %5 × %6; colour: %7 from %8 to %9.")
                 .arg(figure.map->cells[0])
                 .arg(QString::fromStdString(figure.y.title))
                 .arg(figure.map->cells[1])
                 .arg(QString::fromStdString(figure.x.title))
                 .arg(figure.map->block[0])
                 .arg(figure.map->block[1])
                 .arg(QString::fromStdString(figure.map->value_title), short_number(figure.map->range[0]),
                      short_number(figure.map->range[1]));
  else if (figure.map)
    parts << QStringLiteral("Map of %1 rows (%2) and %3 columns (%4); colour: %5 from %6 to %7.")
                 .arg(figure.map->rows)
                 .arg(QString::fromStdString(figure.y.title))
                 .arg(figure.map->columns)
                 .arg(QString::fromStdString(figure.x.title), QString::fromStdString(figure.map->value_title),
                      short_number(figure.map->range[0]), short_number(figure.map->range[1]));
  else
    parts << QStringLiteral("%1 against %2.").arg(QString::fromStdString(figure.y.title), QString::fromStdString(figure.x.title));
  for (const Curve& curve : figure.curves)
    if (!curve.x.empty() && curve.in_legend && !curve.label.empty()) parts << curve_summary(curve);
  return parts.join(QLatin1Char(' '));
}

}  // namespace saccade::ui
