#include "ui/runs/run_tree.h"

#include <QApplication>
#include <QFont>
#include <QPalette>
#include <QSet>
#include <QTimer>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/run_filter.h"
#include "analysis/comparison/run_totals.h"
#include "ui/run_summary.h"
#include "ui/runs/queued_runs.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

bool is_number(const QVariant& value) { return value.canConvert<double>() && value.typeId() != QMetaType::QString; }

/// Negative: a first.
int compare(const QVariant& a, const QVariant& b) {
  const bool numbers = is_number(a) && is_number(b);
  if (!numbers && is_number(a) != is_number(b)) return is_number(a) ? -1 : 1;
  if (!numbers) return QString::compare(a.toString(), b.toString(), Qt::CaseInsensitive);
  const double x = a.toDouble(), y = b.toDouble();
  return x < y ? -1 : x > y ? 1 : 0;
}

QString place_text(const QueuedRun& run) {
  const QString text = RunTree::tr("%1 of %2").arg(run.place).arg(run.count);
  return run.paused ? RunTree::tr("%1, paused").arg(text) : text;
}

}  // namespace

/// What the tree is to have.
struct RunTree::Wanted {
  Kind kind = Kind::run;
  QString key, directory;
  SettingValue value = {};  ///< of a group
  int queued = -1;          ///< index of QueuedRuns
  int steps = 0;            ///< of a branch
  std::vector<Wanted> below = {};
};

/// What a group's row says of the runs below it.
struct RunTree::Told {
  RunTotals totals;
  int runs = 0, queued = 0, active = 0, done = 0;
  double progress = 0;  ///< mean, 0 … 1
};

struct TreeRow {
  RunTree::Kind kind = RunTree::Kind::group;
  QString key, directory;
  SettingValue value;
  int queued = -1;
  TreeRow* parent = nullptr;
  int row = 0, rank = 0;  ///< where it stands; where it would stand unsorted
  QVariant sort_key;
  std::vector<std::unique_ptr<TreeRow>> below;
  mutable std::shared_ptr<const void> told;  ///< RunTree::Told; null: to be worked out
};

RunTree::RunTree(RunList* runs, QueuedRuns* queued, QObject* parent)
    : QAbstractItemModel(parent), runs_(runs), queued_(queued), table_(new RunsTable(runs, this)), root_(std::make_unique<TreeRow>()) {
  connect(table_, &RunsTable::failed, this, &RunTree::failed);
  connect(runs, &RunList::changed, this, &RunTree::schedule);
  connect(runs, &RunList::selectionChanged, this, &RunTree::schedule);
  connect(runs, &QAbstractItemModel::rowsInserted, this, &RunTree::schedule);
  connect(runs, &QAbstractItemModel::rowsRemoved, this, &RunTree::schedule);
  connect(runs, &QAbstractItemModel::layoutChanged, this, &RunTree::schedule);
  connect(runs, &QAbstractItemModel::modelReset, this, &RunTree::schedule);
  connect(queued, &QueuedRuns::changed, this, &RunTree::schedule);
  connect(runs, &QAbstractItemModel::dataChanged, this,
          [this](const QModelIndex& first, const QModelIndex& last) { changed(first.row(), last.row()); });
  rebuild();
}

RunTree::~RunTree() = default;

void RunTree::setGrouping(const QString& key) {
  if (key == grouping_) return;
  beginResetModel();
  grouping_ = key;
  of_run_.clear();
  root_ = std::make_unique<TreeRow>();
  endResetModel();
  rebuild();
}

void RunTree::schedule() {
  if (std::exchange(scheduled_, true)) return;
  QTimer::singleShot(0, this, [this] {
    scheduled_ = false;
    rebuild();
  });
}

/// Directories of the runs that the filter lets through.
QSet<QString> RunTree::passing() const {
  QSet<QString> found;
  if (runs_->loading()) {  // they come one by one
    for (const Run* run : runs_->runs())
      if (runs_->selection().filter().isEmpty() || runs_->selection().passes(*run)) found.insert(directory_of(*run));
    return found;
  }
  for (const ShownGroup& group : runs_->selection().groups())
    for (const SharedRun& run : group.seeds) found.insert(directory_of(*run));
  return found;
}

RunFacts RunTree::factsOf(const Run& run, const QString& directory) const {
  const QString folder = directory.left(directory.lastIndexOf(QLatin1Char('/')));
  return {run.info(), &run.notes(), stateText(run.info().state).toStdString(), queued_->now().studies.value(folder).toStdString()};
}

/// Runs in list order, branches below theirs.
std::vector<RunTree::Wanted> RunTree::listedRuns() const {
  const QSet<QString> passing = this->passing();
  const bool all = runs_->selection().filter().isEmpty();
  std::vector<Wanted> rows;
  std::vector<std::pair<QString, Wanted>> branches;
  QHash<QString, size_t> place;
  for (int row = 0; row < runs_->rowCount(); ++row) {
    const QString directory = runs_->index(row).data(RunList::DirectoryRole).toString();
    const Run* run = runs_->run(directory);
    if (run ? !passing.contains(directory) : !all) continue;
    Wanted wanted{Kind::run, directory, directory};
    const QString trunk = trunk_in(directory);
    if (trunk.isEmpty()) {
      place.insert(directory, rows.size());
      rows.push_back(std::move(wanted));
    } else {
      wanted.steps = run ? static_cast<int>(run->info().steps) : 0;
      branches.emplace_back(trunk, std::move(wanted));
    }
  }
  for (auto& [trunk, branch] : branches) {
    const auto found = place.constFind(trunk);
    if (found == place.constEnd()) {  // its run is not among them
      rows.push_back(std::move(branch));
      continue;
    }
    branch.kind = Kind::branch;
    rows[*found].below.push_back(std::move(branch));
  }
  for (Wanted& row : rows)
    std::stable_sort(row.below.begin(), row.below.end(), [](const Wanted& a, const Wanted& b) { return a.steps < b.steps; });
  return rows;
}

std::vector<RunTree::Wanted> RunTree::wantedRows() const {
  std::vector<Wanted> rows;
  const RunFilter filter(runs_->selection().filter().toStdString());
  const std::vector<QueuedRun>& queued = queued_->now().runs;
  for (size_t i = 0; i < queued.size(); ++i)
    if (runs_->row(queued[i].directory) < 0 && filter.passes_queued(queued[i].info))
      rows.push_back({Kind::queued, QStringLiteral("queue ") + queued[i].directory, {}, {}, static_cast<int>(i)});
  std::vector<Wanted> runs = listedRuns();
  std::move(runs.begin(), runs.end(), std::back_inserter(rows));
  return grouping_.isEmpty() ? rows : gathered(std::move(rows));
}

std::vector<RunTree::Wanted> RunTree::gathered(std::vector<Wanted> rows) const {
  const std::string key = grouping_.toStdString();
  std::map<SettingValue, std::vector<Wanted>> groups;
  for (Wanted& row : rows) {
    std::vector<SettingValue> values{{tr("cannot be read").toStdString(), {}, false}};
    if (const Run* run = runs_->run(row.directory)) values = values_of(factsOf(*run, row.directory), key);
    if (row.queued >= 0) {
      const QueuedRun& queued = queued_->now().runs[static_cast<size_t>(row.queued)];
      values = values_of({queued.info, nullptr, tr("Queued").toStdString(), queued.study.toStdString()}, key);
    }
    for (const SettingValue& value : values) groups[value].push_back(row);
  }
  std::vector<Wanted> heads;
  for (auto& [value, members] : groups) {
    Wanted head{Kind::group, QStringLiteral("%1=%2").arg(grouping_, QString::fromStdString(value.text)), {}, value};
    for (Wanted& member : members) member.key = head.key + QLatin1Char('\n') + member.key;
    head.below = std::move(members);
    heads.push_back(std::move(head));
  }
  return heads;
}

void RunTree::rebuild() {
  waits_.clear();
  for (size_t i = 0; i < queued_->now().runs.size(); ++i) waits_.insert(queued_->now().runs[i].directory, static_cast<int>(i));
  const std::vector<Wanted> wanted = wantedRows();
  keepOnly(*root_, wanted);
  add(*root_, wanted);
  reorder();
  Q_EMIT arranged();
}

void RunTree::forget(const TreeRow& row) {
  for (auto found = of_run_.find(row.directory); found != of_run_.end() && found.key() == row.directory;)
    found = *found == &row ? of_run_.erase(found) : std::next(found);
  for (const auto& each : row.below) forget(*each);
}

/// Rows that are to go go, from the last to the first.
void RunTree::keepOnly(TreeRow& parent, const std::vector<Wanted>& wanted) {
  QHash<QString, const Wanted*> by_key;
  for (const Wanted& each : wanted) by_key.insert(each.key, &each);
  const auto goes = [&](size_t i) { return !by_key.contains(parent.below[i]->key); };
  for (size_t end = parent.below.size(); end > 0;) {
    if (!goes(end - 1)) {
      --end;
      continue;
    }
    size_t first = end - 1;
    while (first > 0 && goes(first - 1)) --first;
    beginRemoveRows(indexAt(&parent), static_cast<int>(first), static_cast<int>(end) - 1);
    for (size_t i = first; i < end; ++i) forget(*parent.below[i]);
    parent.below.erase(parent.below.begin() + static_cast<std::ptrdiff_t>(first), parent.below.begin() + static_cast<std::ptrdiff_t>(end));
    for (size_t i = first; i < parent.below.size(); ++i) parent.below[i]->row = static_cast<int>(i);
    endRemoveRows();
    end = first;
  }
  parent.told.reset();
  for (const auto& row : parent.below) keepOnly(*row, by_key.value(row->key)->below);
}

std::unique_ptr<TreeRow> RunTree::made(Wanted wanted, TreeRow* parent) {
  auto row = std::make_unique<TreeRow>();
  row->kind = wanted.kind, row->key = wanted.key, row->directory = wanted.directory, row->value = wanted.value;
  row->queued = wanted.queued, row->parent = parent;
  if (!row->directory.isEmpty()) of_run_.insert(row->directory, row.get());
  for (size_t i = 0; i < wanted.below.size(); ++i) {
    row->below.push_back(made(wanted.below[i], row.get()));
    row->below.back()->row = row->below.back()->rank = static_cast<int>(i);
  }
  return row;
}

/// New rows come behind those that there are; reorder() puts them where they belong.
void RunTree::add(TreeRow& parent, std::vector<Wanted> wanted) {
  QHash<QString, TreeRow*> there;
  for (const auto& row : parent.below) there.insert(row->key, row.get());
  std::vector<std::pair<int, Wanted>> fresh;
  for (size_t i = 0; i < wanted.size(); ++i) {
    TreeRow* row = there.value(wanted[i].key);
    if (!row) {
      fresh.emplace_back(static_cast<int>(i), std::move(wanted[i]));
      continue;
    }
    row->rank = static_cast<int>(i), row->kind = wanted[i].kind;
    const bool moved_on = row->kind == Kind::queued;  // places and numbers of what waits
    row->queued = wanted[i].queued;
    if (moved_on) Q_EMIT dataChanged(indexAt(row), indexAt(row, columnCount() - 1));
    add(*row, std::move(wanted[i].below));
  }
  if (fresh.empty()) return;
  const int first = static_cast<int>(parent.below.size());
  beginInsertRows(indexAt(&parent), first, first + static_cast<int>(fresh.size()) - 1);
  for (auto& [rank, each] : fresh) {
    auto row = made(std::move(each), &parent);
    row->rank = rank, row->row = static_cast<int>(parent.below.size());
    parent.below.push_back(std::move(row));
    takeSortKeys(*parent.below.back());
  }
  endInsertRows();
}

void RunTree::takeSortKeys(TreeRow& row) {
  row.sort_key = sorted_by_ < 0 || row.kind == Kind::group ? QVariant() : data(indexAt(&row, sorted_by_), RunsTable::SortRole);
  for (const auto& each : row.below) takeSortKeys(*each);
}

bool RunTree::before(const TreeRow& a, const TreeRow& b) const {
  if (sorted_by_ >= 0 && a.kind != Kind::group)
    if (const int order = compare(a.sort_key, b.sort_key); order != 0) return order_ == Qt::AscendingOrder ? order < 0 : order > 0;
  return a.rank < b.rank;
}

bool RunTree::inOrder(const TreeRow& row) const {
  for (size_t i = 1; i < row.below.size(); ++i)
    if (before(*row.below[i], *row.below[i - 1])) return false;
  return std::all_of(row.below.begin(), row.below.end(), [&](const auto& each) { return inOrder(*each); });
}

void RunTree::putInOrder(TreeRow& row) {
  std::stable_sort(row.below.begin(), row.below.end(), [&](const auto& a, const auto& b) { return before(*a, *b); });
  for (size_t i = 0; i < row.below.size(); ++i) {
    row.below[i]->row = static_cast<int>(i);
    putInOrder(*row.below[i]);
  }
}

void RunTree::reorder() {
  if (inOrder(*root_)) return;
  Q_EMIT layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
  const QModelIndexList old = persistentIndexList();
  putInOrder(*root_);
  QModelIndexList now;
  for (const QModelIndex& index : old) now << indexAt(at(index), index.column());
  changePersistentIndexList(old, now);
  Q_EMIT layoutChanged({}, QAbstractItemModel::VerticalSortHint);
}

void RunTree::sort(int column, Qt::SortOrder order) {
  sorted_by_ = column, order_ = order;
  for (const auto& row : root_->below) takeSortKeys(*row);
  reorder();
}

/// Rows of the list show something else.
void RunTree::changed(int first, int last) {
  bool moved = false;
  for (int i = first; i <= last; ++i) {
    const QString directory = runs_->index(i).data(RunList::DirectoryRole).toString();
    for (auto found = of_run_.constFind(directory); found != of_run_.constEnd() && found.key() == directory; ++found) {
      TreeRow& row = **found;
      const QVariant before = row.sort_key;
      row.sort_key = sorted_by_ < 0 ? QVariant() : data(indexAt(&row, sorted_by_), RunsTable::SortRole);
      moved = moved || before != row.sort_key;
      for (TreeRow* head = row.parent; head && head != root_.get(); head = head->parent)
        if (std::exchange(head->told, nullptr)) Q_EMIT dataChanged(indexAt(head), indexAt(head, columnCount() - 1));
      if (last - first < 8) Q_EMIT dataChanged(indexAt(&row), indexAt(&row, columnCount() - 1));
    }
  }
  if (last - first >= 8) {  // of many rows a view need not be told one by one
    const auto tell = [this](const TreeRow& parent, const auto& inner) -> void {
      if (parent.below.empty()) return;
      Q_EMIT dataChanged(indexAt(parent.below.front().get()), indexAt(parent.below.back().get(), columnCount() - 1));
      for (const auto& each : parent.below) inner(*each, inner);
    };
    tell(*root_, tell);
  }
  if (moved) reorder();
}

const TreeRow* RunTree::at(const QModelIndex& index) const {
  return index.isValid() ? static_cast<const TreeRow*>(index.constInternalPointer()) : root_.get();
}

QModelIndex RunTree::indexAt(const TreeRow* row, int column) const {
  return row == root_.get() || !row ? QModelIndex() : createIndex(row->row, column, row);
}

QModelIndex RunTree::indexOf(const QString& directory) const {
  const TreeRow* first = nullptr;
  for (auto found = of_run_.constFind(directory); found != of_run_.constEnd() && found.key() == directory; ++found)
    if (!first || (*found)->parent->row < first->parent->row) first = *found;
  return indexAt(first);
}

const QueuedRun* RunTree::queued(const QModelIndex& index) const {
  const TreeRow* row = at(index);
  const auto& runs = queued_->now().runs;
  return row->kind == Kind::queued && static_cast<size_t>(row->queued) < runs.size() ? &runs[static_cast<size_t>(row->queued)] : nullptr;
}

bool RunTree::deep() const {
  return std::any_of(root_->below.begin(), root_->below.end(), [](const auto& row) { return !row->below.empty(); });
}

std::vector<RunFacts> RunTree::facts(std::vector<SharedRun>& kept) const {
  std::vector<RunFacts> all;
  for (int row = 0; row < runs_->rowCount(); ++row) {
    const QString directory = runs_->index(row).data(RunList::DirectoryRole).toString();
    const SharedRun run = runs_->shared(directory);
    if (!run || !trunk_in(directory).isEmpty()) continue;
    kept.push_back(run);
    all.push_back(factsOf(*run, directory));
  }
  return all;
}

QModelIndex RunTree::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  return createIndex(row, column, at(parent)->below[static_cast<size_t>(row)].get());
}

QModelIndex RunTree::parent(const QModelIndex& index) const { return index.isValid() ? indexAt(at(index)->parent) : QModelIndex(); }

int RunTree::rowCount(const QModelIndex& parent) const { return parent.column() > 0 ? 0 : static_cast<int>(at(parent)->below.size()); }

int RunTree::columnCount(const QModelIndex&) const { return RunsTable::column_count; }

QVariant RunTree::headerData(int section, Qt::Orientation orientation, int role) const {
  return table_->headerData(section, orientation, role);
}

Qt::ItemFlags RunTree::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  const TreeRow* row = at(index);
  const bool run = row->kind == Kind::run || row->kind == Kind::branch;
  const QModelIndex source = run ? table_->index(runs_->row(row->directory), index.column()) : QModelIndex();
  return source.isValid() ? table_->flags(source) & ~Qt::ItemNeverHasChildren : Qt::ItemIsEnabled | Qt::ItemIsSelectable;
}

bool RunTree::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return false;
  const QModelIndex source = table_->index(runs_->row(at(index)->directory), index.column());
  return source.isValid() && table_->setData(source, value, role);
}

QVariant RunTree::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const TreeRow& row = *at(index);
  if (role == KindRole) return static_cast<int>(row.kind);
  if (role == KeyRole) return row.key;
  if (role == Qt::TextAlignmentRole) return table_->headerData(index.column(), Qt::Horizontal, role);
  switch (row.kind) {
    case Kind::group: return groupData(row, index.column(), role);
    case Kind::queued: return queuedData(row, index.column(), role);
    default: return runData(row, index.column(), role);
  }
}

QVariant RunTree::runData(const TreeRow& row, int column, int role) const {
  if (role == MembersRole) return QStringList(row.directory);
  const QVariant known = table_->index(runs_->row(row.directory), column).data(role);
  if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole) return known;
  if (column == RunsTable::name && row.kind == Kind::branch) return QString::fromStdString(branch_words(row.directory.toStdString()));
  if (column == RunsTable::state)
    if (const auto found = waits_.constFind(row.directory);
        found != waits_.constEnd() && runs_->run(row.directory) && !isActive(runs_->run(row.directory)->info().state))
      return tr("%1, queued %2").arg(known.toString(), place_text(queued_->now().runs[static_cast<size_t>(*found)]));
  return known;
}

QVariant RunTree::queuedData(const TreeRow& row, int column, int role) const {
  const auto& all = queued_->now().runs;
  if (role == MembersRole || static_cast<size_t>(row.queued) >= all.size()) return {};
  const QueuedRun& run = all[static_cast<size_t>(row.queued)];
  if (role == Qt::ForegroundRole) return quietText(QApplication::palette());
  if (role == Qt::ToolTipRole) {
    const QString what = tr("%1\nWaits for %2, %3, since %4").arg(run.directory, run.device, place_text(run), run.added);
    return run.study.isEmpty() || run.is_study ? what : what + tr("\nof the study %1").arg(run.study);
  }
  if (role == RunsTable::SortRole && column > RunsTable::note && column != RunsTable::seed && column != RunsTable::folder)
    return std::numeric_limits<double>::infinity();
  if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole && role != RunsTable::SortRole) return {};
  switch (column) {
    case RunsTable::name: return QString::fromStdString(run.info.name);
    case RunsTable::architecture: return run.is_study ? tr("study") : QString::fromStdString(run.info.title);
    case RunsTable::state: return tr("Queued, %1").arg(place_text(run));
    case RunsTable::seed: return run.info.config.is_object() ? QVariant(static_cast<qlonglong>(run.info.seed)) : QVariant();
    case RunsTable::steps: return run.info.steps > 0 ? tr("0 of %1").arg(run.info.steps) : QString();
    case RunsTable::folder: return QString::fromStdString(run.info.directory.filename().string());
    default: return {};
  }
}

const RunTree::Told& RunTree::told(const TreeRow& row) const {
  if (!row.told) {
    auto told = std::make_shared<Told>();
    std::vector<const Run*> runs;
    for (const auto& each : row.below) {
      const Run* run = runs_->run(each->directory);
      ++(each->kind == Kind::queued ? told->queued : told->runs);
      if (!run) continue;
      runs.push_back(run);
      if (isActive(run->info().state)) ++told->active;
      if (run->info().state == RunState::finished) ++told->done;
      if (run->info().steps > 0) told->progress += static_cast<double>(run->info().step) / static_cast<double>(run->info().steps);
    }
    told->totals = totals_of(runs);
    told->progress /= std::max<double>(1, static_cast<double>(row.below.size()));
    row.told = std::move(told);
  }
  return *static_cast<const Told*>(row.told.get());
}

namespace {

/// "3.11 ± 0.02" of one setting's seeds, else "best 3.105"; a dash where it would mean nothing.
QString total_text(const LossTotal& total, bool one_setting) {
  if (total.count == 0) return QStringLiteral("–");
  if (!one_setting || total.count < 2) return RunTree::tr("best %1").arg(formatLoss(total.best, 3));
  return QStringLiteral("%1 ± %2").arg(formatLoss(total.mean, 3), formatLoss(total.deviation, 3));
}

QString total_words(const RunTotals& totals, const LossTotal& total) {
  if (!totals.comparable) return RunTree::tr("Losses on other data or other tokens are not comparable.");
  if (total.count == 0) return RunTree::tr("None of its runs is done and has this loss.");
  return RunTree::tr("Best %1, mean %2, of %3 runs that are done")
      .arg(formatLoss(total.best, 3), formatLoss(total.mean, 3))
      .arg(total.count);
}

}  // namespace

QVariant RunTree::groupData(const TreeRow& row, int column, int role) const {
  if (role == MembersRole) {
    QStringList members;
    for (const auto& each : row.below)
      if (each->kind == Kind::run) members << each->directory;
    return members;
  }
  if (role == Qt::FontRole && column == RunsTable::name) {
    QFont font = QApplication::font();
    font.setBold(true);
    return font;
  }
  const bool words = role == Qt::ToolTipRole || role == Qt::AccessibleTextRole;
  if (role != Qt::DisplayRole && !words) return {};
  const Told& told = this->told(row);
  const QString value = QString::fromStdString(row.value.text), title = QString::fromStdString(setting_of(grouping_.toStdString()).title);
  const QString count = told.queued == 0 ? QString::number(told.runs)
                        : told.runs == 0 ? tr("%1 queued").arg(told.queued)
                                         : tr("%1, %2 queued").arg(told.runs).arg(told.queued);
  switch (column) {
    case RunsTable::name: {
      const QString head = row.value.set                            ? tr("%1 = %2").arg(title, value)
                           : grouping_.startsWith(QLatin1Char('/')) ? tr("%1 %2").arg(title, value)
                                                                    : value;
      if (role == Qt::AccessibleTextRole) return tr("Group %1, %2 runs").arg(head, count);
      return QStringLiteral("%1 (%2)").arg(head, count);
    }
    case RunsTable::state:
      if (told.active > 0) return tr("%1 running").arg(told.active);
      return told.runs == 0 ? QString() : told.done == told.runs ? tr("Done") : tr("%1 of %2 done").arg(told.done).arg(told.runs);
    case RunsTable::progress: return told.runs == 0 ? QString() : tr("%1 %").arg(static_cast<int>(std::floor(100 * told.progress)));
    case RunsTable::loss: return words ? total_words(told.totals, told.totals.loss) : total_text(told.totals.loss, told.totals.one_setting);
    case RunsTable::ood: return words ? total_words(told.totals, told.totals.ood) : total_text(told.totals.ood, told.totals.one_setting);
    default: return {};
  }
}

}  // namespace saccade::ui
