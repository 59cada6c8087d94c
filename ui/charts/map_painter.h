#pragma once
#include <QImage>
#include <QRectF>

#include "ui/charts/curve_painter.h"

class QPainter;

namespace saccade::ui {

struct FigureColours;

/// The map's values as one indexed pixel a cell; the last index is transparent: NaN, and what a logarithmic scale cannot show.
QImage map_image(const HeatMap& map);
/// Position of a value on the colour scale, 0 … 1, clamped; NaN where nothing is drawn.
double colour_fraction(const HeatMap& map, double value);

/// Axis values of the map's edges.
std::array<double, 2> row_extent(const HeatMap& map);
std::array<double, 2> column_extent(const HeatMap& map);
/// Cell rectangle in painter units.
QRectF cell_rect(const HeatMap& map, const Plane& plane, int64_t row, int64_t column);

/// Paints the visible cells and outlines. Where several cells fall on one screen pixel the one farthest from the low end (or
/// from the centre, when diverging) shows; `exact` keeps every cell (paper).
void paint_map(QPainter& painter, const HeatMap& map, const QImage& image, const Plane& plane, const FigureColours& colours, double unit,
               bool exact);

}  // namespace saccade::ui
