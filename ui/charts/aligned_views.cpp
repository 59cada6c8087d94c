#include "ui/charts/aligned_views.h"

#include "ui/charts/figure_view.h"

namespace saccade::ui {

AlignedViews::AlignedViews(QObject* parent) : QObject(parent) {
  soon_.setSingleShot(true);  // once for all that are laid out in one event, and not while one of them paints
  connect(&soon_, &QTimer::timeout, this, &AlignedViews::align);
}

void AlignedViews::setViews(const QList<FigureView*>& views) {
  for (const QPointer<FigureView>& before : std::as_const(views_)) {
    if (!before || views.contains(before.data())) continue;
    disconnect(before, nullptr, &soon_, nullptr);
    before->setLeastMargins({});
  }
  for (FigureView* view : views)
    if (!views_.contains(view)) connect(view, &FigureView::laidOut, &soon_, qOverload<>(&QTimer::start));
  views_.clear();
  for (FigureView* view : views) views_ << view;
  soon_.start();
}

void AlignedViews::align() {
  QMarginsF most;
  if (views_.size() > 1)
    for (const QPointer<FigureView>& view : std::as_const(views_))
      if (view && view->isVisible()) most = most | view->ownMargins();
  for (const QPointer<FigureView>& view : std::as_const(views_))
    if (view) view->setLeastMargins(most);
}

}  // namespace saccade::ui
