#pragma once
#include <QScrollArea>
#include <QScrollBar>

namespace saccade::ui {

/// Content that scrolls up and down on the ground of what it stands in, without a frame; never narrower than the content can be.
class PlainScroll : public QScrollArea {
 public:
  PlainScroll(QWidget* content, QWidget* parent) : QScrollArea(parent) {
    setWidget(content);
    setWidgetResizable(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);
    viewport()->setAutoFillBackground(false);
    content->setAutoFillBackground(false);
  }

  QSize minimumSizeHint() const override {
    return {widget()->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width(), QScrollArea::minimumSizeHint().height()};
  }
};

}  // namespace saccade::ui
