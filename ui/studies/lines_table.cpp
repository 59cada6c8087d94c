#include "ui/studies/lines_table.h"

#include <QHeaderView>
#include <QHelpEvent>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QToolTip>
#include <algorithm>

#include "ui/roomy_cells.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

/// How far it is: a bar along the lower edge of its text.
class ShareDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const double share = index.data(LinesModel::ShareRole).toDouble();
    if (share < 0) return;
    constexpr int kBar = 3;
    const QRect whole(option.rect.left() + 8, option.rect.bottom() - kBar, option.rect.width() - 16, kBar);
    QRect done = whole;
    done.setWidth(static_cast<int>(share * whole.width()));
    const bool selected = option.state & QStyle::State_Selected;
    const QColor ground = option.palette.color(selected ? QPalette::Highlight : QPalette::Base);
    const QColor ink = option.palette.color(selected ? QPalette::HighlightedText : QPalette::Text);
    painter->fillRect(whole, blend(ground, ink, 0.2));
    painter->fillRect(done, selected ? ink : option.palette.color(QPalette::Highlight));
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    return {size.width() + 2, static_cast<int>(1.75 * option.fontMetrics.height())};
  }
};

}  // namespace

LinesTable::LinesTable(const QString& name, const QStringList& titles, const QList<int>& numbers, bool sortable, QWidget* parent)
    : QTreeView(parent), model_(new LinesModel(titles, numbers, this)), sorted_(new QSortFilterProxyModel(this)) {
  sorted_->setSourceModel(model_);
  sorted_->setSortRole(LinesModel::SortRole);
  setModel(sorted_);
  held_.assign(static_cast<size_t>(titles.size()), 0);
  setItemDelegate(new ShareDelegate(this));
  setAccessibleName(name);
  setRootIsDecorated(false);
  setUniformRowHeights(true);
  setFrameShape(QFrame::NoFrame);
  setAllColumnsShowFocus(true);
  setTextElideMode(Qt::ElideMiddle);
  make_roomy(this);
  header()->setStretchLastSection(false);
  header()->setSectionResizeMode(QHeaderView::Fixed);
  header()->setMaximumSectionSize(360);
  setSortingEnabled(sortable);
  if (sortable) sortByColumn(-1, Qt::AscendingOrder);
  connect(header(), &QHeaderView::sortIndicatorChanged, this, &LinesTable::fitColumns);
  connect(model_, &QAbstractItemModel::headerDataChanged, this, &LinesTable::fitColumns);
  connect(selectionModel(), &QItemSelectionModel::currentChanged, this, [this] {
    if (!filling_) Q_EMIT chosen();
  });
  connect(this, &QTreeView::activated, this,
          [this](const QModelIndex& index) { Q_EMIT opened(index.data(LinesModel::KeyRole).toString()); });
}

void LinesTable::setLines(std::vector<LinesModel::Line> lines) {
  const QString key = currentKey();
  filling_ = true;
  const auto changed = model_->setLines(std::move(lines));
  if (currentKey() != key) setCurrentKey(key);
  filling_ = false;
  measure(changed);
  if (currentKey() != key) Q_EMIT chosen();
}

/// Twice a second the lines of a study are told anew, of which there may be a thousand: those that say the same are not measured again.
void LinesTable::measure(const std::optional<std::vector<int>>& changed) {
  const int columns = model_->columnCount({});
  if (changed && changed->empty()) return;
  if (!changed) {
    held_.clear();
    for (int column = 0; column < columns; ++column) held_.push_back(sizeHintForColumn(column));
  } else {
    for (const int row : *changed)
      for (int column = 0; column < columns; ++column) {
        int& held = held_[static_cast<size_t>(column)];
        held = std::max(held, sizeHintForIndex(sorted_->mapFromSource(model_->index(row, column))).width());
      }
  }
  fitColumns();
}

void LinesTable::resizeEvent(QResizeEvent* event) {
  QTreeView::resizeEvent(event);
  fitColumns();
}

/// Qt keeps room for the arrow of sorting in all columns, which would take it from what they hold.
int LinesTable::titleWidth(int column) const {
  if (header()->isSortIndicatorShown() && header()->sortIndicatorSection() == column) return header()->sectionSizeHint(column);
  const QString title = model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  return header()->fontMetrics().horizontalAdvance(title) + 2 * header()->style()->pixelMetric(QStyle::PM_HeaderMargin) + 4;
}

void LinesTable::fitColumns() {
  constexpr int kLeast = 120;
  const int last = model_->columnCount({}) - 1;
  int names = 0, whole = 0, end = 0, others = 0;
  while (names < last && model_->headerData(names, Qt::Horizontal, Qt::DisplayRole).toString().isEmpty()) ++names;
  for (int column = 0; column <= last; ++column) {
    const int wanted = std::min(std::max({held_[static_cast<size_t>(column)], titleWidth(column), header()->minimumSectionSize()}),
                                header()->maximumSectionSize());
    (column == names ? whole : column == last ? end : others) += wanted;
    if (column != names && column != last) header()->resizeSection(column, wanted);
  }
  const int room = viewport()->width() - others, shown = std::min(whole, std::max(kLeast, room - end));
  header()->resizeSection(names, shown);
  header()->resizeSection(last, std::max(end, room - shown));  // Qt's own stretching leaves it 100 at least
}

QString LinesTable::currentKey() const { return currentIndex().data(LinesModel::KeyRole).toString(); }

void LinesTable::setCurrentKey(const QString& key) {
  for (int row = 0; row < sorted_->rowCount(); ++row)
    if (sorted_->index(row, 0).data(LinesModel::KeyRole).toString() == key)
      return selectionModel()->setCurrentIndex(sorted_->index(row, 0), QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

/// Whole where it is cut.
bool LinesTable::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QModelIndex at = indexAt(help->pos());
    if (at.isValid() && at.data(Qt::ToolTipRole).toString().isEmpty() && sizeHintForIndex(at).width() > visualRect(at).width()) {
      QToolTip::showText(help->globalPos(), at.data().toString(), viewport(), visualRect(at));
      return true;
    }
  }
  return QTreeView::viewportEvent(event);
}

QSize LinesTable::sizeHint() const { return {320, 140}; }

}  // namespace saccade::ui
