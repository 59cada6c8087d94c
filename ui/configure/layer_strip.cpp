#include "ui/configure/layer_strip.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "ui/theme.h"

namespace saccade::ui {

LayerStrip::LayerStrip(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Order of the layers"));
}

void LayerStrip::setLayers(const std::vector<size_t>& order, const QList<QColor>& colours, const QStringList& titles) {
  order_ = order;
  colours_ = colours;
  titles_ = titles;
  QStringList names;
  for (const size_t block : order_) names << titles_.value(static_cast<int>(block));
  setAccessibleDescription(names.join(QStringLiteral(", ")));
  update();
}

void LayerStrip::setCurrent(int block) {
  current_ = block;
  update();
}

QRectF LayerStrip::cell(size_t layer) const {
  const double wide = std::min(44.0, width() / std::max(1.0, static_cast<double>(order_.size())));
  const double gap = wide > 6 ? 2 : 0;
  return {static_cast<double>(layer) * wide, 4, wide - gap, height() - 8.0};
}

void LayerStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  for (size_t layer = 0; layer < order_.size(); ++layer) {
    const auto block = static_cast<int>(order_[layer]);
    const QRectF box = cell(layer);
    const QColor colour = colours_.value(block, palette().color(QPalette::Mid));
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    const double round = box.width() > 8 ? 3 : 0;
    painter.drawRoundedRect(block == current_ ? box.adjusted(0, -3, 0, 3) : box, round, round);
    if (box.width() < fontMetrics().horizontalAdvance(QString::number(order_.size())) + 4) continue;
    painter.setPen(colour.lightnessF() > 0.5 ? Qt::black : Qt::white);
    painter.drawText(box, Qt::AlignCenter, QString::number(layer));
  }
}

bool LayerStrip::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  for (size_t layer = 0; layer < order_.size(); ++layer)
    if (cell(layer).contains(help->pos()))
      QToolTip::showText(help->globalPos(), tr("Layer %1: %2").arg(layer).arg(titles_.value(static_cast<int>(order_[layer]))), this);
  return true;
}

}  // namespace saccade::ui
