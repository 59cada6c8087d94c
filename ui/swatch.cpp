#include "ui/swatch.h"

#include <QApplication>
#include <QPainter>

#include "ui/charts/colours.h"
#include "ui/charts/fitting_name.h"
#include "ui/charts/marker_painter.h"
#include "ui/run_list.h"
#include "ui/theme.h"

namespace saccade::ui {

void paintSwatch(QPainter* painter, const QRect& rect, const QModelIndex& run, const QPalette& palette) {
  const QColor paper = run.data(RunList::ColourRole).value<QColor>();
  if (!paper.isValid()) return;
  const Colour colour{static_cast<uint8_t>(paper.red()), static_cast<uint8_t>(paper.green()), static_cast<uint8_t>(paper.blue())};
  QPen pen(seen_colour(colour, isDark(palette)), 3);
  pen.setCapStyle(Qt::FlatCap);
  switch (static_cast<Dash>(run.data(RunList::DashRole).toInt())) {
    case Dash::solid: break;
    case Dash::dash: pen.setDashPattern({2.4, 0.9}); break;
    case Dash::dot: pen.setDashPattern({1, 0.8}); break;
    case Dash::dash_dot: pen.setDashPattern({2, 0.8, 0.8, 0.8}); break;
  }
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(pen);
  const double y = rect.center().y() + 0.5;
  painter->drawLine(QPointF(rect.left(), y), QPointF(rect.right() + 1, y));
  const auto marker = static_cast<Marker>(run.data(RunList::MarkerRole).toInt());
  if (marker != Marker::circle)
    paint_marker(*painter, marker, {rect.left() + 0.5 * rect.width(), y}, 4, pen.color(), palette.color(QPalette::Base));
}

void TitleDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem shown = option;
  initStyleOption(&shown, index);
  const QStyle* style = option.widget ? option.widget->style() : QApplication::style();
  const QRect words = style->subElementRect(QStyle::SE_ItemViewItemText, &shown, option.widget);
  const int margin = style->pixelMetric(QStyle::PM_FocusFrameHMargin, &shown, option.widget) + 1;
  shown.text = fittingTitle(shown.text, shown.fontMetrics, words.width() - 2 * margin);
  style->drawControl(QStyle::CE_ItemViewItem, &shown, painter, option.widget);
}

void SwatchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  TitleDelegate::paint(painter, option, index);
  painter->save();
  if (option.state & QStyle::State_Selected) {  // on the ground that it is meant for, whatever the selection's colour
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(Qt::NoPen);
    painter->setBrush(option.palette.color(QPalette::Base));
    const double high = 0.5 * option.rect.height();
    painter->drawRoundedRect(
        QRectF(option.rect.left() + kSwatchMargin - 3, option.rect.center().y() + 1 - 0.5 * high, kSwatchWidth + 6, high), 3, 3);
  }
  paintSwatch(painter, {option.rect.left() + kSwatchMargin, option.rect.top(), kSwatchWidth, option.rect.height()}, index, option.palette);
  painter->restore();
}

QSize SwatchDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  return QStyledItemDelegate::sizeHint(option, index) + QSize(0, 6);
}

/// An empty picture keeps the place of the swatch.
void SwatchDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  option->features |= QStyleOptionViewItem::HasDecoration;
  option->decorationSize = {kSwatchWidth + 8, 4};
  QPixmap room(option->decorationSize);
  room.fill(Qt::transparent);
  option->icon = QIcon(room);
}

}  // namespace saccade::ui
