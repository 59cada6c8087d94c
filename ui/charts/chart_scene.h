#pragma once
#include <QGraphicsScene>
#include <QImage>
#include <QMarginsF>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ui/charts/colours.h"
#include "ui/charts/curve_painter.h"
#include "ui/charts/direct_labels.h"
#include "ui/charts/figure_view.h"
#include "ui/charts/legend.h"
#include "ui/charts/prepared_figure.h"
#include "ui/charts/ticks.h"

class QCategoryAxis;
class QChart;

namespace saccade::ui {

/// What is looked at; empty: the figure's own range, else that of its data.
struct Window {
  std::optional<std::array<double, 2>> x, y;
};

/// A figure laid out on a rectangle: Qt Charts carries axes, titles, grid, layout; curves, map, legend and colour bar are
/// painted by us over it. (Qt Charts' own legend shows 13 pixels of a line, too short to tell dashes apart.)
class ChartScene {
 public:
  /// `unit`: scene units per point.
  ChartScene(std::shared_ptr<const PreparedFigure> prepared, const FigureStyle& style, double unit);
  ChartScene(const Figure& figure, const FigureStyle& style, double unit) : ChartScene(prepare_figure(figure), style, unit) {}
  ~ChartScene();

  void layout(const QSizeF& size, const Window& window = {});
  /// Shows other curves in the same layout; false, and nothing changes, when axes or legend would be others.
  bool take(const std::shared_ptr<const PreparedFigure>& next, const Window& window);
  /// Paints at the origin in scene units. `column`: width within which curve points may share an envelope.
  void paint(QPainter& painter, double column, bool exact_map);
  /// What lies beneath the curves and over them.
  void paintUnder(QPainter& painter, bool exact_map);
  void paintOver(QPainter& painter) const;

  /// Room that the plot area leaves at each side of its own accord, in the last layout, and the least that it is to leave.
  const QMarginsF& ownMargins() const { return own_margins_; }
  void setLeastMargins(const QMarginsF& least) { least_margins_ = least; }

  /// A finer picture of a part of a reduced map; null: none.
  void setDetail(std::shared_ptr<const PreparedFigure> detail) { detail_ = std::move(detail); }

  const Plane& plane() const { return plane_; }
  const PreparedCurves& curves() const { return prepared_->curves; }
  const Legend& legend() const { return legend_; }
  const FigureColours& colours() const { return colours_; }
  QFont font(double scale = 1) const;
  double unit() const { return unit_; }
  /// What stands at the ticks of an axis, by the last layout.
  QStringList labels(Qt::Orientation orientation) const;

 private:
  const Figure& figure() const { return prepared_->figure; }
  Legend legendOf(const PreparedFigure& prepared, const QSizeF& size) const;
  static std::pair<AxisScale, AxisScale> scales(const PreparedFigure& prepared, const Window& window);
  void keepMargins(const QSizeF& size);
  bool dropCutTitles(const QFontMetricsF& metrics);
  bool isCut(const QCategoryAxis& axis) const;
  bool namesFit(const std::vector<std::string>& names, bool horizontal, double place) const;
  /// The names of an axis as they stand at it. Empty: only their numbers have room.
  WhatDiffers shownNames(const std::vector<std::string>& names, bool horizontal, double place) const;
  void setAxis(QCategoryAxis& axis, const AxisScale& scale, const AxisRecipe& recipe, double length, bool cells);
  void paintMap(QPainter& painter, bool exact);
  void paintFrame(QPainter& painter) const;
  void paintLines(QPainter& painter) const;
  void paintLineLabel(QPainter& painter) const;
  void paintRunaway(QPainter& painter) const;
  void paintColourBar(QPainter& painter) const;

  std::shared_ptr<const PreparedFigure> prepared_;
  std::shared_ptr<const PreparedFigure> detail_;
  FigureStyle style_;
  FigureColours colours_;
  double unit_;
  QGraphicsScene scene_;
  QChart* chart_;
  QCategoryAxis *x_axis_, *y_axis_;
  Plane plane_;
  QMarginsF own_margins_, least_margins_;
  std::vector<double> x_minor_, y_minor_;
  Legend legend_;
  QRectF colour_bar_;
  std::vector<RunsOff> runs_off_;  ///< empty while someone looks at a part
};

/// The ranges a figure shows by itself: recipe, else data with a little air; whole map.
AxisScale x_scale(const Figure& figure, const Window& window = {});
AxisScale y_scale(const Figure& figure, const PreparedCurves& curves, const AxisScale& x, const Window& window = {});

/// How far curves go on outside these scales, at each edge where any does.
std::vector<RunsOff> runs_off(const Figure& figure, const PreparedCurves& curves, const AxisScale& x, const AxisScale& y);

}  // namespace saccade::ui
