#include "ui/studies/lines_model.h"

#include <QApplication>
#include <QFont>
#include <QPalette>
#include <algorithm>

#include "ui/theme.h"

namespace saccade::ui {
namespace {

QFont bold() {
  QFont font = QApplication::font();
  font.setBold(true);
  return font;
}

}  // namespace

LinesModel::LinesModel(QStringList titles, QList<int> numbers, QObject* parent)
    : QAbstractTableModel(parent), titles_(std::move(titles)), numbers_(std::move(numbers)) {}

std::optional<std::vector<int>> LinesModel::setLines(std::vector<Line> lines) {
  const bool same =
      std::equal(lines.begin(), lines.end(), lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.key == b.key; });
  if (!same) {
    beginResetModel();
    lines_ = std::move(lines);
    endResetModel();
    return {};
  }
  std::vector<int> changed;
  for (size_t row = 0; row < lines.size(); ++row)
    if (lines[row] != lines_[row]) changed.push_back(static_cast<int>(row));
  lines_ = std::move(lines);
  if (!changed.empty()) Q_EMIT dataChanged(index(changed.front(), 0), index(changed.back(), columnCount() - 1));
  return changed;
}

void LinesModel::setTitle(int column, const QString& title) {
  if (titles_.at(column) == title) return;
  titles_[column] = title;
  Q_EMIT headerDataChanged(Qt::Horizontal, column, column);
}

int LinesModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(lines_.size()); }
int LinesModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(titles_.size()); }

QVariant LinesModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Line& line = lines_[static_cast<size_t>(index.row())];
  const Cell& cell = line.cells[static_cast<size_t>(index.column())];
  switch (role) {
    case Qt::DisplayRole: return cell.text;
    case Qt::ToolTipRole: return cell.tip.isEmpty() ? QVariant() : cell.tip;
    case Qt::FontRole: return cell.strong ? QVariant(bold()) : QVariant();
    case Qt::ForegroundRole: return cell.alarm ? QVariant(errorColour(QApplication::palette())) : QVariant();
    case Qt::TextAlignmentRole: return QVariant(Qt::AlignVCenter | (numbers_.contains(index.column()) ? Qt::AlignRight : Qt::AlignLeft));
    case KeyRole: return line.key;
    case SortRole: return cell.sort.isValid() ? cell.sort : QVariant(cell.text);
    case ShareRole: return cell.share;
    default: return {};
  }
}

QVariant LinesModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::DisplayRole) return titles_.value(section);
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (numbers_.contains(section) ? Qt::AlignRight : Qt::AlignLeft));
  return {};
}

}  // namespace saccade::ui
