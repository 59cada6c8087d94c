#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QStyle>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/charts/figure_view.h"

namespace saccade::ui {

namespace {

/// Gives way when there is little room, and says the rest in its tool tip.
class ElidedLabel : public QLabel {
 public:
  explicit ElidedLabel(QWidget* parent) : QLabel(parent) { setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const QString shown = fontMetrics().elidedText(text(), Qt::ElideRight, width());
    style()->drawItemText(&painter, rect(), Qt::AlignLeft | Qt::AlignVCenter, palette(), true, shown, foregroundRole());
    if (const QString rest = shown == text() ? QString() : text(); rest != toolTip()) setToolTip(rest);
  }
};

QToolButton* export_button(FigureView& view, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setText(QObject::tr("Export"));
  button->setAccessibleName(QObject::tr("Export this figure"));
  button->setToolTip(QObject::tr("Save as PDF, SVG, PNG or CSV, or copy"));
  button->setPopupMode(QToolButton::InstantPopup);
  button->setAutoRaise(true);
  button->setMenu(view.exportMenu());
  return button;
}

}  // namespace

Card::Card(const QString& title, const QString& subtitle, QWidget* content, QWidget* parent)
    : QWidget(parent), title_(new QLabel(this)), subtitle_(new ElidedLabel(this)), header_(new QHBoxLayout) {
  QFont bold = font();
  bold.setBold(true);
  title_->setFont(bold);
  subtitle_->setForegroundRole(QPalette::PlaceholderText);
  header_->setSpacing(6);
  header_->addWidget(title_);
  header_->addWidget(subtitle_, 1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(10, 6, 8, 8);
  column->setSpacing(4);
  column->addLayout(header_);
  column->addWidget(content, 1);
  if (auto* view = qobject_cast<FigureView*>(content)) {
    header_->addWidget(export_button(*view, this));
    view->setAccessibleName(title);
  }
  setTitle(title, subtitle);
}

void Card::setTitle(const QString& title, const QString& subtitle) {
  title_->setText(title);
  subtitle_->setText(subtitle);
  if (auto* view = findChild<FigureView*>(QString(), Qt::FindDirectChildrenOnly)) view->setAccessibleName(title);
}

void Card::addControl(QWidget* control) { header_->insertWidget(2 + controls_++, control); }

void Card::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QColor edge = palette().color(QPalette::WindowText);
  edge.setAlphaF(0.16f);
  painter.setPen(edge);
  painter.setBrush(palette().color(QPalette::Base));
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
}

}  // namespace saccade::ui
