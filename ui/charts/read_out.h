#pragma once
#include <QPointF>
#include <QStringList>
#include <optional>

#include "ui/charts/chart_scene.h"

namespace saccade::ui {

/// What a chart tells about the place under the mouse.
struct ReadOut {
  struct Line {
    QString text;
    QColor colour;  ///< invalid: none
    Marker marker = Marker::none;
  };
  QString heading;  ///< empty: none
  std::vector<Line> lines;
  std::vector<QPointF> points;  ///< to mark
  std::optional<double> x;      ///< where the vertical hair stands
};

/// The curves at x, those nearest to the mouse when they are many, or the nearest point of curves that run back and forth. Nothing outside
/// the plot area. `brief`: of curves the values alone, for a chart that their names would cover.
std::optional<ReadOut> read_out(const Figure& figure, const ChartScene& scene, const QPointF& at, bool dark, bool brief = false);
/// Where it is told: beside the hair at the top or the bottom of the plot area, or around the point, whichever hides least of the curves.
QRectF read_out_box(const ReadOut& out, const ChartScene& scene, const QPointF& at);
void paint_read_out(QPainter& painter, const ReadOut& out, const ChartScene& scene, const QPointF& at);

struct Cell {
  int row, column;
};
std::optional<Cell> cell_at(const Figure& figure, const ChartScene& scene, const QPointF& at);
QString cell_text(const Figure& figure, const Cell& cell);

}  // namespace saccade::ui
