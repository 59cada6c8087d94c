#pragma once
#include <QFont>
#include <QFontMetrics>
#include <QStyledItemDelegate>

namespace saccade::ui {

/// Of parts between dots as many as there is room for, from the first on: half a number would be another one.
QString fittingParts(const QString& parts, const QFontMetrics& metrics, int room);

/// Draws the rows of GroupedRuns: visibility, swatch, title and seed, progress, and a line of numbers.
class RunDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  bool editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option, const QModelIndex& index) override;

 private:
  /// Of lines: all rows of a long list are asked for their height.
  struct Heights {
    QFont font;
    int line = 0, small = 0;
  };
  mutable Heights heights_;
};

}  // namespace saccade::ui
