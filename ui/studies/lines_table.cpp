#include "ui/studies/lines_table.h"

#include <QHeaderView>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <algorithm>

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
    const QRect whole(option.rect.left() + 4, option.rect.bottom() - kBar, option.rect.width() - 8, kBar);
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
    return {size.width() + 8, static_cast<int>(1.75 * option.fontMetrics.height())};
  }
};

}  // namespace

LinesTable::LinesTable(const QString& name, const QStringList& titles, const QList<int>& numbers, bool sortable, QWidget* parent)
    : QTreeView(parent), model_(new LinesModel(titles, numbers, this)), sorted_(new QSortFilterProxyModel(this)) {
  sorted_->setSourceModel(model_);
  sorted_->setSortRole(LinesModel::SortRole);
  setModel(sorted_);
  setItemDelegate(new ShareDelegate(this));
  setAccessibleName(name);
  setRootIsDecorated(false);
  setUniformRowHeights(true);
  setFrameShape(QFrame::NoFrame);
  setAllColumnsShowFocus(true);
  setTextElideMode(Qt::ElideMiddle);
  header()->setStretchLastSection(false);
  header()->setSectionResizeMode(QHeaderView::Fixed);
  header()->setMaximumSectionSize(360);
  setSortingEnabled(sortable);
  if (sortable) sortByColumn(-1, Qt::AscendingOrder);
  connect(selectionModel(), &QItemSelectionModel::currentChanged, this, [this] {
    if (!filling_) Q_EMIT chosen();
  });
  connect(this, &QTreeView::activated, this,
          [this](const QModelIndex& index) { Q_EMIT opened(index.data(LinesModel::KeyRole).toString()); });
}

void LinesTable::setLines(std::vector<LinesModel::Line> lines) {
  const QString key = currentKey();
  filling_ = true;
  model_->setLines(std::move(lines));
  if (currentKey() != key) setCurrentKey(key);
  filling_ = false;
  fitColumns();
  if (currentKey() != key) Q_EMIT chosen();
}

void LinesTable::resizeEvent(QResizeEvent* event) {
  QTreeView::resizeEvent(event);
  fitColumns();
}

void LinesTable::fitColumns() {
  constexpr int kLeast = 120;
  const int last = model_->columnCount({}) - 1;
  int names = 0, whole = 0, end = 0, others = 0;
  while (names < last && model_->headerData(names, Qt::Horizontal, Qt::DisplayRole).toString().isEmpty()) ++names;
  for (int column = 0; column <= last; ++column) {
    const int wanted = std::min(std::max(sizeHintForColumn(column), header()->sectionSizeHint(column)), header()->maximumSectionSize());
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

QSize LinesTable::sizeHint() const { return {320, 140}; }

}  // namespace saccade::ui
