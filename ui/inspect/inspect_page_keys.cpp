// What keys do: queries, heads, layers and steps one after the other, and the source of a what-if.
#include <QKeyEvent>
#include <QSlider>
#include <QTabWidget>
#include <algorithm>

#include "analysis/probes/capture_maps.h"
#include "ui/charts/figure_view.h"
#include "ui/inspect/inspect_page.h"
#include "ui/inspect/what_if_panel.h"
#include "ui/session.h"

namespace saccade::ui {

void InspectPage::moveQuery(int by) {
  if (const auto at = place())
    session_.setQuery(std::clamp(at->query + by, 0, static_cast<int>(find_map(*capture(), MapKind::weights, at->layer)->shape[1]) - 1));
}

void InspectPage::moveHead(int by_layers, int by_heads) {
  const auto at = place();
  if (!at) return;
  const auto known = layers();
  const auto index = std::find(known.begin(), known.end(), at->layer) - known.begin() + by_layers;
  const int layer = known[static_cast<size_t>(std::clamp<std::ptrdiff_t>(index, 0, static_cast<std::ptrdiff_t>(known.size()) - 1))];
  session_.setHead(layer, std::clamp(at->head + by_heads, 0, heads(layer) - 1));
}

void InspectPage::moveStep(int by) { step_->setValue(std::clamp(step_->value() + by, step_->minimum(), step_->maximum())); }

bool InspectPage::handleKey(int key, Qt::KeyboardModifiers modifiers) {
  const bool back = key == Qt::Key_Left || key == Qt::Key_Up, across = key == Qt::Key_Left || key == Qt::Key_Right;
  const int by = back ? -1 : 1;
  switch (key) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
      if (modifiers & Qt::ControlModifier)
        moveStep(by);
      else if (modifiers & Qt::ShiftModifier)
        moveHead(across ? 0 : by, across ? by : 0);
      else
        moveQuery(by);
      return true;
    case Qt::Key_PageUp: moveHead(-1, 0); return true;
    case Qt::Key_PageDown: moveHead(1, 0); return true;
    case Qt::Key_Home: moveQuery(-(1 << 28)); return true;
    case Qt::Key_End: moveQuery(1 << 28); return true;
    case Qt::Key_Comma: what_if_->moveSource(-1); return true;
    case Qt::Key_Period: what_if_->moveSource(1); return true;
    case Qt::Key_W: tabs_->setCurrentIndex(1), what_if_->tryIt(); return true;
    case Qt::Key_Escape: dropWhatIf(); return true;
    default: return false;
  }
}

bool InspectPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == text_card_ && event->type() == QEvent::LayoutRequest)
    QMetaObject::invokeMethod(this, &InspectPage::fitText, Qt::QueuedConnection);
  if (event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (handleKey(key->key(), key->modifiers())) return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace saccade::ui
