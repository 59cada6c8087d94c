#pragma once
#include <QImage>
#include <QMarginsF>
#include <QSizeF>
#include <QStringList>
#include <QWidget>
#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "analysis/figures/figure.h"
#include "ui/charts/legend_kind.h"

class QPainter;
class QLabel;
class QHBoxLayout;
class QMenu;
class QToolButton;
class QVBoxLayout;

namespace saccade::ui {

struct PreparedFigure;

/// One look for screen and paper. Light for export unless asked otherwise; from the palette on screen.
struct FigureStyle {
  bool dark = false;
  double font_points = 9;
  bool compact = false;  ///< no legend, no axis titles: a small chart whose card says what it shows
  LegendKind legend = LegendKind::whole;
  bool whole_legend = true;  ///< pages grow with it (figure_size_mm); on screen the curves keep most of the height
  QStringList families{"Liberation Sans", "DejaVu Sans", "Arial",
                       "Helvetica"};  ///< TrueType, so that PDF embeds them; empty: the application's
  static FigureStyle fromPalette(const QPalette& palette, const QFont& font);
  static FigureStyle forExport() { return {}; }
};

/// The one paint path: axes, legend and layout by Qt Charts, curves and maps by our layer inside its plot area.
void paintFigure(QPainter& painter, const QRectF& area, const Figure& figure, const FigureStyle& style);

/// The page a figure takes: its own size, higher where the legend needs more than a third of it.
QSizeF figure_size_mm(const Figure& figure, const FigureStyle& style);
/// Null when it can't be painted.
QImage figure_picture(const Figure& figure, const FigureStyle& style, int dpi);

/// Whether there is anything to see: a drawable point or a map.
bool has_data(const Figure& figure);

/// What the figure shows in words: curves with first, last and least value, or the map's size and range.
QString figure_summary(const Figure& figure);

/// Writes by file suffix: .pdf .svg .png .csv. False with a one-line reason when it can't; never leaves half a file.
bool exportFigure(const Figure& figure, const QString& path, QString* reason, const FigureStyle& style = FigureStyle::forExport());

/// Shows a figure, follows the palette, zooms by wheel and drag (double click: all), tells what is under the mouse.
class FigureView : public QWidget {
  Q_OBJECT
 public:
  explicit FigureView(QWidget* parent = nullptr);
  ~FigureView() override;

  void setFigure(Figure figure);
  void setPrepared(std::shared_ptr<const PreparedFigure> prepared);  ///< the same, of what another thread has made ready
  std::shared_ptr<const PreparedFigure> prepared() const;
  const Figure& figure() const;
  void setEmptyText(const QString& text);  ///< shown when the figure holds no data: says what to do next
  QString emptyText() const;
  /// What names of exported files begin with, before the figure's own.
  void setFilePrefix(const QString& prefix);
  QString fileName() const;          ///< without extension
  void setCompact(bool compact);     ///< on screen only: exports are complete
  void setKeysOnly(bool keys_only);  ///< likewise: no legend of curves that a list beside names
  bool drawing() const;              ///< the picture is still to come
  bool zoomed() const;
  std::optional<std::array<double, 2>> part() const;     ///< of the x axis that is looked at; nothing: all
  std::optional<std::array<double, 2>> rowPart() const;  ///< likewise of the y axis
  /// A finer picture of a part of a map that is a reduced one (HeatMap::cells), until the figure is another; null: none.
  void setDetail(std::shared_ptr<const PreparedFigure> detail);
  void tellAgain();                           ///< what is under the pointer, which is known better now
  void setSelectedCell(int row, int column);  ///< framed on a map; −1: the whole column or row; both −1: none
  /// A place on the x axis that is pointed at in another chart: the read-out stands there until this one is pointed at; nothing: nowhere.
  void setLinkedX(const std::optional<double>& x);
  /// A cell of a map that is pointed at in another one of the same tokens: framed; −1, −1: none.
  void setLinkedCell(int row, int column);
  /// What the read-out says about a map cell; default: row, column and value.
  void setCellText(std::function<QString(int row, int column)> text);
  QRectF plotArea() const;       ///< within the view; empty before it was laid out
  QMarginsF ownMargins() const;  ///< room around the plot area that the figure needs; null before it was laid out
  /// Room that the plot area is to leave at least, so that several views have theirs in the same place (ui/charts/aligned_views.h).
  void setLeastMargins(const QMarginsF& least);
  QPoint pointedAt() const;  ///< on the screen: where mouse or keys point, else the middle
  /// The figure as looked at: zoomed when zoomed.
  Figure shownFigure() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

  /// Export entries (PDF, SVG, PNG, CSV, copy) for the card's menu button.
  QMenu* exportMenu();

 public Q_SLOTS:
  void showAll();                                                                                           ///< ends the zoom
  void look(const std::optional<std::array<double, 2>>& x, const std::optional<std::array<double, 2>>& y);  ///< at this part; empty: all

 Q_SIGNALS:
  void cellClicked(int row, int column);     ///< map cell; column −1: the row's bar in the strip beside the map
  void positionClicked(double x, double y);  ///< axis values, charts
  void cellPointed(int row, int column);     ///< likewise of maps; −1, −1: no longer
  void pointed(std::optional<double> x);     ///< on the x axis of a chart, by mouse or arrows; nothing: no longer
  void verticalLineMoved(double x);          ///< dragged or moved by Ctrl+arrow; the owner sets the new figure
  void exported(const QString& path);
  void zoomChanged();  ///< by the reader
  void looked();       ///< at another part, whoever chose it
  void resized();
  void laidOut();  ///< ownMargins() may be others
  void failed(const QString& reason);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A titled frame around a view: title, unit, its own controls in the corner, export button (sketch: cards).
/// A FigureView as content gets the export button by itself. Of a subtitle's words between dots the last go first where there is no room.
class Card : public QWidget {
  Q_OBJECT
 public:
  Card(const QString& title, const QString& subtitle, QWidget* content, QWidget* parent = nullptr);
  void setTitle(const QString& title, const QString& subtitle);
  void addControl(QWidget* control);   ///< right side of the header, in order
  void replaceTitle(QWidget* choice);  ///< stands where the title does, which is only heard then
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void arrange();

  QLabel* title_;
  QLabel* subtitle_;
  QHBoxLayout* header_;
  QVBoxLayout* column_;
  QWidget* controls_;
  QWidget* content_;
  QWidget* choice_ = nullptr;      ///< in place of the title
  QToolButton* export_ = nullptr;  ///< only over a figure
  int whole_export_ = 0;           ///< its width with its word
};

}  // namespace saccade::ui
