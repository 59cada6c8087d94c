#pragma once
#include <QHeaderView>
#include <QProxyStyle>
#include <QTreeView>

namespace saccade::ui {

/// Keeps numbers at the right of their column apart from words at the left of the next.
class RoomyCells : public QProxyStyle {
 public:
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override {
    if (metric == PM_FocusFrameHMargin || metric == PM_HeaderMargin) return 7;
    return QProxyStyle::pixelMetric(metric, option, widget);
  }
};

/// The table's own from now on, and its header's.
inline void make_roomy(QTreeView* table) {
  auto* style = new RoomyCells;
  style->setParent(table);
  table->setStyle(style);
  table->header()->setStyle(style);
}

}  // namespace saccade::ui
