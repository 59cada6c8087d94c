#include "ui/runs/runs_view.h"

#include <QHeaderView>
#include <QMenu>
#include <algorithm>
#include <array>

#include "ui/roomy_cells.h"
#include "ui/runs/run_tree.h"
#include "ui/session.h"
#include "ui/swatch.h"

namespace saccade::ui {
namespace {

constexpr const char *kFolded = "runs/folded", *kUnfolded = "runs/unfolded", *kLeftOut = "runs/left_out";
/// Seen without scrolling, in this order; the others follow as they are numbered.
constexpr std::array kFirst{RunsTable::name, RunsTable::star, RunsTable::state, RunsTable::loss, RunsTable::ood, RunsTable::seed};
constexpr std::array kLast{RunsTable::tags, RunsTable::note, RunsTable::folder};
constexpr int kLeastName = 150, kMostColumn = 300, kStarColumn = 38;  // pixels
constexpr int kRowsMeasured = 100;                                    // for the widths of columns

/// Swatches of runs; groups have none.
class NameDelegate : public SwatchDelegate {
 public:
  using SwatchDelegate::SwatchDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    is_group(index) ? QStyledItemDelegate::paint(painter, option, index) : SwatchDelegate::paint(painter, option, index);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    is_group(index) ? QStyledItemDelegate::initStyleOption(option, index) : SwatchDelegate::initStyleOption(option, index);
  }

 private:
  static bool is_group(const QModelIndex& index) { return index.data(RunTree::KindRole).toInt() == static_cast<int>(RunTree::Kind::group); }
};

}  // namespace

RunsView::RunsView(Session& session, RunTree& tree, QWidget* parent) : QTreeView(parent), session_(session), tree_(tree) {
  make_roomy(this);
  setModel(&tree);
  setItemDelegateForColumn(RunsTable::name, new NameDelegate(this));
  setItemDelegateForColumn(RunsTable::architecture, new TitleDelegate(this));
  setUniformRowHeights(true);
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(tr("All runs"));
  setAllColumnsShowFocus(true);
  setTextElideMode(Qt::ElideMiddle);
  setIndentation(16);
  setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed);
  setExpandsOnDoubleClick(true);
  makeHeader();
  followFolds();
  fit_.start();
}

void RunsView::makeHeader() {
  QHeaderView* head = header();
  head->setStretchLastSection(false);
  head->setSectionResizeMode(QHeaderView::Fixed);
  head->resizeSection(RunsTable::star, kStarColumn);  // its head would keep room for the mark of sorting
  head->setResizeContentsPrecision(kRowsMeasured);
  head->setMaximumSectionSize(kMostColumn);
  for (size_t i = 0; i < kFirst.size(); ++i) head->moveSection(head->visualIndex(kFirst[i]), static_cast<int>(i));
  for (const auto column : kLast) head->moveSection(head->visualIndex(column), RunsTable::column_count - 1);
  const QStringList left_out = session_.place().value(kLeftOut).toStringList();
  for (int column = 1; column < RunsTable::column_count; ++column) setColumnHidden(column, left_out.contains(QString::number(column)));
  setSortingEnabled(true);
  const QVariant by = session_.place().value("runs/sorted_by");
  sortByColumn(by.isValid() ? by.toInt() : -1,
               session_.place().value("runs/descending").toBool() ? Qt::DescendingOrder : Qt::AscendingOrder);
  connect(head, &QHeaderView::sortIndicatorChanged, this, [this](int column, Qt::SortOrder order) {
    session_.place().set("runs/sorted_by", column);
    session_.place().set("runs/descending", order == Qt::DescendingOrder);
  });
  fit_.setSingleShot(true);
  fit_.setInterval(0);
  connect(&fit_, &QTimer::timeout, this, &RunsView::fitColumns);
  const auto start = qOverload<>(&QTimer::start);
  for (const auto changed : {&QAbstractItemModel::rowsInserted, &QAbstractItemModel::rowsRemoved}) connect(&tree_, changed, &fit_, start);
  for (const auto folded : {&QTreeView::expanded, &QTreeView::collapsed}) connect(this, folded, &fit_, start);
  connect(&tree_, &QAbstractItemModel::dataChanged, &fit_, start);
  connect(&tree_, &QAbstractItemModel::layoutChanged, &fit_, start);
  connect(&tree_, &QAbstractItemModel::modelReset, &fit_, start);
  head->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(head, &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    addColumns(*menu);
    menu->popup(header()->viewport()->mapToGlobal(at));
  });
}

void RunsView::addColumns(QMenu& menu) {
  for (int place = 1; place < RunsTable::column_count; ++place) {
    const int column = header()->logicalIndex(place);
    QAction* action = menu.addAction(column == RunsTable::star ? tr("Star") : model()->headerData(column, Qt::Horizontal).toString());
    action->setCheckable(true);
    action->setChecked(!isColumnHidden(column));
    connect(action, &QAction::toggled, this, [this, column](bool shown) {
      setColumnHidden(column, !shown);
      QStringList left_out;
      for (int each = 1; each < RunsTable::column_count; ++each)
        if (isColumnHidden(each)) left_out << QString::number(each);
      session_.place().set(kLeftOut, left_out);
      fitColumns();
    });
  }
}

/// As wide as their words, once for all that has changed since: Qt's own way measures every column again for every change that it is told
/// of, which with runs that have branches are as many as these.
void RunsView::fitColumns() {
  for (int column = 0; column < RunsTable::column_count; ++column) {
    if (isColumnHidden(column) || column == RunsTable::star) continue;
    const int words = sizeHintForColumn(column);
    if (column == RunsTable::name)
      name_wanted_ = words;
    else
      header()->resizeSection(column, std::min(std::max(words, header()->sectionSizeHint(column)), kMostColumn));
  }
  fitName();
}

/// The name has what the columns that must be seen leave.
void RunsView::fitName() {
  int room = viewport()->width();
  for (const auto column : kFirst)
    if (column != RunsTable::name && !isColumnHidden(column)) room -= header()->sectionSize(column);
  const int wanted = std::clamp(name_wanted_, kLeastName, kMostColumn);
  const int width = std::clamp(room, kLeastName, wanted);
  if (header()->sectionSize(RunsTable::name) != width) header()->resizeSection(RunsTable::name, width);
}

void RunsView::resizeEvent(QResizeEvent* event) {
  QTreeView::resizeEvent(event);
  fitName();
}

void RunsView::followFolds() {
  connect(&tree_, &QAbstractItemModel::rowsInserted, this, &RunsView::unfold);
  connect(&tree_, &RunTree::arranged, this, [this] {
    if (const bool deep = tree_.deep(); deep != rootIsDecorated()) setRootIsDecorated(deep);
  });
  connect(this, &QTreeView::expanded, this, [this](const QModelIndex& index) { keepFold(index, true); });
  connect(this, &QTreeView::collapsed, this, [this](const QModelIndex& index) { keepFold(index, false); });
  setRootIsDecorated(tree_.deep());
  unfold({}, 0, tree_.rowCount() - 1);
}

/// Groups are unfolded and runs with branches are folded, unless it was changed.
bool RunsView::isUnfolded(const QModelIndex& index) const {
  const bool group = index.data(RunTree::KindRole).toInt() == static_cast<int>(RunTree::Kind::group);
  const bool changed = session_.place().value(group ? kFolded : kUnfolded).toStringList().contains(index.data(RunTree::KeyRole).toString());
  return group != changed;
}

void RunsView::unfold(const QModelIndex& parent, int first, int last) {
  const auto one = [this](const QModelIndex& index) {
    if (tree_.hasChildren(index) && isUnfolded(index)) setExpanded(index, true);
  };
  if (parent.isValid()) one(parent);
  for (int row = first; row <= last; ++row) {
    const QModelIndex index = tree_.index(row, 0, parent);
    if (!tree_.hasChildren(index)) continue;
    one(index);
    unfold(index, 0, tree_.rowCount(index) - 1);
  }
}

void RunsView::keepFold(const QModelIndex& index, bool unfolded) {
  const bool group = index.data(RunTree::KindRole).toInt() == static_cast<int>(RunTree::Kind::group);
  const char* place = group ? kFolded : kUnfolded;
  const QString key = index.data(RunTree::KeyRole).toString();
  QStringList keys = session_.place().value(place).toStringList();
  const bool wanted = group != unfolded;
  if (keys.contains(key) == wanted) return;
  wanted ? static_cast<void>(keys << key) : static_cast<void>(keys.removeAll(key));
  session_.place().set(place, keys);
}

void RunsView::foldAll(bool folded) {
  for (int row = 0; row < tree_.rowCount(); ++row) {
    const QModelIndex index = tree_.index(row, 0);
    if (index.data(RunTree::KindRole).toInt() == static_cast<int>(RunTree::Kind::group)) setExpanded(index, !folded);
  }
}

bool RunsView::isInFolded(const QModelIndex& index) const {
  for (QModelIndex above = index.parent(); above.isValid(); above = above.parent())
    if (!isExpanded(above)) return true;
  return false;
}

}  // namespace saccade::ui
