#include "ui/charts/legend.h"

#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/figures/palette.h"
#include "ui/charts/curve_painter.h"
#include "ui/charts/fitting_name.h"
#include "ui/charts/marker_painter.h"

namespace saccade::ui {

namespace {

constexpr double kSample = 22, kTextGap = 4, kEntryGap = 12, kEdge = 4;  // points

/// Of more curves nobody tells the shades apart.
constexpr size_t kMostNames = 30;

/// On paper, of so many names those of the architectures, each once with the number of its curves and its own hue: "Avey, 5 curves".
/// Where all are of one architecture every curve keeps its name.
void name_architectures(std::vector<Legend::Entry>& entries) {
  std::map<std::string_view, size_t> curves;
  for (const Legend::Entry& entry : entries)
    if (const auto name = hue_title(entry.curve->label); !name.empty()) ++curves[name];
  if (entries.size() <= kMostNames || curves.size() < 2) return;
  std::vector<Legend::Entry> named;
  for (Legend::Entry& entry : entries) {
    const auto name = hue_title(entry.curve->label);
    if (name.empty()) {
      named.push_back(std::move(entry));
      continue;
    }
    const size_t count = std::exchange(curves[name], 0);  // told by the first one
    if (count == 0) continue;
    const std::string title(name);
    if (count > 1) {
      entry.text = QString::fromStdString(title) + QStringLiteral(", %1 curves").arg(count);
      entry.colour = architecture_colour(title);
      if (entry.marker != Marker::none) entry.marker = Marker::circle;
    }
    named.push_back(std::move(entry));
  }
  entries = std::move(named);
}

/// Widths of as many columns as fit, entries going from left to right.
std::vector<double> column_widths(const std::vector<double>& needed, double width, double gap) {
  for (size_t columns = needed.size(); columns > 1; --columns) {
    std::vector<double> widths(columns, 0);
    for (size_t i = 0; i < needed.size(); ++i) widths[i % columns] = std::max(widths[i % columns], needed[i]);
    if (std::accumulate(widths.begin(), widths.end(), gap * static_cast<double>(columns - 1)) <= width) return widths;
  }
  return {width};
}

/// Where entries of these widths begin and in which rows they stand, one behind the other as words do.
struct Flow {
  std::vector<QPointF> places;  ///< x in painter units, y in rows
  size_t rows = 0;
};
Flow flow_of(const std::vector<double>& needed, double width, double gap) {
  Flow flow;
  double x = 0;
  for (const double each : needed) {
    if (flow.rows == 0 || x + each > width) ++flow.rows, x = 0;
    flow.places.emplace_back(x, static_cast<double>(flow.rows - 1));
    x += each + gap;
  }
  return flow;
}

/// One long name must not take the columns of all, but what the others leave of a row where it is the only one.
double widest_entry(const Legend& legend, const QFontMetricsF& metrics, double width, double sample, double gap, double unit) {
  const double share = std::max(0.36 * width, std::min(width, 120 * unit));
  int longer = 0;
  double others = 0;
  for (const Legend::Entry& entry : legend.entries) {
    const double needed = sample + metrics.horizontalAdvance(entry.text);
    if (needed > share)
      ++longer;
    else
      others += needed + gap;
  }
  return longer == 1 ? std::max(share, width - others) : share;
}

/// With type that is `type` times as large as that of `metrics`.
Legend legend_in(const Figure& figure, const QFontMetricsF& metrics, const QSizeF& room, double unit, LegendKind kind, double type) {
  Legend legend;
  legend.type = type;
  const double row = 1.25 * type * metrics.height(), top = 0.25 * type * metrics.height(), width = room.width() - 2 * kEdge * unit;
  const double sample = (kSample + kTextGap) * unit;
  std::vector<double> needed;
  double one_row = 0;  // that holds every name whole
  const bool names_elsewhere = kind == LegendKind::keys_only || kind == LegendKind::direct;
  if (kind == LegendKind::none) return legend;
  for (const Curve& curve : figure.curves) {
    if (!curve.in_legend || curve.label.empty() || (names_elsewhere && !curve.x.empty())) continue;
    legend.entries.push_back({&curve, {}, QString::fromStdString(curve.label), curve.colour, curve.marker});
  }
  if (kind == LegendKind::whole) name_architectures(legend.entries);
  for (const Legend::Entry& entry : legend.entries)
    one_row += (one_row > 0 ? kEntryGap * unit : 0) + sample + type * metrics.horizontalAdvance(entry.text);
  if (legend.entries.empty()) return legend;
  const bool whole = kind == LegendKind::whole || kind == LegendKind::direct || one_row <= width;
  const double widest = widest_entry(legend, metrics, width, sample, kEntryGap * unit, unit);
  for (Legend::Entry& entry : legend.entries) {
    if (!whole) entry.text = fittingTitle(entry.text, metrics, widest - sample);
    needed.push_back(sample + type * metrics.horizontalAdvance(entry.text));
  }
  const std::vector<double> widths = column_widths(needed, width, kEntryGap * unit);
  // On paper names stand whole; where a long one would leave the others few columns, rows are filled as they come.
  const Flow flow = flow_of(needed, width, kEntryGap * unit);
  const double by_columns = std::ceil(static_cast<double>(needed.size()) / static_cast<double>(widths.size()));
  if (kind == LegendKind::whole && static_cast<double>(flow.rows) < by_columns &&
      top + row * static_cast<double>(flow.rows) <= room.height()) {
    for (size_t i = 0; i < legend.entries.size(); ++i)
      legend.entries[i].at = {kEdge * unit + flow.places[i].x(), top + row * flow.places[i].y()};
    legend.height = top + row * static_cast<double>(flow.rows);
    return legend;
  }
  constexpr double kRounding = 0.05;  // of a row: pages are made as high as their legends
  const size_t rows = std::max<size_t>(1, static_cast<size_t>(std::max(0.0, (room.height() - top) / row + kRounding)));
  if (const size_t most = rows * widths.size(); legend.entries.size() > most) {
    const size_t left_out = legend.entries.size() - most + 1;
    legend.entries.resize(most);
    legend.entries.back() = {nullptr, {}, QStringLiteral("and %1 more").arg(left_out), {}, Marker::none};
  }
  for (size_t i = 0; i < legend.entries.size(); ++i) {
    const auto column = widths.begin() + static_cast<std::ptrdiff_t>(i % widths.size());
    const double left = std::accumulate(widths.begin(), column, kEdge * unit) + kEntryGap * unit * static_cast<double>(i % widths.size());
    legend.entries[i].at = {left, top + row * static_cast<double>(i / widths.size())};
  }
  legend.height = legend.entries.back().at.y() + row;
  return legend;
}

}  // namespace

Legend legend_of(const Figure& figure, const QFontMetricsF& metrics, const QSizeF& room, double unit, LegendKind kind) {
  constexpr std::array kTypes{0.85, 0.72};  // 6.5 points of 9
  constexpr double kWorth = 0.6;            // what is left of the height at most
  if (kind != LegendKind::whole) return legend_in(figure, metrics, room, unit, kind, 1);
  const QSizeF endless(room.width(), 1e9);  // so that a page is made as high as what is then laid out in it
  const double height = legend_in(figure, metrics, endless, unit, kind, 1).height;
  const bool tall = height > 9 * 1.25 * metrics.height();
  for (const double type : kTypes)
    if (tall && legend_in(figure, metrics, endless, unit, kind, type).height <= kWorth * height)
      return legend_in(figure, metrics, room, unit, kind, type);
  return legend_in(figure, metrics, room, unit, kind, 1);
}

QFont legend_font(const Legend& legend, QFont font) {
  if (legend.type != 1) font.setPixelSize(std::max(1, static_cast<int>(legend.type * font.pixelSize())));
  return font;
}

void paint_legend(QPainter& painter, const Legend& legend, const QFont& font, const FigureColours& colours, bool dark, double unit) {
  const QFont type = legend_font(legend, font);
  const QFontMetricsF metrics(type);
  painter.setFont(type);
  for (const Legend::Entry& entry : legend.entries) {
    const double y = entry.at.y() + metrics.height() / 2, end = entry.at.x() + kSample * unit;
    if (entry.curve) {
      const QColor colour = seen_colour(entry.colour, dark);
      QPen pen = curve_pen(*entry.curve, colour, unit);
      pen.setWidthF(std::min(pen.widthF(), 4 * unit));
      painter.setPen(pen);
      if (entry.marker != Marker::cross) painter.drawLine(QPointF(entry.at.x(), y), QPointF(end, y));
      paint_marker(painter, entry.marker, {(entry.at.x() + end) / 2, y}, marker_radius(*entry.curve, unit), colour,
                   entry.curve->sparse ? colours.ground : QColor());
    }
    painter.setPen(colours.text);
    painter.drawText(QPointF(entry.curve ? end + kTextGap * unit : entry.at.x(), entry.at.y() + metrics.ascent()), entry.text);
  }
}

}  // namespace saccade::ui
