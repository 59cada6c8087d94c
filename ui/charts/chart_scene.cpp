#include "ui/charts/chart_scene.h"

#include <QCategoryAxis>
#include <QChart>
#include <QFontMetricsF>
#include <QGraphicsLayout>
#include <QGraphicsTextItem>
#include <QGuiApplication>
#include <QLegend>
#include <QPainter>
#include <limits>
#include <tuple>

#include "ui/charts/map_painter.h"
#include "ui/charts/strip_painter.h"
#include "ui/charts/ticks.h"

namespace saccade::ui {

namespace {

constexpr double kColourBar = 9;  // points, width
constexpr Colour kKnown{0x00, 0x9E, 0x73};

QCategoryAxis* make_axis(QChart& chart, Qt::Alignment side) {
  auto* axis = new QCategoryAxis;
  axis->setLabelsPosition(QCategoryAxis::AxisLabelsPositionOnValue);
  axis->setTruncateLabels(false);
  chart.addAxis(axis, side);
  return axis;
}

/// Whether an axis counts the cells of a map, or has a scale of its own.
bool counts_cells(const HeatMap& map, const std::array<double, 2>& extent) { return map.cells[0] > 0 || extent[0] == extent[1]; }

int whole(double v) { return static_cast<int>(std::ceil(v)); }

}  // namespace

ChartScene::ChartScene(std::shared_ptr<const PreparedFigure> prepared, const FigureStyle& style, double unit)
    : prepared_(std::move(prepared)), style_(style), colours_(FigureColours::of(style.dark)), unit_(unit), chart_(new QChart) {
  scene_.addItem(chart_);
  chart_->setBackgroundVisible(false);
  chart_->setPlotAreaBackgroundVisible(false);
  chart_->layout()->setContentsMargins(0, 0, 0, 0);
  chart_->legend()->hide();
  x_axis_ = make_axis(*chart_, Qt::AlignBottom);
  y_axis_ = make_axis(*chart_, Qt::AlignLeft);
  for (QCategoryAxis* axis : {x_axis_, y_axis_}) {
    axis->setLabelsFont(font());
    axis->setTitleFont(font());
    axis->setLabelsBrush(colours_.quiet_text);
    axis->setTitleBrush(colours_.text);
    axis->setLinePen(QPen(colours_.axis, 0.6 * unit_));
    axis->setGridLinePen(QPen(colours_.grid, 0.5 * unit_));
  }
  x_axis_->setGridLineVisible(false);
  y_axis_->setGridLineVisible(!figure().map);
}

ChartScene::~ChartScene() = default;

QFont ChartScene::font(double scale) const {
  QFont font = QGuiApplication::font();
  if (!style_.families.isEmpty()) font.setFamilies(style_.families);
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(style_.font_points * scale * unit_))));
  return font;
}

QStringList ChartScene::labels(Qt::Orientation orientation) const {
  return (orientation == Qt::Horizontal ? x_axis_ : y_axis_)->categoriesLabels();
}

Legend ChartScene::legendOf(const PreparedFigure& prepared, const QSizeF& size) const {
  const double nominal = prepared.figure.height_mm / 25.4 * 72 * unit_;
  const double most = style_.whole_legend ? std::max(0.55 * size.height(), size.height() - nominal * 2 / 3) : 0.4 * size.height();
  return style_.compact ? Legend{} : legend_of(prepared.figure, QFontMetricsF(font()), {size.width(), most}, unit_, style_.legend);
}

std::pair<AxisScale, AxisScale> ChartScene::scales(const PreparedFigure& prepared, const Window& window) {
  const AxisScale x = window.x ? x_scale(prepared.figure, window) : prepared.x;
  return {x, window.x || window.y ? y_scale(prepared.figure, prepared.curves, x, window) : prepared.y};
}

bool ChartScene::take(const std::shared_ptr<const PreparedFigure>& next, const Window& window) {
  const Figure &a = figure(), &b = next->figure;
  const auto same_axis = [](const AxisRecipe& l, const AxisRecipe& r) {
    return l.title == r.title && AxisScale::of(l) == AxisScale::of(r);
  };
  if (a.map || b.map || a.title != b.title || !same_axis(a.x, b.x) || !same_axis(a.y, b.y) || a.identity_line != b.identity_line ||
      a.vertical_line != b.vertical_line || a.vertical_label != b.vertical_label)
    return false;
  const auto [x, y] = scales(*next, window);
  Legend legend = legendOf(*next, chart_->size());
  if (!(x == plane_.x) || !(y == plane_.y) || legend.height != legend_.height) return false;
  prepared_ = next;
  legend_ = std::move(legend);
  runs_off_ = window.x || window.y ? std::vector<RunsOff>{} : next->runs_off;
  return true;
}

void ChartScene::layout(const QSizeF& size, const Window& window) {
  const QFontMetricsF metrics(font());
  legend_ = legendOf(*prepared_, size);
  const double legend = legend_.height;
  const double strip = figure().map ? strip_width(*figure().map, font(), unit_) : 0;
  const double bar =
      prepared_->map.empty() ? 0 : strip + kColourBar * unit_ + 3.2 * metrics.height() + metrics.horizontalAdvance(QStringLiteral("0.00"));
  const double names = style_.legend == LegendKind::direct && !style_.compact ? direct_label_width(prepared_->curves, metrics, unit_) : 0;
  const double edge = 0.8 * metrics.height();  // half a tick label may stand past the end of an axis
  chart_->setMargins(QMargins(
      whole(2 * unit_), whole(legend + edge / 2),
      whole(bar > 0 ? bar : std::max(std::max(edge, names), 0.5 * metrics.horizontalAdvance(QStringLiteral("000 M")))), whole(unit_)));
  if (!least_margins_.isNull()) chart_->setPlotArea(QRectF());
  chart_->resize(size);

  std::tie(plane_.x, plane_.y) = scales(*prepared_, window);
  runs_off_ = window.x || window.y ? std::vector<RunsOff>{} : prepared_->runs_off;
  const bool cells = figure().map.has_value();
  const double beside = figure().x.names.empty() ? 0 : bar + 4 * metrics.height();  // names have to fit into what is really left
  setAxis(*x_axis_, plane_.x, figure().x, size.width() - names - beside, cells && counts_cells(*figure().map, figure().map->column_extent));
  setAxis(*y_axis_, plane_.y, figure().y, size.height() - legend, cells && counts_cells(*figure().map, figure().map->row_extent));
  chart_->layout()->invalidate();
  chart_->layout()->activate();
  if (!style_.whole_legend && dropCutTitles(metrics)) {
    chart_->layout()->invalidate();
    chart_->layout()->activate();
  }
  keepMargins(size);
  plane_.area = chart_->plotArea();
  if (bar > 0)
    colour_bar_ = QRectF(plane_.area.right() + strip + 0.8 * metrics.height(), plane_.area.top(), kColourBar * unit_, plane_.area.height());
}

/// Several figures have their plot areas in the same place of their views when each leaves the most that one of them needs.
void ChartScene::keepMargins(const QSizeF& size) {
  const QRectF own = chart_->plotArea();
  own_margins_ = QMarginsF(own.left(), own.top(), size.width() - own.right(), size.height() - own.bottom());
  const QMarginsF most = own_margins_ | least_margins_;  // the greater one at each side
  const QRectF area = QRectF(QPointF(), size).marginsRemoved(most);
  if (most == own_margins_ || area.width() < 20 || area.height() < 20) return;
  chart_->setPlotArea(area);
  chart_->layout()->invalidate();  // the axes follow
  chart_->layout()->activate();
}

/// Whether Qt Charts, which gives an axis a part of the height only, has put dots in the place of its title.
bool ChartScene::isCut(const QCategoryAxis& axis) const {
  const QList<QGraphicsItem*> items = scene_.items();
  return std::any_of(items.begin(), items.end(), [&](const QGraphicsItem* item) {
    const auto* text = qgraphicsitem_cast<const QGraphicsTextItem*>(item);
    return text && text->isVisible() && (text->rotation() != 0) == (&axis == y_axis_) && text->toPlainText() == QStringLiteral("...");
  });
}

/// On screen a title that would end in dots is left out: the card says what is shown, and the curves have the room.
bool ChartScene::dropCutTitles(const QFontMetricsF& metrics) {
  bool dropped = false;
  for (QCategoryAxis* axis : {x_axis_, y_axis_}) {
    const double room = axis == x_axis_ ? chart_->plotArea().width() : chart_->plotArea().height();
    const bool narrow = axis == y_axis_ && chart_->plotArea().width() < 5 * metrics.height();
    if (!axis->isTitleVisible() || (!narrow && metrics.horizontalAdvance(axis->titleText()) <= room && !isCut(*axis))) continue;
    axis->setTitleVisible(false);
    dropped = true;
  }
  return dropped;
}

void ChartScene::setAxis(QCategoryAxis& axis, const AxisScale& scale, const AxisRecipe& recipe, double length, bool cells) {
  const bool horizontal = &axis == x_axis_;
  const QFontMetricsF metrics(font());
  const double room = horizontal ? 5.5 * metrics.averageCharWidth() + 2 * metrics.height() : 2.6 * metrics.height();
  const int most = std::clamp(static_cast<int>(0.85 * length / room), 2, 12);
  const bool named = !recipe.names.empty();
  const double place_of_name = length / (scale.high - scale.low);
  const WhatDiffers names = shownNames(recipe.names, horizontal, place_of_name);
  const bool fit = !named || !names.names.empty();
  const Ticks ticks = named   ? named_ticks(scale, fit ? names.names : recipe.names, !fit)
                      : cells ? cell_ticks(scale.low, scale.high, most)
                              : ticks_for(scale, most);
  const bool dense = static_cast<double>(ticks.minor.size()) > length / (4 * unit_);
  (horizontal ? x_minor_ : y_minor_) = cells || dense ? std::vector<double>{} : ticks.minor;

  for (const QString& label : axis.categoriesLabels()) axis.remove(label);
  const double low = scale.shown(scale.low), high = scale.shown(scale.high);
  axis.setRange(low, high);
  axis.setReverse(scale.reversed);
  axis.setStartValue(low - (high - low));
  QString last;
  const double along = length - 5 * metrics.height();       // at least, beside the labels and the title of the other axis
  double taken = -std::numeric_limits<double>::infinity();  // where the label before ends; on a logarithmic axis they come ever closer
  for (size_t i = 0; i < ticks.positions.size(); ++i) {
    const double at = std::clamp(scale.shown(ticks.positions[i]), low, high), place = (at - low) / (high - low) * along;
    const double half = horizontal && scale.logarithmic ? (metrics.horizontalAdvance(ticks.labels[i]) + metrics.averageCharWidth()) / 2 : 0;
    if (ticks.labels[i] == last || (half > 0 && place - half < taken)) continue;
    axis.append(last = ticks.labels[i], at);
    taken = place + half;
  }
  const std::string between = recipe.title.empty() || names.common.empty() ? "" : ": ";
  const std::string title = fit ? recipe.title + between + names.common : title_with_names(recipe);
  axis.setTitleText(QString::fromStdString(title).toHtmlEscaped());
  axis.setTitleVisible(!title.empty() && !style_.compact);
}

/// Beside each other under the axis, or over each other in at most a third of the width. `place`: scene units from one to the next.
bool ChartScene::namesFit(const std::vector<std::string>& names, bool horizontal, double place) const {
  const QFontMetricsF metrics(font());
  double widest = 0;
  for (const std::string& name : names) widest = std::max(widest, metrics.horizontalAdvance(QString::fromStdString(name)));
  return horizontal ? widest + metrics.averageCharWidth() <= 0.85 * place
                    : metrics.height() <= 0.9 * place && widest <= chart_->size().width() / 3;
}

/// Whole on a line, else without what all have, else whole in several lines.
WhatDiffers ChartScene::shownNames(const std::vector<std::string>& names, bool horizontal, double place) const {
  const auto as_html = [](std::vector<std::string> texts) {  // as which Qt Charts reads labels
    for (std::string& text : texts) text = QString::fromStdString(text).toHtmlEscaped().toStdString();
    return texts;
  };
  if (namesFit(names, horizontal, place)) return {{}, as_html(names)};
  WhatDiffers shorter = what_differs(names);
  if (!shorter.common.empty() && namesFit(shorter.names, horizontal, place)) return {shorter.common, as_html(std::move(shorter.names))};
  std::vector<std::string> broken;
  const QFontMetricsF metrics(font());
  for (const std::string& name : names)
    if (const QStringList lines = lines_of_name(name, metrics, 0.85 * place); horizontal && !lines.isEmpty())
      broken.push_back(lines.join(QChar('\n')).toHtmlEscaped().replace(QChar('\n'), QStringLiteral("<br>")).toStdString());
  return {{}, broken.size() == names.size() ? broken : std::vector<std::string>{}};
}

void ChartScene::paint(QPainter& painter, double column, bool exact_map) {
  paintUnder(painter, exact_map);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const auto colour = [&](const auto& curve) { return seen_colour(curve->curve().colour, style_.dark); };
  for (const auto& curve : curves()) paint_band(painter, *curve, plane_, colour(curve), unit_, column);
  for (const auto& curve : curves()) paint_curve(painter, *curve, plane_, colour(curve), unit_, column);
  for (const auto& curve : curves()) paint_markers(painter, *curve, plane_, colour(curve), colours_.ground, unit_);
  painter.restore();
  paintOver(painter);
}

void ChartScene::paintUnder(QPainter& painter, bool exact_map) {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setRenderHint(QPainter::LosslessImageRendering);
  const QRectF all(QPointF(), chart_->size());
  painter.save();
  scene_.render(&painter, all, all, Qt::IgnoreAspectRatio);
  painter.restore();
  painter.save();
  if (!prepared_->map.empty()) {
    paintMap(painter, exact_map);
    paint_strip(painter, *figure().map, plane_, font(), colours_, unit_);
  }
  paintLines(painter);
  painter.restore();
}

/// The whole map as far as no finer picture of the part that is looked at covers it.
void ChartScene::paintMap(QPainter& painter, bool exact) {
  const HeatMap& map = *figure().map;
  QRectF fine;
  if (detail_) {
    const HeatMap& part = *detail_->figure.map;
    fine = QRectF(plane_.to(part.column_extent[0], part.row_extent[0]), plane_.to(part.column_extent[1], part.row_extent[1])).normalized();
  }
  if (!fine.contains(plane_.area)) paint_cells(painter, map, prepared_->map, plane_, exact);
  if (fine.intersects(plane_.area)) {
    painter.fillRect(fine.intersected(plane_.area), colours_.ground);
    paint_cells(painter, *detail_->figure.map, detail_->map, plane_, exact);
  }
  paint_outlines(painter, map, plane_, map.marked, colours_.accent, unit_);
  paint_outlines(painter, map, plane_, map.known, seen_colour(kKnown, style_.dark), unit_);
}

void ChartScene::paintOver(QPainter& painter) const {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  paintFrame(painter);
  paintLineLabel(painter);
  paintRunaway(painter);
  paint_legend(painter, legend_, font(), colours_, style_.dark, unit_);
  if (style_.legend == LegendKind::direct && !style_.compact) paint_direct_labels(painter, curves(), plane_, font(), style_.dark, unit_);
  if (!prepared_->map.empty()) paintColourBar(painter);
  painter.restore();
}

/// Minor ticks inside the plot area.
void ChartScene::paintFrame(QPainter& painter) const {
  painter.setPen(QPen(colours_.axis, 0.5 * unit_));
  const QRectF& a = plane_.area;
  for (const double v : x_minor_) {
    const double x = a.left() + plane_.x.fraction(v) * a.width();
    painter.drawLine(QPointF(x, a.bottom()), QPointF(x, a.bottom() - 2.5 * unit_));
  }
  for (const double v : y_minor_) {
    const double y = a.bottom() - plane_.y.fraction(v) * a.height();
    painter.drawLine(QPointF(a.left(), y), QPointF(a.left() + 2.5 * unit_, y));
  }
}

/// Identity line and vertical line.
void ChartScene::paintLines(QPainter& painter) const {
  const QRectF& a = plane_.area;
  if (figure().identity_line) {
    Curve identity;
    const double low = std::max(plane_.x.low, plane_.y.low), high = std::min(plane_.x.high, plane_.y.high);
    if (low < high) {
      for (int i = 0; i <= 64; ++i) identity.x.push_back(low + (high - low) * i / 64.0);  // bent when one axis is logarithmic
      identity.y = identity.x;
      identity.width = 0.8;
      identity.dash = Dash::dot;
      const PreparedCurve prepared(identity, AxisScale::of(figure().y));
      paint_curve(painter, prepared, plane_, colours_.axis, unit_, unit_);
    }
  }
  if (!figure().vertical_line) return;
  const double t = plane_.x.fraction(*figure().vertical_line);
  if (!(t >= 0 && t <= 1)) return;
  const double x = a.left() + t * a.width();
  QPen pen(colours_.accent, 1.0 * unit_);
  if (figure().vertical_label.empty()) {
    pen.setColor(colours_.quiet_text);
    pen.setDashPattern({4, 3});
  }
  painter.setPen(pen);
  painter.drawLine(QPointF(x, a.top()), QPointF(x, a.bottom()));
}

/// Over the curves and their bands, which would cover it.
void ChartScene::paintLineLabel(QPainter& painter) const {
  if (!figure().vertical_line || figure().vertical_label.empty()) return;
  const QRectF& a = plane_.area;
  const double t = plane_.x.fraction(*figure().vertical_line);
  if (!(t >= 0 && t <= 1)) return;
  const double x = a.left() + t * a.width();
  const QString text = QString::fromStdString(figure().vertical_label);
  const QFontMetricsF metrics(font());
  QRectF box(0, 0, metrics.horizontalAdvance(text) + 8 * unit_, 1.3 * metrics.height());
  box.moveCenter({x, a.top() + 0.65 * metrics.height()});
  box.moveLeft(std::clamp(box.left(), a.left(), std::max(a.left(), a.right() - box.width())));
  painter.setPen(Qt::NoPen);
  painter.setBrush(colours_.accent);
  painter.drawRoundedRect(box, 2 * unit_, 2 * unit_);
  painter.setFont(font());
  painter.setPen(contrast(colours_.accent, Qt::white) > 3.5 ? Qt::white : Qt::black);
  painter.drawText(box, Qt::AlignCenter, text);
}

/// Says at the edges how far curves go on beyond them.
void ChartScene::paintRunaway(QPainter& painter) const {
  const QFontMetricsF metrics(font());
  const QRectF& a = plane_.area;
  painter.setFont(font());
  for (const auto& [edge, value] : runs_off_) {
    const QChar arrow(edge == Qt::TopEdge ? 0x2191 : edge == Qt::BottomEdge ? 0x2193 : edge == Qt::LeftEdge ? 0x2190 : 0x2192);
    const QString text = arrow + QStringLiteral(" to ") + short_number(value);
    const double gap = 3 * unit_;
    QRectF box(0, 0, metrics.horizontalAdvance(text) + 2 * gap, 1.2 * metrics.height());
    box.moveCenter(a.center());
    if (edge == Qt::TopEdge) box.moveTopRight(a.topRight() + QPointF(-gap, gap));
    if (edge == Qt::BottomEdge) box.moveBottomRight(a.bottomRight() - QPointF(gap, gap));
    if (edge == Qt::LeftEdge) box.moveLeft(a.left() + gap);
    if (edge == Qt::RightEdge) box.moveRight(a.right() - gap);
    painter.setPen(QPen(colours_.axis, 0.5 * unit_));
    painter.setBrush(colours_.ground);
    painter.drawRoundedRect(box, 2 * unit_, 2 * unit_);
    painter.setPen(colours_.text);
    painter.drawText(box, Qt::AlignCenter, text);
  }
}

void ChartScene::paintColourBar(QPainter& painter) const {
  const HeatMap& map = *figure().map;
  const QList<QRgb>& colours = colour_map(map.diverging, map.colours);
  QImage bar(1, static_cast<int>(colours.size()), QImage::Format_RGB32);
  for (int i = 0; i < bar.height(); ++i) bar.setPixel(0, i, colours[colours.size() - 1 - i]);
  painter.drawImage(colour_bar_, bar);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colours_.axis, 0.5 * unit_));
  painter.drawRect(colour_bar_);

  const QFontMetricsF metrics(font());
  painter.setFont(font());
  const AxisScale scale{map.range[0], map.range[1], map.logarithmic, false};
  const Ticks ticks = ticks_for(scale, std::clamp(static_cast<int>(colour_bar_.height() / (2.6 * metrics.height())), 2, 8));
  double widest = 0;
  for (size_t i = 0; i < ticks.positions.size(); ++i) {
    const double y = colour_bar_.bottom() - scale.fraction(ticks.positions[i]) * colour_bar_.height();
    painter.setPen(QPen(colours_.axis, 0.5 * unit_));
    painter.drawLine(QPointF(colour_bar_.right(), y), QPointF(colour_bar_.right() + 2.5 * unit_, y));
    painter.setPen(colours_.quiet_text);
    painter.drawText(QPointF(colour_bar_.right() + 4 * unit_, y + 0.36 * metrics.ascent()), ticks.labels[i]);
    widest = std::max(widest, metrics.horizontalAdvance(ticks.labels[i]));
  }
  const QString title = QString::fromStdString(scale_title(detail_ ? *detail_->figure.map : map));
  if (!style_.whole_legend && metrics.horizontalAdvance(title) > chart_->size().height()) return;  // as with axes: no dots in its place
  painter.save();
  painter.setPen(colours_.text);
  const double half = metrics.horizontalAdvance(title) / 2;
  painter.translate(colour_bar_.right() + 5 * unit_ + widest + 1.1 * metrics.height(),
                    std::max(half, std::min(colour_bar_.center().y(), chart_->size().height() - half)));
  painter.rotate(-90);
  painter.drawText(QPointF(-metrics.horizontalAdvance(title) / 2, 0), title);
  painter.restore();
}

}  // namespace saccade::ui
