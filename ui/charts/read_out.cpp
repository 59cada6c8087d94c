#include "ui/charts/read_out.h"

#include <QFontMetricsF>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/charts/fitting_name.h"
#include "ui/charts/map_painter.h"
#include "ui/charts/marker_painter.h"
#include "ui/charts/ticks.h"

namespace saccade::ui {

namespace {

constexpr size_t kMostLines = 12;
constexpr double kReach = 18;  // points around the mouse within which a single point is told

/// "tokens" of "tokens (log)" and the like stays; the unit in parentheses goes behind the number.
QString with_unit(const QString& number, const std::string& axis_title) {
  const QString title = QString::fromStdString(axis_title);
  const qsizetype open = title.lastIndexOf(QLatin1Char('(')), close = title.lastIndexOf(QLatin1Char(')'));
  if (open < 0 || close < open) return title.isEmpty() ? number : number + QLatin1Char(' ') + title;
  return QStringLiteral("%1 %2 %3").arg(title.left(open).trimmed(), number, title.mid(open + 1, close - open - 1));
}

std::optional<ReadOut> nearest_point(const Figure& figure, const ChartScene& scene, const QPointF& at, bool dark) {
  double best = kReach * scene.unit();
  std::optional<ReadOut> out;
  for (const auto& curve : scene.curves()) {
    if (curve->sorted() || curve->curve().label.empty()) continue;
    for (size_t i = 0; i < curve->size(); ++i) {
      const QPointF p = scene.plane().to(curve->curve().x[i], curve->curve().y[i]);
      const double distance = std::hypot(p.x() - at.x(), p.y() - at.y());
      if (!(distance < best) || !scene.plane().area.contains(p)) continue;
      best = distance;
      out = ReadOut{
          QString::fromStdString(curve->curve().label),
          {{with_unit(short_number(curve->curve().x[i]), figure.x.title), seen_colour(curve->curve().colour, dark), curve->curve().marker},
           {with_unit(short_number(curve->curve().y[i]), figure.y.title), {}}},
          {p},
          {}};
    }
  }
  return out;
}

}  // namespace

std::optional<ReadOut> read_out(const Figure& figure, const ChartScene& scene, const QPointF& at, bool dark, bool brief) {
  if (figure.map || !scene.plane().area.contains(at)) return {};
  if (auto point = nearest_point(figure, scene, at, dark)) return point;
  ReadOut out;
  const double x = scene.plane().from(at).x();
  if (!brief) out.heading = with_unit(short_number(x), figure.x.title);
  out.x = at.x();
  struct Found {
    const Curve* curve;
    double y;
    QPointF at;
  };
  std::vector<Found> found;
  for (const auto& curve : scene.curves()) {
    if (!curve->sorted() || curve->curve().label.empty() || curve->size() == 0) continue;
    const auto& xs = curve->curve().x;
    const double slack = std::abs(scene.plane().from(at + QPointF(3 * scene.unit(), 0)).x() - x);
    if (x < xs.front() - slack || x > xs.back() + slack) continue;
    const double inside = std::clamp(x, xs.front(), xs.back()), y = curve->at(inside);
    if (std::isfinite(y)) found.push_back({&curve->curve(), y, scene.plane().to(inside, y)});
  }
  const size_t most = std::min(found.size(), kMostLines), more = found.size() - most;
  const auto away = [&](const Found& f) { return std::abs(f.at.y() - at.y()); };
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) { return away(a) < away(b); });
  found.resize(most);
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.at.y() < b.at.y(); });
  const QFontMetricsF metrics(scene.font());
  const double widest = std::max(170 * scene.unit(), 0.4 * scene.plane().area.width());  // of a name
  double greatest = 0;
  for (const Found& f : found) greatest = std::max(greatest, std::abs(f.y));
  // As many decimals for all, of thousands, millions … where numbers are large; what is tiny has powers of ten.
  const QString units = QStringLiteral(" kMGTPE");
  const int thousands = greatest >= 1e4 ? static_cast<int>(std::floor(std::log10(greatest) / 3)) : 0;
  const bool plain = greatest >= 1e-3 && thousands < units.size();
  const double scale = std::pow(1000.0, thousands);
  const int decimals = plain ? std::clamp(3 - static_cast<int>(std::floor(std::log10(greatest / scale))), 0, 6) : 0;
  const QString unit = thousands > 0 && plain ? QStringLiteral(" ") + units[thousands] : QString();
  const auto number = [&](double y) { return plain ? fixed_number(y / scale, decimals) + unit : short_number(y); };
  for (const Found& f : found) {
    const QString label = fittingTitle(QString::fromStdString(f.curve->label), metrics, widest);
    out.lines.push_back(
        {brief ? number(f.y) : label + QStringLiteral("  ") + number(f.y), seen_colour(f.curve->colour, dark), f.curve->marker});
    if (scene.plane().area.contains(f.at)) out.points.push_back(f.at);
  }
  if (more > 0) out.lines.push_back({QStringLiteral("and %1 further away").arg(more), {}});
  if (out.lines.empty()) return {};
  return out;
}

namespace {

/// How much of the curves a box would hide: places of curves in it, looked for at a few x.
int hidden(const ChartScene& scene, const QRectF& box) {
  constexpr int kPlaces = 8;
  constexpr size_t kMostCurves = 64, kMostPoints = 256;
  int count = 0;
  const size_t stride = 1 + scene.curves().size() / kMostCurves;
  for (size_t c = 0; c < scene.curves().size(); c += stride) {
    const PreparedCurve& curve = *scene.curves()[c];
    const Column &xs = curve.curve().x, &ys = curve.curve().y;
    if (curve.size() == 0) continue;
    if (!curve.sorted()) {
      for (size_t i = 0; i < curve.size(); i += 1 + curve.size() / kMostPoints) count += box.contains(scene.plane().to(xs[i], ys[i]));
      continue;
    }
    for (int i = 0; i < kPlaces; ++i) {
      const double x = scene.plane().from({box.left() + (i + 0.5) * box.width() / kPlaces, 0}).x();
      if (x >= xs.front() && x <= xs.back()) count += box.contains(scene.plane().to(x, curve.at(x)));
    }
  }
  return count;
}

QFont heading_font(const ChartScene& scene) {
  QFont bold = scene.font();
  bold.setBold(true);
  return bold;
}

constexpr double kRow = 1.25, kSwatch = 12;  // heights of the font; points

}  // namespace

QRectF read_out_box(const ReadOut& out, const ChartScene& scene, const QPointF& at) {
  const QRectF& area = scene.plane().area;
  const double u = scene.unit();
  const QFontMetricsF metrics(scene.font());
  double width = QFontMetricsF(heading_font(scene)).horizontalAdvance(out.heading);
  for (const auto& line : out.lines) width = std::max(width, metrics.horizontalAdvance(line.text) + kSwatch * u);
  const size_t rows = out.lines.size() + (out.heading.isEmpty() ? 0 : 1);
  const QSizeF size(width + 12 * u, kRow * metrics.height() * static_cast<double>(rows) + 6 * u);
  const double right = at.x() + 10 * u, left = at.x() - 8 * u - size.width();
  const double top = out.x ? area.top() + 2 * u : at.y() + 8 * u;
  const double bottom = (out.x ? area.bottom() - 2 * u : at.y() - 8 * u) - size.height();
  std::optional<QRectF> best;
  int least = 0;
  for (const QPointF& corner : {QPointF(right, top), QPointF(left, top), QPointF(right, bottom), QPointF(left, bottom)}) {
    const QRectF box(corner, size);
    if (box.right() > area.right() || box.left() < 0 || box.top() < 0 || box.bottom() > area.bottom()) continue;
    const int hides = hidden(scene, box);
    if (!best || hides < least) best = box, least = hides;
  }
  if (best) return *best;
  QRectF box({right, top}, size);  // larger than the room beside the hair
  if (box.right() > area.right()) box.moveRight(at.x() - 8 * u);
  if (box.left() < 0) box.moveLeft(0);
  if (box.bottom() > area.bottom()) box.moveBottom(area.bottom());
  if (box.top() < 0) box.moveTop(0);
  return box;
}

void paint_read_out(QPainter& painter, const ReadOut& out, const ChartScene& scene, const QPointF& at) {
  const double u = scene.unit();
  const QRectF& area = scene.plane().area;
  painter.setRenderHint(QPainter::Antialiasing);
  if (out.x) {
    painter.setPen(QPen(scene.colours().axis, 0.7 * u, Qt::DotLine));
    painter.drawLine(QPointF(*out.x, area.top()), QPointF(*out.x, area.bottom()));
  }
  painter.setPen(QPen(scene.colours().text, 0.8 * u));
  painter.setBrush(scene.colours().ground);
  for (const QPointF& p : out.points) painter.drawEllipse(p, 2.2 * u, 2.2 * u);

  const QFontMetricsF metrics(scene.font());
  const double row = kRow * metrics.height(), swatch = kSwatch * u;
  const QRectF box = read_out_box(out, scene, at);
  QColor ground = scene.colours().ground;
  ground.setAlpha(235);
  painter.setPen(QPen(scene.colours().axis, 0.6 * u));
  painter.setBrush(ground);
  painter.drawRoundedRect(box, 3 * u, 3 * u);
  double y = box.top() + 3 * u + metrics.ascent();
  painter.setPen(scene.colours().text);
  painter.setFont(heading_font(scene));
  painter.drawText(QPointF(box.left() + 6 * u, y), out.heading);
  if (out.heading.isEmpty()) y -= row;
  painter.setFont(scene.font());
  for (const auto& line : out.lines) {
    y += row;
    if (line.colour.isValid()) {
      const QRectF stroke(box.left() + 6 * u, y - 0.5 * metrics.ascent(), 9 * u, 1.5 * u);
      painter.fillRect(stroke, line.colour);
      paint_marker(painter, line.marker, stroke.center(), 2 * u, line.colour);
    }
    painter.setPen(scene.colours().text);
    painter.drawText(QPointF(box.left() + 6 * u + swatch, y), line.text);
  }
}

std::optional<Cell> cell_at(const Figure& figure, const ChartScene& scene, const QPointF& at) {
  if (!figure.map || !scene.plane().area.contains(at)) return {};
  const QPointF v = scene.plane().from(at);
  const auto index = [](double value, const std::array<double, 2>& extent, int64_t cells) {
    return static_cast<int>(std::floor((value - extent[0]) / (extent[1] - extent[0]) * static_cast<double>(cells)));
  };
  const Cell cell{index(v.y(), row_extent(*figure.map), cell_rows(*figure.map)),
                  index(v.x(), column_extent(*figure.map), cell_columns(*figure.map))};
  if (cell.row < 0 || cell.column < 0 || cell.row >= cell_rows(*figure.map) || cell.column >= cell_columns(*figure.map)) return {};
  return cell;
}

QString cell_text(const Figure& figure, const Cell& cell) {
  const double value = static_cast<double>(value_at(*figure.map, cell.row, cell.column));
  const QString shown = std::isnan(value) ? QStringLiteral("none") : short_number(value);
  const auto row = static_cast<size_t>(cell.row);
  const auto& names = figure.map->row_names;
  const QString name = row < names.size() ? QStringLiteral(" (%1)").arg(QString::fromStdString(names[row])) : QString();
  const auto place = [](const AxisRecipe& axis, int at) {
    return static_cast<size_t>(at) < axis.names.size() ? QString::fromStdString(axis.names[static_cast<size_t>(at)]) : QString::number(at);
  };
  return QStringLiteral("%1 %2, %3 %4: %5 %6")
      .arg(QString::fromStdString(figure.y.title), place(figure.y, cell.row) + name)
      .arg(QString::fromStdString(figure.x.title), place(figure.x, cell.column))
      .arg(QString::fromStdString(figure.map->value_title), shown);
}

}  // namespace saccade::ui
