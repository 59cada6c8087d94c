#include "ui/configure/form_above_batch.h"

#include <algorithm>

namespace saccade::ui {
namespace {
constexpr int kBatchShare = 4;  // the batch has at least one in so many parts of the height, and a bit
}

FormAboveBatch::FormAboveBatch(QWidget* editors, QWidget* batch, QWidget* parent) : QSplitter(Qt::Vertical, parent) {
  addWidget(editors);
  addWidget(batch);
  setStretchFactor(0, 4);
  setStretchFactor(1, 1);
  setChildrenCollapsible(false);
  connect(this, &QSplitter::splitterMoved, this, [this] { dragged_ = true; });
}

void FormAboveBatch::setWanted(int height) {
  if (height == wanted_) return;
  wanted_ = height;
  share();
}

void FormAboveBatch::resizeEvent(QResizeEvent* event) {
  QSplitter::resizeEvent(event);
  share();
}

void FormAboveBatch::share() {
  if (dragged_) return;
  const int all = height() - handleWidth(), most = all - all / kBatchShare;
  const int editors = wanted_ > 0 ? std::min(wanted_, most) : most;
  setSizes({editors, all - editors});
}

}  // namespace saccade::ui
