#include "ui/shell/grouped_runs.h"

#include <QTimer>
#include <array>

#include "models/config/old_names.h"
#include "ui/run_summary.h"
#include "ui/runs/differences.h"

namespace saccade::ui {
namespace {

constexpr std::array group_order{RunState::running, RunState::finished, RunState::stopped,
                                 RunState::crashed, RunState::diverged, RunState::failed};

/// Value of a setting anywhere in the config, by its last word.
bool has_setting(const nlohmann::json& config, const std::string& name, const QString& wanted) {
  for (const auto& [key, value] : config.items()) {
    if (value.is_object() && has_setting(value, name, wanted)) return true;
    if (key != name || value.is_object()) continue;
    const QString text = plainValue(value);
    if (value.is_number() ? text == wanted : text.contains(wanted, Qt::CaseInsensitive)) return true;
  }
  return false;
}

}  // namespace

GroupedRuns::GroupedRuns(RunList* runs, QObject* parent) : QAbstractListModel(parent), runs_(runs) {
  connect(runs, &QAbstractItemModel::rowsInserted, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::rowsRemoved, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::modelReset, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::layoutChanged, this, &GroupedRuns::schedule);
  connect(runs, &QAbstractItemModel::dataChanged, this, &GroupedRuns::schedule);
  rebuild();
}

void GroupedRuns::setFilter(const QString& filter) {
  filter_ = filter;
  rebuild();
}

int GroupedRuns::row(const QString& directory) const { return static_cast<int>(rows_.indexOf(Row{{}, directory})); }

void GroupedRuns::schedule() {
  if (std::exchange(scheduled_, true)) return;
  QTimer::singleShot(0, this, [this] {
    scheduled_ = false;
    rebuild();
  });
}

void GroupedRuns::rebuild() {
  QList<Row> rows;
  const auto add_group = [&](const QString& title, auto belongs) {
    QList<Row> members;
    for (int row = 0; row < runs_->rowCount(); ++row) {
      const QModelIndex run = runs_->index(row);
      if (belongs(run) && passes(run)) members << Row{{}, run.data(RunList::DirectoryRole).toString()};
    }
    if (members.isEmpty()) return;
    rows << Row{QStringLiteral("%1 (%2)").arg(title).arg(members.size()), {}};
    rows << members;
  };
  const auto damaged = [](const QModelIndex& run) { return !run.data(RunList::ProblemRole).toString().isEmpty(); };
  for (const RunState state : group_order)
    add_group(stateText(state), [&](const QModelIndex& run) {
      const auto its = static_cast<RunState>(run.data(RunList::StateRole).toInt());
      return !damaged(run) && (state == RunState::running ? isActive(its) : its == state);
    });
  add_group(tr("Cannot be read"), damaged);
  if (rows == rows_) {
    if (!rows_.isEmpty()) Q_EMIT dataChanged(index(0), index(rowCount() - 1));
    return;
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

bool GroupedRuns::passes(const QModelIndex& index) const {
  const QString directory = index.data(RunList::DirectoryRole).toString();
  const Run* run = runs_->run(directory);
  const auto state = static_cast<RunState>(index.data(RunList::StateRole).toInt());
  const QString words = index.data(Qt::DisplayRole).toString() + QLatin1Char(' ') + directory.section(QLatin1Char('/'), -1) +
                        QLatin1Char(' ') + stateText(state) + QLatin1Char(' ') +
                        (run ? QString::fromStdString(run->info().name) : QString());
  for (const QString& term : filter_.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
    const qsizetype colon = term.indexOf(QLatin1Char(':'));
    const bool found =
        colon > 0 ? run && has_setting(run->info().config, current_setting_name(term.left(colon).toStdString()), term.mid(colon + 1))
                  : words.contains(term, Qt::CaseInsensitive);
    if (!found) return false;
  }
  return true;
}

QModelIndex GroupedRuns::source(const QModelIndex& index) const {
  const QString& directory = rows_[index.row()].directory;
  const int row = directory.isEmpty() ? -1 : runs_->row(directory);
  return row < 0 ? QModelIndex() : runs_->index(row);
}

int GroupedRuns::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }

QVariant GroupedRuns::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Row& row = rows_[index.row()];
  const bool heading = !row.heading.isEmpty();
  if (role == HeadingRole) return heading;
  if (heading) return role == Qt::DisplayRole || role == Qt::AccessibleTextRole ? row.heading : QVariant();
  return role == RunList::DirectoryRole ? row.directory : source(index).data(role);
}

bool GroupedRuns::setData(const QModelIndex& index, const QVariant& value, int role) {
  return checkIndex(index, CheckIndexOption::IndexIsValid) && runs_->setData(source(index), value, role);
}

Qt::ItemFlags GroupedRuns::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  return rows_[index.row()].heading.isEmpty() ? runs_->flags(source(index)) : Qt::ItemFlags(Qt::ItemNeverHasChildren);
}

}  // namespace saccade::ui
