#pragma once
#include <QImage>
#include <QRectF>
#include <vector>

#include "ui/charts/curve_painter.h"

class QPainter;

namespace saccade::ui {

struct FigureColours;

/// The map's values as one indexed pixel a cell; the last index is transparent: NaN, and what a logarithmic scale cannot show.
QImage map_image(const HeatMap& map);
/// Position of a value on the colour scale, 0 … 1, clamped; NaN where nothing is drawn.
double colour_fraction(const HeatMap& map, double value);

/// Axis values of the map's edges; of a reduced one those of all its cells.
std::array<double, 2> row_extent(const HeatMap& map);
std::array<double, 2> column_extent(const HeatMap& map);
/// How many cells there are, also where the map is a reduced picture of them; the value that stands for one, NaN where none does.
int64_t cell_rows(const HeatMap& map);
int64_t cell_columns(const HeatMap& map);
float value_at(const HeatMap& map, int64_t row, int64_t column);
/// Cell rectangle in painter units.
QRectF cell_rect(const HeatMap& map, const Plane& plane, int64_t row, int64_t column);

/// The picture of a map and smaller ones of it, each half as wide and high, in which the most conspicuous cell stands for four: what is
/// painted is then never many times larger than what is seen.
std::vector<QImage> map_levels(QImage image, bool diverging);
/// Paints the visible cells. Where several cells fall on one screen pixel the one farthest from the low end (or from the centre, when
/// diverging) shows; `exact` keeps every cell (paper).
void paint_cells(QPainter& painter, const HeatMap& map, const std::vector<QImage>& levels, const Plane& plane, bool exact);
/// Outlines of cells of the map.
void paint_outlines(QPainter& painter, const HeatMap& map, const Plane& plane, std::vector<std::array<int64_t, 2>> cells,
                    const QColor& colour, double unit);

}  // namespace saccade::ui
