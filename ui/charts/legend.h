#pragma once
#include <QFont>
#include <QFontMetricsF>
#include <QPointF>
#include <QSizeF>
#include <QString>
#include <vector>

#include "ui/charts/colours.h"
#include "ui/charts/legend_kind.h"

class QPainter;

namespace saccade::ui {

/// What stands over a chart, in columns, or on paper in filled rows where these are fewer: a piece of line with its marker and a label for
/// every curve that has one; on paper, of more than 30 curves, for every architecture.
struct Legend {
  struct Entry {
    const Curve* curve;  ///< null: only words, of the curves that found no room
    QPointF at;
    QString text;
    Colour colour;
    Marker marker = Marker::none;
  };
  std::vector<Entry> entries;
  double height = 0;
  double type = 1;  ///< size of its type to that of the figure: smaller where a tall legend becomes far less so
};

/// In painter units; `unit`: of them a point. Beyond `room.height()` the last entry counts those left out.
Legend legend_of(const Figure& figure, const QFontMetricsF& metrics, const QSizeF& room, double unit,
                 LegendKind kind = LegendKind::fitting);
/// What its names are written in, where the figure's `font` has a size in pixels.
QFont legend_font(const Legend& legend, QFont font);
void paint_legend(QPainter& painter, const Legend& legend, const QFont& font, const FigureColours& colours, bool dark, double unit);

}  // namespace saccade::ui
