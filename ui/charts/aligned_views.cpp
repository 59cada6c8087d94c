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

/// Views end at one height in a row, whatever stands above them, so what they have beyond the smallest is left above and at the right.
void AlignedViews::align() {
  QList<FigureView*> shown;
  for (const QPointer<FigureView>& view : std::as_const(views_))
    if (view && view->isVisible()) shown << view;
  QMarginsF most;
  for (const FigureView* view : std::as_const(shown)) most = most | view->ownMargins();
  QSizeF plot(1e6, 1e6);
  for (const FigureView* view : std::as_const(shown)) plot = plot.boundedTo(QSizeF(view->size()).shrunkBy(most));
  for (FigureView* view : std::as_const(shown))
    view->setLeastMargins(shown.size() < 2 ? QMarginsF()
                                           : QMarginsF(most.left(), view->height() - most.bottom() - plot.height(),
                                                       view->width() - most.left() - plot.width(), most.bottom()));
}

}  // namespace saccade::ui
