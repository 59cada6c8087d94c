#pragma once
#include <QStyledItemDelegate>

namespace saccade::ui {

/// Pixels of a swatch, and of the ground around it.
inline constexpr int kSwatchWidth = 20, kSwatchMargin = 6;

/// Paints a run's line as charts do: the architecture's colour and marker, the seed's dash. `run`: an index with RunList's roles.
void paintSwatch(QPainter* painter, const QRect& rect, const QModelIndex& run, const QPalette& palette);

/// A title, shortened as titles are (fittingTitle()) where the cell is too narrow.
class TitleDelegate : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// A title with the run's swatch before it, for a cell of a table whose model has RunList's roles.
class SwatchDelegate : public TitleDelegate {
  Q_OBJECT
 public:
  using TitleDelegate::TitleDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override;
};

}  // namespace saccade::ui
