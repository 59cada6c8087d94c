#include "ui/compare/comparison_table.h"

#include <QFont>
#include <QStringList>
#include <cmath>
#include <limits>

#include "ui/charts/ticks.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"

namespace saccade::ui {

namespace {

const QString kNone = QStringLiteral("–");

QString loss(double value) { return std::isfinite(value) ? formatLoss(value, 3) : kNone; }
QString loss(const std::optional<double>& value) { return value ? loss(*value) : kNone; }
QString positive(double value) { return value > 0 && std::isfinite(value) ? short_number(value) : kNone; }
QString signed_loss(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return kNone;
  return (*value < 0 ? QStringLiteral("−") : QStringLiteral("+")) + QString::number(std::abs(*value), 'f', 3);
}

}  // namespace

ComparisonTable::ComparisonTable(Kind kind, const RunList* runs, QObject* parent) : QAbstractTableModel(parent), kind_(kind), runs_(runs) {}

void ComparisonTable::setComparison(const Comparison& comparison) {
  beginResetModel();
  cells_.clear();
  directories_.clear();
  best_ = -1;
  double least = std::numeric_limits<double>::infinity();
  for (const ComparisonRow& row : comparison.rows) {
    const double ood = kind_ == Kind::at_end ? row.ood_loss : row.ood_at_equal.value_or(NAN);
    if (ood < least) least = ood, best_ = static_cast<int>(directories_.size());
    directories_.push_back(QString::fromStdString(row.directory.string()));
  }
  if (kind_ == Kind::at_equal_loss) {
    columns_ = {{tr("architecture"), {}},
                {tr("OOD (nats)"), tr("OOD loss where the pre-training loss is equal, mean of seeds")},
                {tr("± sd"), tr("Sample standard deviation over seeds; needs two or more")},
                {tr("against first"), tr("OOD loss minus that of the first row, the run selected in the list")},
                {tr("seeds"), tr("Runs gathered in this row")}};
    for (const ComparisonRow& row : comparison.rows)
      cells_.push_back({QString::fromStdString(row.title), loss(row.ood_at_equal),
                        row.spread ? QString::number(*row.spread, 'f', 3) : kNone, cells_.empty() ? kNone : signed_loss(row.against_first),
                        QString::number(row.runs.size())});
  } else {
    columns_ = {{tr("architecture"), {}},
                {tr("parameters"), {}},
                {tr("tokens/s"), tr("Training speed, mean over the run")},
                {tr("ID (nats)"), tr("In-domain validation loss at the end")},
                {tr("OOD (nats)"), tr("Mean OOD loss at the end")}};
    if (!comparison.rows.empty())
      for (const auto& [domain, value] : comparison.rows.front().domains)
        columns_.push_back({QString::fromStdString(domain), tr("OOD loss on this domain at the end, nats")});
    for (const ComparisonRow& row : comparison.rows) {
      cells_.push_back({QString::fromStdString(row.title), positive(static_cast<double>(row.parameters)), positive(row.tokens_per_second),
                        loss(row.pretraining_loss), loss(row.ood_loss)});
      for (size_t i = 5; i < columns_.size(); ++i) {
        QString shown = kNone;
        for (const auto& [domain, value] : row.domains)
          if (QString::fromStdString(domain) == columns_[i].name) shown = loss(value);
        cells_.back().push_back(shown);
      }
    }
  }
  endResetModel();
}

int ComparisonTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(cells_.size()); }
int ComparisonTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(columns_.size()); }

QVariant ComparisonTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::DisplayRole || role == Qt::ToolTipRole)
    return cells_[static_cast<size_t>(index.row())][static_cast<size_t>(index.column())];
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (index.column() == 0 ? Qt::AlignLeft : Qt::AlignRight));
  if (role == Qt::FontRole && rowCount() > 1 && index.row() == best_ && index.column() == (kind_ == Kind::at_end ? 4 : 1)) {
    QFont bold;
    bold.setBold(true);
    return bold;
  }
  if (role < Qt::UserRole || index.column() != 0 || !runs_) return {};
  return runs_->index(runs_->row(directories_[static_cast<size_t>(index.row())])).data(role);
}

QVariant ComparisonTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  if (role == Qt::DisplayRole) return columns_[static_cast<size_t>(section)].name;
  if (role == Qt::ToolTipRole) return columns_[static_cast<size_t>(section)].help;
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (section == 0 ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

QString ComparisonTable::asText() const {
  QStringList lines, names;
  for (const Column& column : columns_) names << column.name;
  lines << names.join(QLatin1Char('\t'));
  for (const auto& row : cells_) lines << QStringList(row.begin(), row.end()).join(QLatin1Char('\t'));
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

}  // namespace saccade::ui
