#include "ui/compare/fitted_table.h"

#include <QHeaderView>
#include <QScrollBar>
#include <algorithm>

#include "ui/swatch.h"

namespace saccade::ui {

FittedTable::FittedTable(QWidget* parent) : QTableView(parent) {
  setFrameShape(QFrame::NoFrame);
  setShowGrid(false);
  setItemDelegateForColumn(0, new SwatchDelegate(this));
  horizontalHeader()->setMaximumSectionSize(320);
  horizontalHeader()->setMinimumSectionSize(3 * fontMetrics().height());
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setTabKeyNavigation(false);
  setWordWrap(false);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(static_cast<int>(1.7 * fontMetrics().height()));
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setSortIndicatorClearable(true);
  horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  setSortingEnabled(true);
}

void FittedTable::fit(int widest, const std::vector<int>& optional) {
  for (const Column& column : all_) setColumnHidden(column.index, false);
  resizeColumnsToContents();
  all_.clear();
  const auto add = [&](bool wanted) {
    for (int i = 1; i < model()->columnCount(); ++i)
      if ((std::find(optional.begin(), optional.end(), i) == optional.end()) == wanted) all_.push_back({i, columnWidth(i)});
  };
  add(true);
  needed_ = all_.size();
  add(false);
  name_ = columnWidth(0);
  limit(widest);
}

void FittedTable::limit(int widest) {
  int room = name_ + verticalScrollBar()->sizeHint().width() + 2 * frameWidth() + 2;
  for (size_t i = 0; i < needed_; ++i) room += all_[i].width;
  setMinimumWidth(std::min(room, widest));
  share();
}

int FittedTable::wholeHeight() const {
  const int rows = model()->rowCount() * verticalHeader()->defaultSectionSize();
  const int bar = horizontalScrollBar()->maximum() > 0 ? horizontalScrollBar()->sizeHint().height() : 0;
  return horizontalHeader()->sizeHint().height() + rows + bar + 2 * frameWidth() + 2;
}

/// What the longest name keeps beside numbers: enough to tell it from others.
int FittedTable::leastName() const { return std::min(name_, std::max(130, 2 * viewport()->width() / 5)); }

void FittedTable::share() {
  if (name_ == 0) return;
  std::vector<std::vector<int>> columns{{}};
  int room = viewport()->width() - leastName();
  for (const Column& column : all_) {
    if (column.width > room && !columns.back().empty()) columns.emplace_back(), room = viewport()->width() - leastName();
    columns.back().push_back(column.index);
    room -= column.width;
  }
  const bool other = columns != columns_;
  columns_ = std::move(columns);
  page_ = std::min(page_, pages() - 1);
  int numbers = 0;
  const std::vector<int>& shown = columns_[static_cast<size_t>(page_)];
  for (const Column& column : all_) {
    const bool seen = std::find(shown.begin(), shown.end(), column.index) != shown.end();
    setColumnHidden(column.index, !seen);
    if (seen) numbers += column.width;
  }
  setColumnWidth(0, std::clamp(viewport()->width() - numbers, leastName(), std::max(name_, leastName())));
  if (other) Q_EMIT pagesChanged();
}

void FittedTable::showPage(int page) {
  page_ = std::clamp(page, 0, pages() - 1);
  share();
  Q_EMIT pagesChanged();
}

void FittedTable::resizeEvent(QResizeEvent* event) {
  QTableView::resizeEvent(event);
  share();
}

}  // namespace saccade::ui
