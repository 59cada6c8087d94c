#include "ui/charts/map_painter.h"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ui/charts/colours.h"

namespace saccade::ui {

namespace {

constexpr int kTransparent = 255;

/// Cells of one axis that lie between two axis values: whole ones and their place in painter units.
struct Band {
  int first, count;  ///< cells
  double from, to;   ///< painter units, in the direction of growing cell index (may run backwards)
};

/// The visible cells of one axis: a cut cell at either edge apart from the whole ones, so that no clip is needed.
std::vector<Band> bands(int64_t cells, const std::array<double, 2>& extent, const std::function<double(double)>& to_painter,
                        double low_edge, double high_edge) {
  const auto edge = [&](double cell) { return to_painter(extent[0] + cell * (extent[1] - extent[0]) / static_cast<double>(cells)); };
  const double least = std::min(low_edge, high_edge), most = std::max(low_edge, high_edge);
  const auto visible = [&](int64_t c) {
    const auto [a, b] = std::minmax({edge(static_cast<double>(c)), edge(static_cast<double>(c + 1))});
    return b > least + 1e-9 && a < most - 1e-9;
  };
  int64_t first = 0, last = cells - 1;
  while (first <= last && !visible(first)) ++first;
  while (last >= first && !visible(last)) --last;
  if (first > last) return {};
  const auto place = [&](int64_t a, int64_t b) {
    return Band{static_cast<int>(a), static_cast<int>(b - a), std::clamp(edge(static_cast<double>(a)), least, most),
                std::clamp(edge(static_cast<double>(b)), least, most)};
  };
  const auto cut = [&](int64_t c) {
    const Band band = place(c, c + 1);
    return std::abs(band.from - edge(static_cast<double>(c))) > 1e-9 || std::abs(band.to - edge(static_cast<double>(c + 1))) > 1e-9;
  };
  std::vector<Band> found;
  const int64_t end = last + 1, whole_first = cut(first) ? first + 1 : first, whole_end = last > first && cut(last) ? last : end;
  if (whole_first > first) found.push_back(place(first, whole_first));
  if (whole_end > whole_first) found.push_back(place(whole_first, whole_end));
  if (end > whole_end && last > first) found.push_back(place(last, end));
  return found;
}

/// Several cells a pixel: the most conspicuous one of each block stands for it.
QImage pooled(const QImage& image, int width, int height, bool diverging) {
  QImage small(width, height, QImage::Format_Indexed8);
  small.setColorTable(image.colorTable());
  const auto weight = [&](int index) { return index == kTransparent ? -1 : diverging ? std::abs(index - kTransparent / 2) : index; };
  for (int y = 0; y < height; ++y) {
    const int y0 = y * image.height() / height, y1 = std::max(y0 + 1, (y + 1) * image.height() / height);
    uchar* out = small.scanLine(y);
    for (int x = 0; x < width; ++x) {
      const int x0 = x * image.width() / width, x1 = std::max(x0 + 1, (x + 1) * image.width() / width);
      int best = kTransparent;
      for (int v = y0; v < y1; ++v) {
        const uchar* row = image.constScanLine(v);
        for (int u = x0; u < x1; ++u)
          if (weight(row[u]) > weight(best)) best = row[u];
      }
      out[x] = static_cast<uchar>(best);
    }
  }
  return small;
}

}  // namespace

double colour_fraction(const HeatMap& map, double value) {
  double low = map.range[0], high = map.range[1];
  if (map.logarithmic) {
    if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
    value = std::log(value);
    low = std::log(std::max(low, 1e-300));
    high = std::log(std::max(high, 1e-300));
  }
  if (std::isnan(value)) return value;
  return high > low ? std::clamp((value - low) / (high - low), 0.0, 1.0) : 0.5;
}

QImage map_image(const HeatMap& map) {
  QImage image(static_cast<int>(map.columns), static_cast<int>(map.rows), QImage::Format_Indexed8);
  QList<QRgb> colours = colour_map(map.diverging, map.colours);
  colours.append(qRgba(0, 0, 0, 0));
  image.setColorTable(colours);
  for (int r = 0; r < image.height(); ++r) {
    uchar* row = image.scanLine(r);
    for (int c = 0; c < image.width(); ++c) {
      const size_t i = static_cast<size_t>(r) * static_cast<size_t>(map.columns) + static_cast<size_t>(c);
      const double t = i < map.values.size() ? colour_fraction(map, map.values[i]) : std::numeric_limits<double>::quiet_NaN();
      row[c] = std::isnan(t) ? static_cast<uchar>(kTransparent) : static_cast<uchar>(std::lround(t * (kTransparent - 1)));
    }
  }
  return image;
}

std::array<double, 2> row_extent(const HeatMap& map) {
  if (map.cells[0] > 0) return {0, static_cast<double>(map.cells[0])};
  return map.row_extent[0] == map.row_extent[1] ? std::array<double, 2>{0, static_cast<double>(map.rows)} : map.row_extent;
}
std::array<double, 2> column_extent(const HeatMap& map) {
  if (map.cells[1] > 0) return {0, static_cast<double>(map.cells[1])};
  return map.column_extent[0] == map.column_extent[1] ? std::array<double, 2>{0, static_cast<double>(map.columns)} : map.column_extent;
}

int64_t cell_rows(const HeatMap& map) { return map.cells[0] > 0 ? map.cells[0] : map.rows; }
int64_t cell_columns(const HeatMap& map) { return map.cells[1] > 0 ? map.cells[1] : map.columns; }

float value_at(const HeatMap& map, int64_t row, int64_t column) {
  if (map.cells[0] > 0) {
    row = (row - static_cast<int64_t>(map.row_extent[0])) / map.block[0];
    column = (column - static_cast<int64_t>(map.column_extent[0])) / map.block[1];
  }
  const bool inside = row >= 0 && column >= 0 && row < map.rows && column < map.columns;
  return inside ? map.values[static_cast<size_t>(row * map.columns + column)] : std::numeric_limits<float>::quiet_NaN();
}

QRectF cell_rect(const HeatMap& map, const Plane& plane, int64_t row, int64_t column) {
  const auto value = [](const std::array<double, 2>& e, int64_t cell, int64_t cells) {
    return e[0] + static_cast<double>(cell) * (e[1] - e[0]) / static_cast<double>(cells);
  };
  const auto rows = row_extent(map), columns = column_extent(map);
  return QRectF(plane.to(value(columns, column, cell_columns(map)), value(rows, row, cell_rows(map))),
                plane.to(value(columns, column + 1, cell_columns(map)), value(rows, row + 1, cell_rows(map))))
      .normalized();
}

std::vector<QImage> map_levels(QImage image, bool diverging) {
  std::vector<QImage> levels{std::move(image)};
  constexpr qsizetype kWhole = 512;  // so few are put together while they are painted
  while (std::max(levels.back().width(), levels.back().height()) > kWhole)
    levels.push_back(pooled(levels.back(), (levels.back().width() + 1) / 2, (levels.back().height() + 1) / 2, diverging));
  return levels;
}

void paint_cells(QPainter& painter, const HeatMap& map, const std::vector<QImage>& levels, const Plane& plane, bool exact) {
  const auto drawn = [](const std::array<double, 2>& own, const std::array<double, 2>& all, bool part) { return part ? own : all; };
  const bool part = map.cells[0] > 0;
  const auto rows = drawn(map.row_extent, row_extent(map), part), columns = drawn(map.column_extent, column_extent(map), part);
  const double ratio = painter.device()->devicePixelRatioF();
  const auto per_pixel = [&](const AxisScale& scale, const std::array<double, 2>& extent, int64_t count, double length) {
    return std::abs((scale.high - scale.low) / (extent[1] - extent[0])) * static_cast<double>(count) / std::max(1.0, length * ratio);
  };
  const double cells =
      std::min(per_pixel(plane.x, columns, map.columns, plane.area.width()), per_pixel(plane.y, rows, map.rows, plane.area.height()));
  size_t level = 0;
  while (!exact && level + 1 < levels.size() && cells >= 2 * static_cast<double>(size_t{1} << level)) ++level;
  const QImage& image = levels[level];
  const auto reach = [&](const std::array<double, 2>& extent, int64_t count, int at_level) {  // the last pixel may be half empty
    return std::array{
        extent[0], extent[0] + (extent[1] - extent[0]) * at_level * static_cast<double>(size_t{1} << level) / static_cast<double>(count)};
  };
  const auto across = bands(
      image.width(), reach(columns, map.columns, image.width()),
      [&](double v) { return plane.area.left() + plane.x.fraction(v) * plane.area.width(); }, plane.area.left(), plane.area.right());
  const auto down = bands(
      image.height(), reach(rows, map.rows, image.height()),
      [&](double v) { return plane.area.bottom() - plane.y.fraction(v) * plane.area.height(); }, plane.area.top(), plane.area.bottom());
  painter.save();
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.setRenderHint(QPainter::LosslessImageRendering, true);
  for (const Band& r : down)
    for (const Band& c : across) {
      QImage shown = image.copy(c.first, r.first, c.count, r.count).mirrored(c.from > c.to, r.from > r.to);
      const QRectF target = QRectF(QPointF(c.from, r.from), QPointF(c.to, r.to)).normalized();
      const int width = std::max(1, static_cast<int>(target.width() * ratio)),
                height = std::max(1, static_cast<int>(target.height() * ratio));
      if (!exact && (shown.width() > width || shown.height() > height))
        shown = pooled(shown, std::min(shown.width(), width), std::min(shown.height(), height), map.diverging);
      painter.drawImage(target, shown);
    }
  painter.restore();
}

/// Cells too low to be told apart are outlined together where neighbours have the same column.
void paint_outlines(QPainter& painter, const HeatMap& map, const Plane& plane, std::vector<std::array<int64_t, 2>> cells,
                    const QColor& colour, double unit) {
  painter.save();
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colour, 0.9 * unit, Qt::SolidLine, Qt::SquareCap, Qt::MiterJoin));
  std::sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a[1] != b[1] ? a[1] < b[1] : a[0] < b[0]; });
  const bool join = cell_rect(map, plane, 0, 0).height() < 5 * unit;
  for (size_t i = 0; i < cells.size();) {
    size_t end = i + 1;
    while (join && end < cells.size() && cells[end][1] == cells[i][1] && cells[end][0] == cells[end - 1][0] + 1) ++end;
    const QRectF all = cell_rect(map, plane, cells[i][0], cells[i][1])
                           .united(cell_rect(map, plane, cells[end - 1][0], cells[i][1]))
                           .intersected(plane.area);
    if (!all.isEmpty()) painter.drawRect(all);
    i = end;
  }
  painter.restore();
}

}  // namespace saccade::ui
