#include "ui/charts/figure_view.h"

#include <QBackingStore>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPaintEngine>
#include <QPainter>
#include <QPixmap>
#include <QTimer>
#include <QToolButton>
#include <QToolTip>
#include <QWheelEvent>

#include "ui/charts/accessible_figure.h"
#include "ui/charts/curve_layer.h"
#include "ui/charts/export_menu.h"
#include "ui/charts/map_painter.h"
#include "ui/charts/read_out.h"
#include "ui/charts/strip_painter.h"

namespace saccade::ui {

namespace {
constexpr double kClickSlack = 4;  // pixels a click may slip
constexpr double kLineGrip = 6;    // pixels around the vertical line that take hold of it
enum class Drag { none, zoom, pan, line };
}  // namespace

struct FigureView::Impl {
  FigureView* view;
  std::shared_ptr<const PreparedFigure> prepared = std::make_shared<PreparedFigure>();
  std::shared_ptr<const PreparedFigure> detail;
  bool compact = false, keys_only = false;
  CurveLayer layer;
  QToolButton* whole = nullptr;  ///< ends the zoom
  QPixmap under;                 ///< axes and what else lies beneath the curves
  QMarginsF least_margins;
  QString file_prefix;
  QString empty_text = FigureView::tr("Nothing to show yet");
  std::function<QString(int, int)> cell_text;
  Cell selected{-1, -1}, linked{-1, -1};
  Window window;

  std::unique_ptr<ChartScene> scene;
  std::optional<QPointF> pointer;  ///< read-out place: mouse or keyboard
  std::optional<double> linked_x;  ///< likewise of another chart
  /// Where the read-out stands.
  std::optional<QPointF> place() const {
    if (pointer) return pointer;
    if (!linked_x || figure().map) return {};
    const QPointF at = plane().to(*linked_x, plane().y.low);
    return area().contains(QPointF(at.x(), area().center().y())) ? std::optional(QPointF(at.x(), area().top() + 1)) : std::nullopt;
  }
  /// What is told there; beside the chart that is pointed at, a small one tells values alone, and its curves stay to be seen.
  std::optional<ReadOut> readOut(const QPointF& at) const {
    auto out = read_out(figure(), *scene, at, dark());
    if (pointer || !out) return out;
    constexpr double kMost = 0.35;  // of the plot area
    const QSizeF box = read_out_box(*out, *scene, at).size();
    const bool covers = box.width() * box.height() > kMost * area().width() * area().height();
    return covers ? read_out(figure(), *scene, at, dark(), true) : out;
  }
  void point(const std::optional<QPointF>& at) {
    pointer = at;
    const bool inside = at && scene && !figure().map && area().contains(*at);
    Q_EMIT view->pointed(inside ? std::optional(plane().from(*at).x()) : std::nullopt);
    if (figure().map) {
      const auto cell = at && scene ? cell_at(figure(), *scene, *at) : std::nullopt;
      Q_EMIT view->cellPointed(cell ? cell->row : -1, cell ? cell->column : -1);
    }
    view->update();
  }
  /// Points at the cell beside the one that is pointed at; first at that one.
  void moveCell(const QPointF& from, int by_rows, int by_columns) {
    const auto cell = cell_at(figure(), *scene, from);
    if (!cell) return;
    const HeatMap& map = *figure().map;
    const int64_t row = cell->row + (pointer ? by_rows : 0), column = cell->column + (pointer ? by_columns : 0);
    if (row < 0 || row >= cell_rows(map) || column < 0 || column >= cell_columns(map)) return;
    const QPointF middle = cell_rect(map, plane(), row, column).center();
    if (!area().contains(middle)) return;
    point(middle);
    by_keys = true;
    tell(middle, view->mapToGlobal(middle.toPoint()));
  }
  Drag drag = Drag::none;
  bool by_keys = false;  ///< the pointer was moved by keys: on a map its cell is framed
  QPointF press, now;
  Plane pressed_plane;
  QMenu* menu = nullptr;

  double unit() const { return view->logicalDpiX() / 72.0; }
  bool dark() const { return view->palette().color(QPalette::Base).lightness() < 128; }
  QRectF area() const { return scene ? scene->plane().area : QRectF(); }
  const Plane& plane() const { return scene->plane(); }

  const Figure& figure() const { return prepared->figure; }
  void forget() {
    scene.reset();
    buildAnew();
  }
  void buildAnew() {
    built = false;
    buildSoon();
  }
  /// In an event of its own: a page of charts that were all laid out and painted in one event would hold up what is typed. Until then the
  /// last picture stands.
  void buildSoon() {
    if (!prepared->filled || !view->isVisible()) return view->update();
    if (std::exchange(building, true)) return;
    QTimer::singleShot(0, view, [this] {
      building = false;
      if (!view->isVisible()) return;
      if (prepared->filled) build();
      view->update();
    });
  }
  void build() {
    if (!built) layout();
    if (under.isNull()) paintUnder();
    showCurves();
  }
  void layout() {
    ensureScene();
    scene->setLeastMargins(least_margins);
    scene->layout(view->size(), window);
    under = {};
    built = true;
    Q_EMIT view->laidOut();
  }
  bool built = false;     ///< the scene is of the present figure, size and part
  bool building = false;  ///< soon
  /// Whether the window paints itself, and not someone takes a picture of the view, who would get the last one.
  bool paintsWindow(const QPainter& painter) const {
    QBackingStore* store = view->window()->backingStore();
    return store && painter.paintEngine() && painter.paintEngine()->paintDevice() == store->paintDevice();
  }
  void ensureScene() {
    if (scene) return;
    FigureStyle style = FigureStyle::fromPalette(view->palette(), view->font());
    style.compact = compact;
    if (keys_only) style.legend = LegendKind::keys_only;
    scene = std::make_unique<ChartScene>(prepared, style, unit());
    scene->setDetail(detail);
  }
  /// Another part is looked at, which the next event may start from.
  void look() {
    placeButton();
    if (!scene) return;
    layout();
    view->update();
  }
  void placeButton() {
    whole->setVisible(prepared->filled && (window.x || window.y));
    whole->adjustSize();
    whole->move(view->width() - whole->width() - 6, 4);
  }
  void paintUnder() {
    const qreal ratio = view->devicePixelRatioF();
    under = QPixmap(view->size() * ratio);
    under.setDevicePixelRatio(ratio);
    under.fill(Qt::transparent);
    QPainter painter(&under);
    scene->paintUnder(painter, false);
  }
  void showCurves() {
    if (prepared->curves.empty()) return;
    const qreal ratio = view->devicePixelRatioF();
    layer.show({prepared, plane(), view->size() * ratio, ratio, unit(), dark(), scene->colours().ground});
  }
  /// Whether a curve goes through the part that is looked at.
  bool anythingSeen() const {
    if (figure().map || (!window.x && !window.y)) return true;
    const auto [bottom, top] = std::minmax({plane().y.shown(plane().y.low), plane().y.shown(plane().y.high)});
    return std::any_of(prepared->curves.begin(), prepared->curves.end(), [&, low_y = bottom, high_y = top](const auto& curve) {
      if (!curve->sorted()) return true;
      auto [begin, end] = curve->range(plane().x.low, plane().x.high);
      if (begin > 0 && begin < curve->size()) --begin;
      if (end > 0 && end < curve->size()) ++end;
      const auto extent = curve->pyramid().extent(begin, end);
      return !extent.empty() && extent.low <= high_y && extent.high >= low_y;
    });
  }

  std::optional<double> lineAt() const {
    if (!scene || !figure().vertical_line) return {};
    return area().left() + plane().x.fraction(*figure().vertical_line) * area().width();
  }
  bool gripsLine(const QPointF& at) const {
    const auto x = lineAt();
    return x && std::abs(at.x() - *x) <= kLineGrip && at.y() >= area().top() && at.y() <= area().bottom();
  }
  /// Looks at the part between two fractions of the present window.
  void zoomTo(const Plane& from, double x0, double x1, double y0, double y1, bool x, bool y) {
    const auto range = [](const AxisScale& scale, double a, double b) {
      const AxisScale s = scale.between(a, b);
      return std::array<double, 2>{s.low, s.high};
    };
    Window wanted = window;
    if (x) wanted.x = range(from.x, x0, x1);
    if (y) wanted.y = range(from.y, y0, y1);
    const auto sane = [](const std::optional<std::array<double, 2>>& r) {
      return !r || ((*r)[1] - (*r)[0] > 1e-9 * std::max(std::abs((*r)[0]), std::abs((*r)[1])) && std::isfinite((*r)[0]) &&
                    std::isfinite((*r)[1]));
    };
    if (!sane(wanted.x) || !sane(wanted.y)) return;
    if (figure().map) keepInside(wanted);
    window = wanted;
    look();
    Q_EMIT view->zoomChanged();
    Q_EMIT view->looked();
  }
  void keepInside(Window& wanted) const {
    const auto shift = [](std::optional<std::array<double, 2>>& r, const std::array<double, 2>& extent) {
      if (!r) return;
      const auto [low, high] = std::minmax({extent[0], extent[1]});
      if ((*r)[1] - (*r)[0] >= high - low) return r.reset();
      const double by = (*r)[0] < low ? low - (*r)[0] : (*r)[1] > high ? high - (*r)[1] : 0;
      (*r)[0] += by, (*r)[1] += by;
    };
    shift(wanted.x, column_extent(*figure().map));
    shift(wanted.y, row_extent(*figure().map));
  }
  void zoomAround(const QPointF& at, double factor, bool x, bool y) {
    const double fx = (at.x() - area().left()) / area().width(), fy = (area().bottom() - at.y()) / area().height();
    zoomTo(plane(), fx - fx * factor, fx + (1 - fx) * factor, fy - fy * factor, fy + (1 - fy) * factor, x, y);
  }
  void paintSelection(QPainter& painter) const {
    if (!figure().map) return;
    if (selected.row >= 0 || selected.column >= 0) {
      paint_strip_mark(painter, *figure().map, plane(), scene->font(), scene->colours(), unit(), selected.row);
      paintCellFrame(painter, selected);
    }
    if (by_keys && pointer)
      if (const auto cell = cell_at(figure(), *scene, *pointer)) paintCellFrame(painter, *cell);
    const bool there = linked.row < cell_rows(*figure().map) && linked.column < cell_columns(*figure().map);
    if (linked.row >= 0 && linked.column >= 0 && there) paintCellFrame(painter, linked);
  }
  void paintCellFrame(QPainter& painter, const Cell& cell) const {
    const HeatMap& map = *figure().map;
    QRectF frame = area();
    if (cell.row >= 0) {
      const QRectF row = cell_rect(map, plane(), cell.row, 0);
      frame.setTop(row.top()), frame.setBottom(row.bottom());
    }
    if (cell.column >= 0) {
      const QRectF column = cell_rect(map, plane(), 0, cell.column);
      frame.setLeft(column.left()), frame.setRight(column.right());
    }
    if (!frame.intersects(area())) return;
    const double thin = 4 * unit(), room = 2 * unit();  // a row of a pixel or less stays visible inside its frame
    if (frame.height() < thin) frame.adjust(0, -room, 0, room);
    if (frame.width() < thin) frame.adjust(-room, 0, room, 0);
    frame = frame.intersected(area().adjusted(-2, -2, 2, 2));
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(scene->colours().ground, 2.4 * unit()));
    painter.drawRect(frame);
    painter.setPen(QPen(scene->colours().text, 1.2 * unit()));
    painter.drawRect(frame);
  }
  std::optional<int64_t> stripRow(const QPointF& at) const {
    return figure().map && scene ? strip_row_at(*figure().map, plane(), scene->font(), unit(), at) : std::nullopt;
  }
  /// The value in all the digits that tell it from its neighbours.
  QString stripText(int64_t row) const {
    const HeatMap& map = *figure().map;
    const float value = map.strip[static_cast<size_t>(row)];
    const QString number = std::isnan(value) ? FigureView::tr("none") : QString::number(static_cast<double>(value), 'g', 9);
    return FigureView::tr("%1 %2: %3 %4")
        .arg(QString::fromStdString(figure().y.title))
        .arg(row)
        .arg(QString::fromStdString(map.strip_title), number);
  }
  void tell(const QPointF& at, const QPoint& global) {
    if (!figure().map) return;
    if (const auto row = stripRow(at)) return QToolTip::showText(global, stripText(*row), view);
    const auto cell = cell_at(figure(), *scene, at);
    if (!cell) return QToolTip::hideText();
    QToolTip::showText(global, cell_text ? cell_text(cell->row, cell->column) : ui::cell_text(figure(), *cell), view);
  }
};

FigureView::FigureView(QWidget* parent) : QWidget(parent), impl_(std::make_unique<Impl>()) {
  impl_->view = this;
  impl_->whole = new QToolButton(this);
  impl_->whole->setText(tr("Show all"));
  impl_->whole->setAccessibleName(tr("Show all of the chart again"));
  impl_->whole->setToolTip(tr("This is a part of the chart. Home or a double click shows all of it again."));
  impl_->whole->setFocusPolicy(Qt::NoFocus);
  impl_->whole->hide();
  connect(impl_->whole, &QToolButton::clicked, this, &FigureView::showAll);
  connect(&impl_->layer, &CurveLayer::ready, this, qOverload<>(&QWidget::update));
  impl_->menu = make_export_menu(*this);
  install_accessible_figure();
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

FigureView::~FigureView() = default;

void FigureView::setFigure(Figure figure) { setPrepared(prepare_figure(std::move(figure), impl_->prepared)); }

void FigureView::setPrepared(std::shared_ptr<const PreparedFigure> prepared) {
  if (prepared == impl_->prepared) return;
  const Figure &before = impl_->figure(), &now = prepared->figure;
  const bool anew = now.id != before.id || now.x.title != before.x.title || now.map.has_value() != before.map.has_value();
  if (anew && !before.id.empty()) impl_->window = {};
  if (anew) impl_->layer.clear();
  impl_->prepared = std::move(prepared);
  impl_->detail.reset();
  if (impl_->built && !anew && impl_->scene->take(impl_->prepared, impl_->window))
    impl_->buildSoon();
  else
    impl_->forget();
  impl_->placeButton();
}

void FigureView::setDetail(std::shared_ptr<const PreparedFigure> detail) {
  impl_->detail = std::move(detail);
  if (impl_->scene) impl_->scene->setDetail(impl_->detail);
  impl_->under = {};
  update();
}

void FigureView::tellAgain() {
  if (impl_->pointer && underMouse()) impl_->tell(*impl_->pointer, mapToGlobal(impl_->pointer->toPoint()));
}

QRectF FigureView::plotArea() const { return impl_->area(); }
QMarginsF FigureView::ownMargins() const { return impl_->scene ? impl_->scene->ownMargins() : QMarginsF(); }

void FigureView::setLeastMargins(const QMarginsF& least) {
  if (impl_->least_margins == least) return;
  impl_->least_margins = least;
  if (impl_->scene) impl_->buildAnew();
}

QPoint FigureView::pointedAt() const { return mapToGlobal(impl_->pointer ? impl_->pointer->toPoint() : rect().center()); }

std::shared_ptr<const PreparedFigure> FigureView::prepared() const { return impl_->prepared; }
bool FigureView::drawing() const { return impl_->building || impl_->layer.busy(); }
std::optional<std::array<double, 2>> FigureView::part() const { return impl_->window.x; }
std::optional<std::array<double, 2>> FigureView::rowPart() const { return impl_->window.y; }
bool FigureView::zoomed() const { return impl_->window.x || impl_->window.y; }

void FigureView::look(const std::optional<std::array<double, 2>>& x, const std::optional<std::array<double, 2>>& y) {
  impl_->window = {x, y};
  impl_->look();
  Q_EMIT looked();
}

const Figure& FigureView::figure() const { return impl_->figure(); }

Figure FigureView::shownFigure() const {
  Figure shown = impl_->figure();
  if (impl_->detail && zoomed()) {  // at least the part that is seen, finer
    const HeatMap& part = *impl_->detail->figure.map;
    shown.map->rows = part.rows, shown.map->columns = part.columns, shown.map->values = part.values;
    shown.map->row_extent = part.row_extent, shown.map->column_extent = part.column_extent;
    shown.map->block = part.block;
  }
  if (impl_->window.x) shown.x.range = impl_->window.x;
  if (impl_->window.y) shown.y.range = impl_->window.y;
  if (shown.map && !shown.map->strip.empty()) shown.map->strip_row = impl_->selected.row;
  return shown;
}

void FigureView::setEmptyText(const QString& text) {
  impl_->empty_text = text;
  update();
}

QString FigureView::emptyText() const { return impl_->empty_text; }

void FigureView::setFilePrefix(const QString& prefix) { impl_->file_prefix = prefix; }

QString FigureView::fileName() const {
  const std::string& id = impl_->figure().id;
  return impl_->file_prefix + QString::fromStdString(id.empty() ? "figure" : id);
}

void FigureView::setCompact(bool compact) {
  impl_->compact = compact;
  impl_->forget();
}

void FigureView::setKeysOnly(bool keys_only) {
  impl_->keys_only = keys_only;
  impl_->forget();
}

void FigureView::setSelectedCell(int row, int column) {
  impl_->selected = {row, column};
  update();
}

void FigureView::setLinkedCell(int row, int column) {
  if (impl_->linked.row == row && impl_->linked.column == column) return;
  impl_->linked = {row, column};
  if (impl_->figure().map) update();
}

void FigureView::setCellText(std::function<QString(int, int)> text) { impl_->cell_text = std::move(text); }

QMenu* FigureView::exportMenu() { return impl_->menu; }

QSize FigureView::sizeHint() const { return {420, 280}; }
QSize FigureView::minimumSizeHint() const { return {140, 100}; }

void FigureView::showAll() {
  impl_->window = {};
  impl_->look();
  Q_EMIT zoomChanged();
  Q_EMIT looked();
}

bool FigureView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && impl_->figure().map) return true;  // the read-out speaks
  return QWidget::event(event);
}

void FigureView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (!impl_->prepared->filled) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(12, 8, -12, -8), Qt::AlignCenter | Qt::TextWordWrap, impl_->empty_text);
  } else {
    const bool later = !impl_->built && impl_->paintsWindow(painter);
    later ? impl_->buildSoon() : impl_->build();
    painter.drawPixmap(0, 0, impl_->under);
    if (!impl_->scene) return;
    impl_->layer.paint(painter, impl_->plane());
    impl_->scene->paintOver(painter);
    if (!impl_->anythingSeen()) {
      painter.setPen(palette().color(QPalette::PlaceholderText));
      painter.drawText(impl_->area(), Qt::AlignCenter | Qt::TextWordWrap, tr("Nothing lies in this part. Home shows all."));
    }
    impl_->paintSelection(painter);
    if (impl_->drag == Drag::zoom) {
      QColor fill = palette().color(QPalette::Highlight);
      painter.setPen(fill);
      fill.setAlpha(40);
      painter.setBrush(fill);
      painter.drawRect(QRectF(impl_->press, impl_->now).normalized().intersected(impl_->area()));
    } else if (const auto place = impl_->place(); place && impl_->drag == Drag::none) {
      if (const auto out = impl_->readOut(*place)) paint_read_out(painter, *out, *impl_->scene, *place);
    }
  }
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

void FigureView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) impl_->forget();
  QWidget::changeEvent(event);
}

void FigureView::resizeEvent(QResizeEvent*) {
  impl_->placeButton();
  impl_->buildAnew();
  Q_EMIT resized();
}

void FigureView::wheelEvent(QWheelEvent* event) {
  if (!impl_->scene || !impl_->area().contains(event->position())) return event->ignore();
  const double turn = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
  const bool only_x = event->modifiers() & Qt::ShiftModifier, only_y = event->modifiers() & Qt::ControlModifier;
  impl_->zoomAround(event->position(), std::pow(0.85, turn / 120.0), !only_y, !only_x);
}

void FigureView::mousePressEvent(QMouseEvent* event) {
  if (const auto row = impl_->stripRow(event->position()); row && event->button() == Qt::LeftButton)
    return Q_EMIT cellClicked(static_cast<int>(*row), -1);
  if (!impl_->scene || !impl_->area().contains(event->position())) return event->ignore();
  impl_->press = impl_->now = event->position();
  impl_->pressed_plane = impl_->plane();
  if (event->button() == Qt::LeftButton)
    impl_->drag = impl_->gripsLine(event->position()) ? Drag::line : (event->modifiers() & Qt::ShiftModifier) ? Drag::pan : Drag::zoom;
  if (event->button() == Qt::MiddleButton) impl_->drag = Drag::pan;
}

void FigureView::mouseMoveEvent(QMouseEvent* event) {
  impl_->now = event->position();
  impl_->by_keys = false;
  if (!impl_->scene) return;
  const Plane& from = impl_->pressed_plane;
  switch (impl_->drag) {
    case Drag::line: {
      const double x = std::clamp(impl_->now.x(), impl_->area().left(), impl_->area().right());
      Q_EMIT verticalLineMoved(impl_->plane().from({x, impl_->area().center().y()}).x());
      break;
    }
    case Drag::pan: {
      const QPointF by = impl_->now - impl_->press;
      const double fx = -by.x() / from.area.width(), fy = by.y() / from.area.height();
      impl_->zoomTo(from, fx, fx + 1, fy, fy + 1, true, true);
      break;
    }
    case Drag::none:
      setCursor(impl_->gripsLine(impl_->now) ? Qt::SizeHorCursor : Qt::ArrowCursor);
      impl_->point(impl_->now);
      impl_->tell(impl_->now, event->globalPosition().toPoint());
      break;
    case Drag::zoom: break;
  }
  update();
}

void FigureView::mouseReleaseEvent(QMouseEvent* event) {
  const Drag drag = std::exchange(impl_->drag, Drag::none);
  update();
  if (!impl_->scene || drag != Drag::zoom) return;
  const QRectF box = QRectF(impl_->press, event->position()).normalized().intersected(impl_->area());
  if (std::hypot(event->position().x() - impl_->press.x(), event->position().y() - impl_->press.y()) <= kClickSlack) {
    if (const auto cell = cell_at(impl_->figure(), *impl_->scene, impl_->press))
      Q_EMIT cellClicked(cell->row, cell->column);
    else if (!impl_->figure().map) {
      const QPointF v = impl_->plane().from(impl_->press);
      Q_EMIT positionClicked(v.x(), v.y());
    }
    return;
  }
  const QRectF& a = impl_->area();
  const bool wide = box.width() > 8, high = box.height() > 8;  // a flat drag zooms one axis
  impl_->zoomTo(impl_->plane(), (box.left() - a.left()) / a.width(), (box.right() - a.left()) / a.width(),
                (a.bottom() - box.bottom()) / a.height(), (a.bottom() - box.top()) / a.height(), wide, high);
}

void FigureView::mouseDoubleClickEvent(QMouseEvent*) {
  impl_->drag = Drag::none;
  showAll();
}

void FigureView::leaveEvent(QEvent*) { impl_->point({}); }

void FigureView::setLinkedX(const std::optional<double>& x) {
  if (impl_->linked_x == x) return;
  impl_->linked_x = x;
  if (!impl_->pointer) update();
}

void FigureView::keyPressEvent(QKeyEvent* event) {
  if (!impl_->scene) return QWidget::keyPressEvent(event);
  const QPointF centre = impl_->pointer && impl_->area().contains(*impl_->pointer) ? *impl_->pointer : impl_->area().center();
  const bool control = event->modifiers() & Qt::ControlModifier;
  const auto move = [&](double by) {
    if (control && impl_->figure().vertical_line) {
      const QPointF at(*impl_->lineAt() + by, impl_->area().center().y());
      if (impl_->area().contains(at)) Q_EMIT verticalLineMoved(impl_->plane().from(at).x());
    } else {
      impl_->point(QPointF(std::clamp(centre.x() + 4 * by, impl_->area().left() + 1, impl_->area().right() - 1), centre.y()));
    }
  };
  const int key = event->key();
  if (impl_->figure().map && (key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down)) {
    const bool top_down = impl_->figure().map->top_down;
    const int down = key == Qt::Key_Down ? 1 : key == Qt::Key_Up ? -1 : 0, right = key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : 0;
    return impl_->moveCell(centre, top_down ? down : -down, right);
  }
  switch (key) {
    case Qt::Key_Plus:
    case Qt::Key_Equal: impl_->zoomAround(centre, 0.8, true, true); break;
    case Qt::Key_Minus: impl_->zoomAround(centre, 1.25, true, true); break;
    case Qt::Key_0:
    case Qt::Key_Home: showAll(); break;
    case Qt::Key_Left: move(-1); break;
    case Qt::Key_Right: move(1); break;
    case Qt::Key_Escape: impl_->point({}); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (!impl_->pointer) return QWidget::keyPressEvent(event);
      if (impl_->figure().map) {
        if (const auto cell = cell_at(impl_->figure(), *impl_->scene, *impl_->pointer)) Q_EMIT cellClicked(cell->row, cell->column);
        break;
      }
      Q_EMIT positionClicked(impl_->plane().from(*impl_->pointer).x(), impl_->plane().from(*impl_->pointer).y());
      break;
    default: QWidget::keyPressEvent(event);
  }
}

void FigureView::contextMenuEvent(QContextMenuEvent* event) {
  if (impl_->prepared->filled) impl_->menu->popup(event->globalPos());
}

}  // namespace saccade::ui
