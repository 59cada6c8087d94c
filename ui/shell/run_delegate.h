#pragma once
#include <QStyledItemDelegate>

namespace saccade::ui {

/// Draws the rows of GroupedRuns: visibility, swatch, title and seed, progress, and a line of numbers.
class RunDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  bool editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option, const QModelIndex& index) override;
};

}  // namespace saccade::ui
