#include "ui/compare/comparison_table.h"

#include <QFont>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ui/charts/ticks.h"
#include "ui/run_list.h"
#include "ui/run_summary.h"
#include "ui/wrapped_tip.h"

namespace saccade::ui {

namespace {

const QString kNone = QStringLiteral("–");

QString loss(double value) { return std::isfinite(value) ? formatLoss(value, 3) : kNone; }
QString loss(const std::optional<double>& value) { return value ? loss(*value) : kNone; }
QString memory(const ComparisonRow& row) {
  if (!std::isfinite(row.memory_bytes) || row.memory_bytes <= 0) return kNone;
  return row.memory_of_process ? ComparisonTable::tr("%1 (process)").arg(formatBytes(row.memory_bytes)) : formatBytes(row.memory_bytes);
}
QString positive(double value) { return value > 0 && std::isfinite(value) ? short_number(value) : kNone; }
QString signed_loss(double value) {
  if (!std::isfinite(value)) return kNone;
  const QString digits = QString::number(std::abs(value), 'f', 3);
  if (digits == QStringLiteral("0.000")) return digits;  // neither less nor more, as far as is shown
  return (value < 0 ? QStringLiteral("−") : QStringLiteral("+")) + digits;
}

QString word(const std::string& text) { return text.empty() ? kNone : QString::fromStdString(text); }

QString p_value(const std::optional<PairedTest>& test) {
  if (!test || !test->p_holm) return kNone;
  return *test->p_holm < 0.001 ? QStringLiteral("< 0.001") : QString::number(*test->p_holm, 'f', 3);
}

}  // namespace

ComparisonTable::Cell ComparisonTable::to_tell_apart(const std::optional<PairedTest>& test) {
  if (!test || (!test->more && test->difference.count > 1)) return {test ? tr("> 1 000 seeds") : kNone, test ? 1001.0 : NAN};
  if (!test->more) return {tr("a second seed"), 1};
  const int64_t more = *test->more;
  return {more == 0 ? tr("told apart") : more == 1 ? tr("1 more seed") : tr("%1 more seeds").arg(more), static_cast<double>(more)};
}

ComparisonTable::Cell ComparisonTable::number(const std::optional<double>& value) {
  return {value ? QString::number(*value, 'f', 3) : kNone, value.value_or(NAN)};
}

ComparisonTable::Cell ComparisonTable::half_95_of(const std::optional<PairedTest>& test) {
  return number(test ? test->difference.half_95 : std::nullopt);
}

ComparisonTable::ComparisonTable(Kind kind, const RunList* runs, QObject* parent) : QAbstractTableModel(parent), kind_(kind), runs_(runs) {}

/// What seeds say of a loss, and of its difference to the first row's: the same columns at the equal loss and at the end.
std::vector<ComparisonTable::Column> ComparisonTable::columnsOfSeeds() {
  return {{tr("± sd"), tr("Sample standard deviation over seeds; needs two or more")},
          {tr("± 95 %"), tr("Half of the 95 % interval of the mean over seeds (Student t); needs two or more")}};
}

std::vector<ComparisonTable::Column> ComparisonTable::columnsOfDifference() {
  return {{tr("difference"), tr("OOD loss minus that of the baseline, else of the run selected in the list, else of the first")},
          {tr("± 95 % of it"), tr("Half of the 95 % interval of the mean difference of the seeds that the first row has too")},
          {tr("p"), tr("Paired t test of the seeds that the first row has too, corrected for the other rows (Holm)")}};
}

std::vector<ComparisonTable::Cell> ComparisonTable::cellsOfSeeds(const ComparedLoss& loss) {
  return {number(loss.deviation), number(loss.half_95)};
}

std::vector<ComparisonTable::Cell> ComparisonTable::cellsOfDifference(const ComparedLoss& loss, bool first) {
  const double against = first ? NAN : loss.against_first.value_or(NAN);
  return {{signed_loss(against), against}, half_95_of(loss.test), {p_value(loss.test), loss.test ? loss.test->p_holm.value_or(NAN) : NAN}};
}

std::vector<ComparisonTable::Column> ComparisonTable::columnsAtEqualLoss() {
  std::vector<Column> columns{{tr("architecture"), {}},
                              {tr("OOD (nats)"), tr("OOD loss where the pre-training loss is equal, mean of seeds")}};
  for (const std::vector<Column>& more : {columnsOfSeeds(), columnsOfDifference()}) columns.insert(columns.end(), more.begin(), more.end());
  for (Column& column : std::vector<Column>{
           {tr("seeds"), tr("Seeds gathered in this row, each once")},
           {tr("to tell apart"), tr("Seeds more that would bring the 95 % interval of the paired difference off zero, if mean and "
                                    "deviation stayed; “More seeds” queues some")},
           {tr("read from"), tr("Ends of cooldown branches; or mid-schedule: between evaluations, before the learning rate has "
                                "fallen")},
           {tr("tuning"),
            tr("Whether the runs have the best value that a search found: tuned, at an edge of what was tried, "
               "one rate only (untuned), not at its best value; in another setting than the learning rate where one is named")}})
    columns.push_back(std::move(column));
  return columns;
}

void ComparisonTable::setComparison(const Comparison& comparison, const std::vector<double>& entropies) {
  beginResetModel();
  rows_.clear();
  more_columns_.clear();
  const std::optional<size_t> best = best_row(comparison, kind_ == Kind::at_end ? ComparedAt::end : ComparedAt::equal_loss);
  best_column_ = kind_ == Kind::at_end ? 2 : 1;
  for (const ComparisonRow& row : comparison.rows)
    rows_.push_back({{{QString::fromStdString(row.title), NAN}}, QString::fromStdString(row.directory.string())});
  if (best) rows_[*best].best = true;
  if (kind_ == Kind::at_equal_loss)
    setEqualLoss(comparison);
  else
    setEnds(comparison, entropies);
  arrange();
  endResetModel();
}

void ComparisonTable::addCells(size_t row, const std::vector<Cell>& cells) {
  rows_[row].cells.insert(rows_[row].cells.end(), cells.begin(), cells.end());
}

void ComparisonTable::addMoreColumn(Column column) {
  more_columns_.push_back(static_cast<int>(columns_.size()));
  columns_.push_back(std::move(column));
}

void ComparisonTable::setEqualLoss(const Comparison& comparison) {
  columns_ = columnsAtEqualLoss();
  more_columns_ = {3, 5, 8, 9, 10};
  for (size_t i = 0; i < rows_.size(); ++i) {
    const ComparisonRow& row = comparison.rows[i];
    const ComparedLoss& ood = row.ood_at_equal;
    addCells(i, {{loss(ood.mean), ood.mean.value_or(NAN)}});
    addCells(i, cellsOfSeeds(ood));
    addCells(i, cellsOfDifference(ood, i == 0));
    addCells(i, {{QString::number(row.seeds.size()), static_cast<double>(row.seeds.size())},
                 to_tell_apart(ood.test),
                 {word(read_from(row)), NAN},
                 {word(short_words(row.tuning)), NAN}});
    if (ood.test) rows_[i].more_seeds = ood.test->more;
  }
}

void ComparisonTable::addColumnsOfEnds(const Comparison& comparison, const EndColumns& shown) {
  columns_ = {{tr("architecture"), {}},
              {tr("ID (nats)"), tr("In-domain validation loss at the end; not of damaged runs")},
              {tr("OOD (nats)"), tr("Mean OOD loss at the end")},
              {tr("parameters"), {}},
              {tr("tokens/s"), tr("Trained tokens by seconds of training, over the whole run; mean of seeds")}};
  if (!comparison.rows.empty())
    for (const auto& [domain, value] : comparison.rows.front().domains)
      columns_.push_back({QString::fromStdString(domain), tr("OOD loss on this domain at the end, nats")});
  for (const auto& [name, inside] : {std::pair(tr("ID"), true), std::pair(tr("OOD"), false)}) {
    addMoreColumn({tr("%1 ± text").arg(name), tr("Standard error of this loss over the text that was evaluated; not over seeds")});
    if (!shown.over_seeds) continue;
    for (Column& column : columnsOfSeeds()) addMoreColumn({name + QLatin1Char(' ') + column.name, column.help});
    if (inside) continue;
    for (Column& column : columnsOfDifference()) addMoreColumn({name + QLatin1Char(' ') + column.name, column.help});
  }
  if (shown.costs)
    for (Column& column :
         std::vector<Column>{{tr("gap"), tr("OOD loss minus in-domain loss at the end, nats")},
                             {tr("entropy"), tr("Normalised entropy of reads at the end, mean of the layers; 1: evenly spread")},
                             {tr("cache / state"),
                              tr("Bytes that decoding keeps per token of context: cache, or recurrent state over the sequence length")},
                             {tr("peak memory"),
                              tr("The most that a run's tensors took on its device; of runs on the CPU, marked “process”, what the whole "
                                 "process had resident. A dash: not recorded")},
                             {tr("tokens"), tr("Trained on")},
                             {tr("FLOPs"), tr("Of training")}})
      addMoreColumn(std::move(column));
  if (shown.paired)
    columns_.push_back(
        {tr("OOD on the same text"), tr("OOD loss at the end minus that of the baseline, else of the run selected in the list, "
                                        "else of the first, and its standard error over the sequences that all were "
                                        "evaluated on when they had ended; seeds may differ by more")});
}

void ComparisonTable::setEnds(const Comparison& comparison, const std::vector<double>& entropies) {
  const auto any = [&](auto has) { return std::any_of(comparison.rows.begin(), comparison.rows.end(), has); };
  const EndColumns shown{any([](const ComparisonRow& r) { return r.ood_at_end.half_95.has_value(); }), entropies.size() == rows_.size(),
                         any([](const ComparisonRow& r) { return r.ood_paired.has_value(); })};
  addColumnsOfEnds(comparison, shown);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const ComparisonRow& row = comparison.rows[i];
    const double id = row.id_at_end.mean.value_or(NAN), ood = row.ood_at_end.mean.value_or(NAN);
    const auto parameters = static_cast<double>(row.parameters);
    addCells(i, {{loss(row.id_at_end.mean), id},
                 {loss(row.ood_at_end.mean), ood},
                 {positive(parameters), parameters},
                 {positive(row.tokens_per_second), row.tokens_per_second}});
    for (const auto& shown_domain : comparison.rows.front().domains) {
      const auto own =
          std::find_if(row.domains.begin(), row.domains.end(), [&](const auto& each) { return each.first == shown_domain.first; });
      const double of_domain = own == row.domains.end() ? NAN : own->second;
      addCells(i, {{loss(of_domain), of_domain}});
    }
    for (const ComparedLoss* end : {&row.id_at_end, &row.ood_at_end}) {
      addCells(i, {number(end->text_error)});
      if (!shown.over_seeds) continue;
      addCells(i, cellsOfSeeds(*end));
      if (end == &row.ood_at_end) addCells(i, cellsOfDifference(*end, i == 0));
    }
    if (shown.costs)
      addCells(i, {{loss(ood - id), ood - id},
                   {loss(entropies[i]), entropies[i]},
                   {row.state_bytes > 0 ? formatBytes(row.state_bytes) : kNone, row.state_bytes},
                   {memory(row), row.memory_bytes},
                   {positive(row.tokens), row.tokens},
                   {positive(row.flops), row.flops}});
    if (!shown.paired) continue;
    const LossAndError d = row.ood_paired.value_or(LossAndError{});
    addCells(i, {{std::isnan(d.loss) ? kNone : tr("%1 ± %2").arg(signed_loss(d.loss), QString::number(d.error, 'f', 3)), d.loss}});
  }
}

std::optional<int64_t> ComparisonTable::seedsToTellApart(int row) const { return shown(row).more_seeds; }

void ComparisonTable::arrange() {
  shown_.resize(rows_.size());
  std::iota(shown_.begin(), shown_.end(), size_t{0});
  if (sorted_by_ < 0 || sorted_by_ >= columnCount()) return;
  const auto cell = [this](size_t row) -> const Cell& { return rows_[row].cells[static_cast<size_t>(sorted_by_)]; };
  const bool up = order_ == Qt::AscendingOrder;
  std::stable_sort(shown_.begin(), shown_.end(), [&](size_t a, size_t b) {
    const Cell &x = cell(a), &y = cell(b);
    if (sorted_by_ == 0) return up ? x.text < y.text : y.text < x.text;
    if (std::isnan(x.value) || std::isnan(y.value)) return std::isnan(y.value) && !std::isnan(x.value);
    return up ? x.value < y.value : y.value < x.value;
  });
}

void ComparisonTable::sort(int column, Qt::SortOrder order) {
  Q_EMIT layoutAboutToBeChanged({}, VerticalSortHint);
  sorted_by_ = column, order_ = order;
  const std::vector<size_t> before = shown_;
  arrange();
  QModelIndexList from = persistentIndexList(), to;
  for (const QModelIndex& each : from) {
    const auto place = std::find(shown_.begin(), shown_.end(), before[static_cast<size_t>(each.row())]);
    to << index(static_cast<int>(place - shown_.begin()), each.column());
  }
  changePersistentIndexList(from, to);
  Q_EMIT layoutChanged({}, VerticalSortHint);
}

int ComparisonTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int ComparisonTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(columns_.size()); }

QVariant ComparisonTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Cell& cell = shown(index.row()).cells[static_cast<size_t>(index.column())];
  if (role == Qt::ToolTipRole && !cell.tip.isEmpty()) return wrapped_tip(cell.tip);
  if (role == Qt::DisplayRole || role == Qt::ToolTipRole) return cell.text;
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (index.column() == 0 ? Qt::AlignLeft : Qt::AlignRight));
  if (role == Qt::FontRole && rowCount() > 1 && shown(index.row()).best && index.column() == best_column_) {
    QFont bold;
    bold.setBold(true);
    return bold;
  }
  if (role < Qt::UserRole || index.column() != 0 || !runs_) return {};
  return runs_->index(runs_->row(shown(index.row()).directory)).data(role);
}

QVariant ComparisonTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  if (role == Qt::DisplayRole) return columns_[static_cast<size_t>(section)].name;
  if (role == Qt::ToolTipRole) return wrapped_tip(columns_[static_cast<size_t>(section)].help);
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignVCenter | (section == 0 ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

QString ComparisonTable::asText() const {
  QStringList lines, names;
  for (const Column& column : columns_) names << column.name;
  lines << names.join(QLatin1Char('\t'));
  for (int row = 0; row < rowCount(); ++row) {
    QStringList texts;
    for (const Cell& cell : shown(row).cells) texts << cell.text;
    lines << texts.join(QLatin1Char('\t'));
  }
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

}  // namespace saccade::ui
