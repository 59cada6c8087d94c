#include "ui/runs/runs_table.h"

#include <QApplication>
#include <QDateTime>
#include <QPalette>
#include <cmath>
#include <limits>

#include "ui/run_summary.h"
#include "ui/theme.h"

namespace saccade::ui {
namespace {

QString number(double value, int decimals) { return std::isnan(value) ? QStringLiteral("–") : formatLoss(value, decimals); }

double training_seconds(const Run& run) {
  const Series* steps = run.find("train/loss");
  return steps && !steps->seconds.empty() ? steps->seconds.back() : std::numeric_limits<double>::quiet_NaN();
}

/// Local time; invalid where it is not recorded.
QDateTime started_at(const Run& run) {
  const auto& provenance = run.info().provenance;
  const auto started = provenance.find("started");
  if (started == provenance.end() || !started->is_string()) return {};
  return QDateTime::fromString(QString::fromStdString(started->get<std::string>()), Qt::ISODate).toLocalTime();
}

}  // namespace

RunsTable::RunsTable(RunList* runs, QObject* parent) : QAbstractTableModel(parent), runs_(runs) {
  connect(runs, &QAbstractItemModel::rowsAboutToBeInserted, this,
          [this](const QModelIndex&, int first, int last) { beginInsertRows({}, first, last); });
  connect(runs, &QAbstractItemModel::rowsInserted, this, [this] { endInsertRows(); });
  connect(runs, &QAbstractItemModel::rowsAboutToBeRemoved, this,
          [this](const QModelIndex&, int first, int last) { beginRemoveRows({}, first, last); });
  connect(runs, &QAbstractItemModel::rowsRemoved, this, [this] { endRemoveRows(); });
  connect(runs, &QAbstractItemModel::modelAboutToBeReset, this, [this] { beginResetModel(); });
  connect(runs, &QAbstractItemModel::modelReset, this, [this] { endResetModel(); });
  connect(runs, &QAbstractItemModel::layoutAboutToBeChanged, this, [this] { beginResetModel(); });
  connect(runs, &QAbstractItemModel::layoutChanged, this, [this] { endResetModel(); });
  connect(runs, &QAbstractItemModel::dataChanged, this, [this](const QModelIndex& first, const QModelIndex& last) {
    Q_EMIT dataChanged(index(first.row(), 0), index(last.row(), column_count - 1));
  });
}

int RunsTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : runs_->rowCount(); }

int RunsTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : column_count; }

QVariant RunsTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(Qt::AlignVCenter | (section < progress || section == folder ? Qt::AlignLeft : Qt::AlignRight));
  static const QStringList tips{tr("Name of the run"),
                                tr("Star: click to set or take it; the filter “starred” shows these"),
                                tr("Architecture, and settings in which runs of it differ, as charts call it"),
                                tr("What the run is doing, and how much is left"),
                                tr("Words of your own, apart by commas; the filter “tag:word” finds them. F2 or double click edits"),
                                tr("A note of your own, kept beside the run. F2 or double click edits"),
                                tr("Steps done"),
                                tr("Loss on held-out text of the training domains, nats per token"),
                                tr("Mean loss on domains not trained on, nats per token"),
                                tr("Trained tokens by seconds of training, over the whole run"),
                                tr("Seed of weights and data order"),
                                tr("Trained numbers in the model"),
                                tr("Steps done, of those asked for"),
                                tr("When training began"),
                                tr("Time spent training"),
                                tr("Folder of the run")};
  if (role == Qt::ToolTipRole) return tips.value(section);
  if (role != Qt::DisplayRole) return {};
  static const QStringList titles{tr("Name"),     QStringLiteral("★"), tr("Architecture"), tr("State"),    tr("Tags"), tr("Note"),
                                  tr("Progress"), tr("Loss"),          tr("OOD"),          tr("Tokens/s"), tr("Seed"), tr("Parameters"),
                                  tr("Steps"),    tr("Started"),       tr("Duration"),     tr("Folder")};
  return titles.value(section);
}

QVariant RunsTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const QModelIndex source = runs_->index(index.row());
  if (role == Qt::CheckStateRole) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(Qt::AlignVCenter | (index.column() < progress || index.column() == folder ? Qt::AlignLeft : Qt::AlignRight));
  if (role == Qt::EditRole && index.column() != tags && index.column() != note) return {};
  if (role == Qt::ForegroundRole)
    return index.column() == state && source.data(RunList::DamageRole).toBool() ? QVariant(errorColour(QApplication::palette()))
                                                                                : QVariant();
  if (role != Qt::DisplayRole && role != SortRole && role != Qt::AccessibleTextRole && role != Qt::EditRole) return source.data(role);
  const Run* run = runs_->run(source.data(RunList::DirectoryRole).toString());
  if (!run) {
    if (index.column() == name) return source.data(RunList::TitleRole);
    if (index.column() == state) return tr("Cannot be read");
    return role == SortRole ? QVariant(-1.0) : QVariant();
  }
  if (index.column() == star && role == Qt::AccessibleTextRole) return run->notes().starred ? tr("starred") : tr("no star");
  if (index.column() == state && role == Qt::AccessibleTextRole && run->info().state == RunState::running)
    return tr("%1, %2").arg(stateText(run->info().state), shown(*run, state).toString());
  if (index.column() == architecture) return source.data(RunList::TitleRole);
  if (index.column() == note && role == Qt::EditRole) return QString::fromStdString(run->notes().note);
  return role == SortRole ? sorted(*run, index.column()) : shown(*run, index.column());
}

Qt::ItemFlags RunsTable::flags(const QModelIndex& index) const {
  const Qt::ItemFlags usual = QAbstractTableModel::flags(index);
  const bool own = index.column() == tags || index.column() == note;
  return own && runs_->run(runs_->index(index.row()).data(RunList::DirectoryRole).toString()) ? usual | Qt::ItemIsEditable : usual;
}

bool RunsTable::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid) || role != Qt::EditRole) return false;
  const QString directory = runs_->index(index.row()).data(RunList::DirectoryRole).toString();
  const Run* run = runs_->run(directory);
  if (!run) return false;
  RunNotes notes = run->notes();
  if (index.column() == star) notes.starred = value.toBool();
  if (index.column() == tags) notes.tags = tags_in(value.toString().toStdString());
  if (index.column() == note) notes.note = value.toString().trimmed().toStdString();
  if (notes == run->notes()) return true;
  try {
    runs_->setNotes(directory, notes);
  } catch (const std::exception& error) {
    Q_EMIT failed(QString::fromUtf8(error.what()));
    return false;
  }
  return true;
}

QVariant RunsTable::shown(const Run& run, int column) const {
  const RunInfo& info = run.info();
  switch (column) {
    case name: return QString::fromStdString(info.name);
    case star: return run.notes().starred ? QStringLiteral("★") : QStringLiteral("☆");
    case tags: return QString::fromStdString(tags_text(run.notes().tags));
    case note: {
      const std::string& problem = run.notes_problem();
      return problem.empty() ? QString::fromStdString(run.notes().note).simplified()
                             : QStringLiteral("⚠ ") + QString::fromStdString(problem);
    }
    case state: return is_damaged(run) ? QStringLiteral("%1, %2").arg(state_now(run), damaged_word()) : state_now(run);
    case progress: return info.steps > 0 ? tr("%1 %").arg(100 * info.step / info.steps) : QStringLiteral("–");
    case loss: return number(numbers_of(run).loss, 3);
    case ood: return number(numbers_of(run).ood, 3);
    case speed: {
      const double rate = run.tokens_per_second();
      return std::isnan(rate) ? QStringLiteral("–") : formatCount(rate);
    }
    case seed: return static_cast<qlonglong>(info.seed);
    case parameters: return formatCount(static_cast<double>(info.parameters));
    case steps: return tr("%1 of %2").arg(info.step).arg(info.steps);
    case started: return started_at(run).toString(QStringLiteral("yyyy-MM-dd hh:mm"));
    case duration: {
      const double seconds = training_seconds(run);
      return std::isnan(seconds) ? QStringLiteral("–") : formatDuration(seconds);
    }
    case folder: return QString::fromStdString(info.directory.filename().string());
    default: return {};
  }
}

/// Numbers sort as numbers; what was not measured sorts last.
QVariant RunsTable::sorted(const Run& run, int column) const {
  const RunInfo& info = run.info();
  const auto known = [](double value) { return std::isnan(value) ? std::numeric_limits<double>::infinity() : value; };
  switch (column) {
    case progress: return info.steps > 0 ? static_cast<double>(info.step) / static_cast<double>(info.steps) : 0.0;
    case star: return run.notes().starred ? 0.0 : 1.0;  // those first
    case loss: return known(numbers_of(run).loss);
    case ood: return known(numbers_of(run).ood);
    case speed: return known(run.tokens_per_second());
    case parameters: return static_cast<double>(info.parameters);
    case steps: return static_cast<double>(info.step);
    case duration: return known(training_seconds(run));
    default: return shown(run, column);
  }
}

}  // namespace saccade::ui
