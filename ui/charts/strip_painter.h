#pragma once
#include <QRectF>
#include <optional>

#include "analysis/figures/figure.h"
#include "ui/charts/curve_painter.h"

class QFont;
class QPainter;

namespace saccade::ui {

struct FigureColours;

/// Room for the strip beside a map, in painter units, with the gap before it; 0 where the map has none.
double strip_width(const HeatMap& map, const QFont& font, double unit);
/// Bars from zero beside the plot area of `plane`, one a row, under their own scale from 0 to the greatest. Of 20 and more,
/// those far beyond the 95 % are cut ("≥"). Rows that share a pixel: the greatest pale, the least full.
void paint_strip(QPainter& painter, const HeatMap& map, const Plane& plane, const QFont& font, const FigureColours& colours, double unit);
/// A line along the bar of a row and a dot at its end; nothing where the row has no value or is not seen.
void paint_strip_mark(QPainter& painter, const HeatMap& map, const Plane& plane, const QFont& font, const FigureColours& colours,
                      double unit, int64_t row);
/// The row of the strip at a place; nothing beside it.
std::optional<int64_t> strip_row_at(const HeatMap& map, const Plane& plane, const QFont& font, double unit, const QPointF& at);

}  // namespace saccade::ui
