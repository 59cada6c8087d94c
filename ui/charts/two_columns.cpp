#include "ui/charts/two_columns.h"

#include <QBoxLayout>

namespace saccade::ui {

TwoColumns::TwoColumns(const Part& left, const Part& right, int narrow, double heights, QWidget* parent)
    : QScrollArea(parent), left_(left), right_(right), layout_(nullptr), narrow_(narrow), heights_(heights) {
  auto* content = new QWidget;
  layout_ = new QBoxLayout(QBoxLayout::LeftToRight, content);
  layout_->setContentsMargins(0, 0, 0, 0);
  layout_->addWidget(left.widget, left.stretch);
  layout_->addWidget(right.widget, right.stretch);
  content->setAutoFillBackground(false);
  setWidget(content);
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  viewport()->setAutoFillBackground(false);
}

QSize TwoColumns::minimumSizeHint() const { return {200, 160}; }

void TwoColumns::resizeEvent(QResizeEvent* event) {
  const bool narrow = width() < narrow_;
  const auto direction = narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight;
  if (direction != layout_->direction()) {
    layout_->setDirection(direction);
    for (const Part& part : {left_, right_}) layout_->setStretchFactor(part.widget, narrow ? part.narrow_stretch : part.stretch);
    Q_EMIT narrowChanged(narrow);
  }
  widget()->setMinimumHeight(narrow ? static_cast<int>(heights_ * height()) : 0);
  QScrollArea::resizeEvent(event);
}

}  // namespace saccade::ui
