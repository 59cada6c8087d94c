#include "ui/runs/differences_view.h"

#include <QHeaderView>

namespace saccade::ui {

DifferencesView::DifferencesView(QWidget* parent) : QTableWidget(parent) {
  setAccessibleName(tr("What differs between the selected runs"));
  setEditTriggers(QAbstractItemView::NoEditTriggers);
  setSelectionMode(QAbstractItemView::NoSelection);
  setFrameShape(QFrame::NoFrame);
  setShowGrid(false);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  horizontalHeader()->setHighlightSections(false);
}

void DifferencesView::setDifferences(const std::vector<Difference>& differences, const QStringList& heads, bool against_first) {
  if (differences == shown_ && heads == heads_ && against_first == against_first_) return;
  shown_ = differences, heads_ = heads, against_first_ = against_first;
  QFont bold = font();
  bold.setBold(true);
  clear();
  const int runs = differences.empty() ? 0 : static_cast<int>(differences.front().values.size());
  setColumnCount(runs + 1);
  setRowCount(static_cast<int>(differences.size()));
  horizontalHeader()->setStretchLastSection(runs == 1);  // one long value makes no room to scroll through
  horizontalHeader()->setVisible(!heads.isEmpty());
  setHorizontalHeaderLabels(QStringList{tr("Setting")} + heads);
  for (int row = 0; row < rowCount(); ++row) {
    const Difference& difference = differences[static_cast<size_t>(row)];
    for (int column = 0; column <= runs; ++column) {
      const QString text = column == 0 ? difference.setting : difference.values[column - 1];
      auto* item = new QTableWidgetItem(text);
      item->setToolTip(column == 0 ? difference.pointer : text);
      item->setTextAlignment((column == 0 || runs == 1 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
      if (against_first && column > 1 && difference.values[column - 1] != difference.values.first()) item->setFont(bold);
      setItem(row, column, item);
    }
  }
}

}  // namespace saccade::ui
