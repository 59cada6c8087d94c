#include "ui/shell/grouped_runs.h"

#include <QHash>
#include <QTimer>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/comparison/branches.h"
#include "analysis/comparison/statistics.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {

constexpr std::array group_order{RunState::running, RunState::finished, RunState::stopped,
                                 RunState::crashed, RunState::diverged, RunState::failed};

size_t rank(RunState state) {
  if (isActive(state)) return 0;
  return static_cast<size_t>(std::find(group_order.begin(), group_order.end(), state) - group_order.begin());
}

/// Where seeds stand: at work while one of them is, done once all are; else with what went worst.
RunState state_of(const std::vector<RunState>& seeds) {
  if (std::any_of(seeds.begin(), seeds.end(), isActive)) return RunState::running;
  return seeds.empty() ? group_order.back()
                       : *std::max_element(seeds.begin(), seeds.end(), [](RunState a, RunState b) { return rank(a) < rank(b); });
}

/// Under which it is kept that a run's branches are seen.
QString branches_key(const QString& group) { return group + QStringLiteral("/branches"); }

/// "loss 3.41 ± 0.02"; NaN counts for nothing, of infinite ones it is said how many there are.
QString mean_text(const QString& pattern, const std::vector<double>& values) {
  if (const auto lost = std::count_if(values.begin(), values.end(), [](double v) { return std::isinf(v); }); lost > 0)  // no mean says that
    return pattern.arg(GroupedRuns::tr("not finite (%1 of %2)").arg(lost).arg(values.size()));
  const Repeated r = repeated(values);
  if (r.count == 0) return {};
  const QString spread = r.deviation ? QStringLiteral(" ± %1").arg(formatLoss(*r.deviation, 2)) : QString();
  return pattern.arg(formatLoss(r.mean, 2) + spread);
}

}  // namespace

GroupedRuns::GroupedRuns(RunList* runs, QObject* parent) : QAbstractListModel(parent), runs_(runs) {
  connect(runs, &RunList::changed, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::rowsInserted, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::rowsRemoved, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::modelReset, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::dataChanged, this, [this](const QModelIndex& first, const QModelIndex& last, const QList<int>& roles) {
    if (!roles.contains(RunList::SummaryRole)) return;  // all else comes with RunList::changed()
    for (int i = first.row(); i <= last.row(); ++i)
      if (const int told = row(runs_->index(i).data(RunList::DirectoryRole).toString()); told >= 0)
        Q_EMIT dataChanged(index(told), index(told), {RunList::SummaryRole});
  });
  connect(runs, &RunList::selectionChanged, this, [this] {
    if (!rows_.isEmpty()) Q_EMIT dataChanged(index(0), index(rowCount() - 1), {RunList::VisibleRole, Qt::CheckStateRole});
  });
  rebuild();
}

int GroupedRuns::row(const QString& directory) const {
  int found = -1;
  for (int i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].members.contains(directory)) continue;
    found = i;
    if (!rows_[i].opened) break;  // its own row comes below
    if (rows_[i].members.size() == 1) break;
  }
  return found;
}

void GroupedRuns::setOpened(const QModelIndex& group, bool opened) {
  if (!group.data(FoldsRole).toBool()) return;
  const QString key = group.data(KeyRole).toString();
  runs_->setOpened(group.data(SeedsRole).toInt() > 1 ? key : branches_key(key), opened);
}

void GroupedRuns::schedule() {
  if (std::exchange(scheduled_, true)) return;
  QTimer::singleShot(0, this, [this] {
    scheduled_ = false;
    rebuild();
  });
}

/// A group with those of its runs' cooldown branches.
struct GroupedRuns::Family {
  const ShownGroup* group;
  std::vector<const ShownGroup*> branches;
};

std::vector<GroupedRuns::Family> GroupedRuns::families() const {
  const std::vector<ShownGroup>& groups = runs_->selection().groups();
  QHash<QString, size_t> holder;  // index of its group, by directory
  for (size_t i = 0; i < groups.size(); ++i)
    for (const SharedRun& run : groups[i].seeds) holder.insert(directory_of(*run), i);
  std::vector<std::vector<const ShownGroup*>> branches(groups.size());
  std::vector<bool> is_branch(groups.size(), false);
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto trunk = holder.constFind(trunk_in(directory_of(*groups[i].seeds.front())));
    if (trunk == holder.constEnd() || *trunk == i) continue;
    is_branch[i] = true;
    branches[*trunk].push_back(&groups[i]);
  }
  std::vector<Family> all;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (is_branch[i]) continue;
    std::stable_sort(branches[i].begin(), branches[i].end(), [](const ShownGroup* a, const ShownGroup* b) {
      return a->seeds.front()->info().steps < b->seeds.front()->info().steps;
    });
    all.push_back({&groups[i], branches[i]});
  }
  return all;
}

void GroupedRuns::append(const Family& family, QList<Row>& rows) const {
  const auto row_of = [](const ShownGroup& group) {
    Row row{{}, {}, group.key, QString::fromStdString(group.look.label), group.opened, false};
    for (const SharedRun& run : group.seeds) row.members << directory_of(*run);
    return row;
  };
  const auto add_seeds = [&](const Row& group) {
    if (!group.group() || !group.opened) return;
    for (const QString& member : group.members) rows << Row{{}, {member}, {}, {}, false, true};
  };
  Row trunk = row_of(*family.group);
  trunk.branches = static_cast<int>(family.branches.size());
  if (!trunk.group()) trunk.opened = trunk.branches > 0 && runs_->selection().opened().contains(branches_key(trunk.key));
  rows << trunk;
  add_seeds(trunk);
  for (const ShownGroup* branch : family.branches) {
    if (!trunk.opened) break;
    Row row = row_of(*branch);
    row.child = true;
    row.opened = row.opened && row.group();
    row.title = QString::fromStdString(branch_words(row.members.first().toStdString()));
    rows << row;
    add_seeds(row);
  }
}

QList<GroupedRuns::Row> GroupedRuns::rowsNow() const {
  std::array<QList<Row>, group_order.size()> of_state;
  std::array<size_t, group_order.size()> counts{}, of_this_state{};  // the others are seeds of such that are
  for (const Family& family : families()) {
    std::vector<RunState> states;
    for (const SharedRun& run : family.group->seeds) states.push_back(run->info().state);
    bool branch_at_work = false;
    for (const ShownGroup* branch : family.branches)
      for (const SharedRun& run : branch->seeds) branch_at_work |= isActive(run->info().state);
    const size_t first = branch_at_work ? 0 : rank(state_of(states));
    append(family, of_state[first]);
    counts[first] += states.size();
    const auto is_so = [&](RunState state) { return branch_at_work || rank(state) == first; };
    of_this_state[first] += static_cast<size_t>(std::count_if(states.begin(), states.end(), is_so));
  }
  QList<Row> rows;
  const auto add = [&](const QString& title, const QList<Row>& members, const QString& count) {
    if (members.isEmpty()) return;
    rows << Row{QStringLiteral("%1 (%2)").arg(title, count), {}, {}, {}, false, false};
    rows << members;
  };
  for (size_t i = 0; i < group_order.size(); ++i) {
    const QString all = QString::number(counts[i]);
    add(stateText(group_order[i]), of_state[i], of_this_state[i] == counts[i] ? all : tr("%1 of %2").arg(of_this_state[i]).arg(all));
  }
  QList<Row> damaged;
  for (int row = 0; row < runs_->rowCount() && runs_->selection().filter().isEmpty(); ++row)
    if (const QModelIndex run = runs_->index(row); !run.data(RunList::ProblemRole).toString().isEmpty())
      damaged << Row{{}, {run.data(RunList::DirectoryRole).toString()}, {}, {}, false, false};
  add(tr("Cannot be read"), damaged, QString::number(damaged.size()));
  return rows;
}

void GroupedRuns::rebuild() {
  QList<Row> rows = rowsNow();
  const bool same = rows == rows_;
  if (!same) {
    beginResetModel();
    rows_ = std::move(rows);
  }
  QList<Mark> marks;
  for (const Row& row : std::as_const(rows_)) marks << mark(row);
  const QList<Mark> before = std::exchange(marks_, marks);
  same ? tellChanges(before) : endResetModel();
}

/// A view paints what it is told of.
void GroupedRuns::tellChanges(const QList<Mark>& before) {
  for (int first = 0, last = 0; first < rows_.size(); first = last + 1) {
    last = first;
    if (marks_[first] == before[first]) continue;
    while (last + 1 < rows_.size() && marks_[last + 1] != before[last + 1]) ++last;
    Q_EMIT dataChanged(index(first), index(last));
  }
}

GroupedRuns::Mark GroupedRuns::mark(const Row& row) const {
  Mark mark;
  for (const QString& member : row.members) {
    const SharedRun run = runs_->shared(member);
    if (!run) {
      mark.problem = source(member).data(RunList::ProblemRole).toString();
      continue;
    }
    const RunLook look = runs_->selection().look(*run);
    mark.looks = qHashMulti(mark.looks, runs_->selection().hidden().contains(member), look.colour.r, look.colour.g, look.colour.b,
                            static_cast<int>(look.dash), static_cast<int>(look.marker));
    mark.runs.push_back(run);
  }
  return mark;
}

QModelIndex GroupedRuns::source(const QString& directory) const {
  const int row = runs_->row(directory);
  return row < 0 ? QModelIndex() : runs_->index(row);
}

int GroupedRuns::shownMembers(const Row& row) const {
  return static_cast<int>(std::count_if(row.members.begin(), row.members.end(),
                                        [&](const QString& member) { return !runs_->selection().hidden().contains(member); }));
}

int GroupedRuns::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }

RunState GroupedRuns::groupState(const Row& row) const { return state_of(groupStates(row)); }

std::vector<RunState> GroupedRuns::groupStates(const Row& row) const {
  std::vector<RunState> states;
  for (const QString& member : row.members)
    if (const Run* run = runs_->run(member)) states.push_back(run->info().state);
  return states;
}

/// "2 of 3 done" of seeds that are no longer at work; empty where all are done.
QString GroupedRuns::doneOf(const Row& row) const {
  const std::vector<RunState> states = groupStates(row);
  const auto done = std::count(states.begin(), states.end(), RunState::finished);
  const bool told = state_of(states) != RunState::running && done < static_cast<std::ptrdiff_t>(states.size());
  return told ? tr("%1 of %2 done").arg(done).arg(states.size()) : QString();
}

/// "2 of 3 done", "4 min left" of those at work, "loss 3.41 ± 0.02", "OOD 3.87 ± 0.05": what is known of them.
QStringList GroupedRuns::groupNumbers(const Row& row) const {
  std::vector<double> losses, oods;
  double left = 0;
  for (const QString& member : row.members)
    if (const Run* run = runs_->run(member)) {
      const RunNumbers numbers = numbers_of(*run);
      losses.push_back(numbers.loss);
      oods.push_back(numbers.ood);
      left = std::fmax(left, numbers.seconds_left);
    }
  const auto damaged = std::count_if(row.members.begin(), row.members.end(),
                                     [&](const QString& member) { return source(member).data(RunList::DamageRole).toBool(); });
  QStringList parts{damaged > 0 ? QStringLiteral("%1 %2").arg(damaged).arg(damaged_word()) : QString(), doneOf(row),
                    left > 0 ? tr("%1 left").arg(formatDuration(left)) : QString(), mean_text(tr("loss %1"), losses),
                    mean_text(tr("OOD %1"), oods)};
  parts.removeAll(QString());
  return parts;
}

QVariant GroupedRuns::groupData(const Row& row, int role) const {
  const auto shown = [&] { return shownMembers(row); };
  switch (role) {
    case Qt::DisplayRole:
    case RunList::TitleRole: return row.title;
    case RunList::SeedRole: return {};
    case RunList::DashRole: return static_cast<int>(Dash::solid);
    case Qt::CheckStateRole: return shown() == 0 ? Qt::Unchecked : shown() == row.members.size() ? Qt::Checked : Qt::PartiallyChecked;
    case RunList::VisibleRole: return shown() > 0;
    case RunList::ProgressRole: {
      double progress = 0;
      for (const QString& member : row.members) progress += source(member).data(RunList::ProgressRole).toDouble();
      return progress / static_cast<double>(row.members.size());
    }
    case RunList::StateRole: return static_cast<int>(groupState(row));
    case RunList::DamageRole:
      return std::any_of(row.members.begin(), row.members.end(),
                         [&](const QString& member) { return source(member).data(RunList::DamageRole).toBool(); });
    case RunList::SummaryRole: return groupNumbers(row).join(QStringLiteral(" · "));
    case Qt::ToolTipRole:
      return tr("%1\n%2 seeds, drawn as mean and standard deviation until opened").arg(row.title).arg(row.members.size());
    case Qt::AccessibleTextRole:
      return tr("%1, %2 seeds, %3").arg(row.title).arg(row.members.size()).arg(groupNumbers(row).join(QStringLiteral(", ")));
    default: return source(row.members.first()).data(role);
  }
}

QVariant GroupedRuns::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Row& row = rows_[index.row()];
  const bool heading = !row.heading.isEmpty();
  switch (role) {
    case HeadingRole: return heading;
    case SeedsRole: return row.group() ? static_cast<int>(row.members.size()) : 0;
    case FoldsRole: return row.folds();
    case OpenedRole: return row.opened;
    case ChildRole: return row.child;
    case KeyRole: return row.key;
    case MembersRole: return row.members;
    default: break;
  }
  if (heading) return role == Qt::DisplayRole || role == Qt::AccessibleTextRole ? row.heading : QVariant();
  if (role == RunList::DirectoryRole) return row.members.first();
  return runData(row, role);
}

/// What stands in the list, with branches told by their run's row, and by their step where they stand below it.
QVariant GroupedRuns::runData(const Row& row, int role) const {
  const QVariant known = row.group() ? groupData(row, role) : source(row.members.first()).data(role);
  const bool branch = row.child && !row.title.isEmpty();
  if (branch && (role == Qt::DisplayRole || role == RunList::TitleRole)) return row.title;
  if (row.branches == 0) return known;
  const QString told = row.branches == 1 ? tr("1 branch") : tr("%1 branches").arg(row.branches);
  if (role == RunList::SummaryRole) return known.toString() + (known.toString().isEmpty() ? QString() : QStringLiteral(" · ")) + told;
  return role == Qt::AccessibleTextRole ? QVariant(known.toString() + QStringLiteral(", ") + told) : known;
}

bool GroupedRuns::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid) || (role != RunList::VisibleRole && role != Qt::CheckStateRole)) return false;
  const QStringList& members = rows_[index.row()].members;
  if (members.isEmpty()) return false;
  runs_->setShown(members, role == RunList::VisibleRole ? value.toBool() : value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags GroupedRuns::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  if (!rows_[index.row()].heading.isEmpty()) return Qt::ItemNeverHasChildren;
  const Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren;
  return index.data(RunList::ProblemRole).toString().isEmpty() ? flags | Qt::ItemIsUserCheckable : flags;
}

}  // namespace saccade::ui
