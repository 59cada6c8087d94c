#pragma once
#include <QWidget>
#include <memory>

#include "analysis/figures/figure.h"

class QPainter;
class QMenu;

namespace saccade::ui {

/// One look for screen and paper. Light for export unless asked otherwise; from the palette on screen.
struct FigureStyle {
  bool dark = false;
  double font_points = 9;
  static FigureStyle fromPalette(const QPalette& palette, const QFont& font);
  static FigureStyle forExport() { return {}; }
};

/// The one paint path: axes, legend and layout by Qt Charts, curves and maps by our layer inside its plot area.
void paintFigure(QPainter& painter, const QRectF& area, const Figure& figure, const FigureStyle& style);

/// Writes by file suffix: .pdf .svg .png .csv. False with a one-line reason when it can't; never leaves half a file.
bool exportFigure(const Figure& figure, const QString& path, QString* reason, const FigureStyle& style = FigureStyle::forExport());

/// Shows a figure, follows the palette, zooms by wheel and drag (double click: all), tells what is under the mouse.
class FigureView : public QWidget {
  Q_OBJECT
 public:
  explicit FigureView(QWidget* parent = nullptr);
  ~FigureView() override;

  void setFigure(Figure figure);
  const Figure& figure() const;
  void setEmptyText(const QString& text);  ///< shown when the figure holds no data: says what to do next

  /// Export entries (PDF, SVG, PNG, CSV, copy) for the card's menu button.
  QMenu* exportMenu();

 Q_SIGNALS:
  void cellClicked(int row, int column);        ///< map cell
  void positionClicked(double x, double y);     ///< axis values, charts
  void exported(const QString& path);
  void failed(const QString& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A titled frame around a view: title, unit, its own controls in the corner, export menu (sketch: cards).
class Card : public QWidget {
  Q_OBJECT
 public:
  Card(const QString& title, const QString& subtitle, QWidget* content, QWidget* parent = nullptr);
  void setTitle(const QString& title, const QString& subtitle);
  void addControl(QWidget* control);  ///< right side of the header, in order

 private:
  class QLabel* title_;
  class QLabel* subtitle_;
  class QHBoxLayout* header_;
};

}  // namespace saccade::ui
