#include <cmath>

#include "ui/compare/comparison_table.h"

namespace saccade::ui {

namespace {

const QString kNone = QStringLiteral("–");

QString per_cent(double share) { return QString::number(100 * share, 'f', 1); }

QString signed_per_cent(double share) {
  const QString digits = per_cent(std::abs(share));
  if (digits == QStringLiteral("0.0")) return digits;  // neither less nor more, as far as is shown
  return (share < 0 ? QStringLiteral("−") : QStringLiteral("+")) + digits;
}

QString p_text(double p) { return p < 0.001 ? QStringLiteral("< 0.001") : QString::number(p, 'f', 3); }

/// What the test found, in words for those who do not know it.
QString words_of(const ScoreTest& test) {
  if (test.name.empty())
    return ComparisonTable::tr(
        "No test: a paired test needs two or more seeds that both rows have, or the items that both answered, one by one");
  const QString over = QString::fromStdString(test.over);
  const QString how = test.name == "McNemar"
                          ? ComparisonTable::tr(
                                "McNemar's exact test of the %1 that both answered: of those that only one of the two had "
                                "right, would a fair coin share them out as unevenly? It says nothing of other seeds.")
                          : ComparisonTable::tr("Paired t test over %1: each is compared with the same one of the first row.");
  QString text = how.arg(over);
  if (const std::optional<double>& p = test.test.p_holm)
    text += QLatin1Char('\n') + ComparisonTable::tr(
                                    "p after Holm's correction for the other rows: %1. It is how often chance alone would "
                                    "bring a difference at least as large, if there were none; below 0.05 counts as told "
                                    "apart.")
                                    .arg(p_text(*p));
  return text;
}

}  // namespace

std::vector<ComparisonTable::Cell> ComparisonTable::cellsOfScore(const ScoreComparison::Row& row, const ScoreComparison::Row& first,
                                                                 bool best) {
  const PairedTest& test = row.test.test;
  const bool is_tested = &row != &first && first.score;
  QString score = per_cent(*row.score) + (row.is_partial ? tr(" (part)") : QString()) + (best ? QStringLiteral(" *") : QString());
  QString tip = row.is_partial ? tr("On some of the task's items alone") : QString();
  if (best) tip += (tip.isEmpty() ? QString() : QStringLiteral("\n")) + tr("Above every other row of this task with p < 0.05 after Holm");
  const double difference = is_tested ? test.difference.mean : NAN;
  return {{std::move(score), *row.score, std::move(tip)},
          {std::isfinite(row.error) ? per_cent(row.error) : kNone, row.error},
          {is_tested ? signed_per_cent(difference) : kNone, difference},
          {test.p_holm ? p_text(*test.p_holm) : kNone, test.p_holm.value_or(NAN), is_tested ? words_of(row.test) : QString()},
          {row.test.name.empty() ? kNone : QString::fromStdString(row.test.name + ", " + row.test.over), NAN,
           is_tested ? words_of(row.test) : QString()},
          {test.difference.half_95 ? per_cent(*test.difference.half_95) : kNone, test.difference.half_95.value_or(NAN)}};
}

void ComparisonTable::setScores(const ScoreComparison& scores, const std::vector<QString>& directories) {
  beginResetModel();
  rows_.clear(), more_columns_.clear();
  const bool several = scores.tasks.size() > 1;
  columns_ = {{tr("architecture"), {}}};
  if (several) columns_.push_back({tr("task"), tr("As saccade evaluate --task names it")});
  best_column_ = static_cast<int>(columns_.size());
  for (Column& column : std::vector<Column>{
           {tr("score (%)"), tr("Mean of seeds. Bold with *: above every other row of its task with p < 0.05 in paired tests, after Holm's "
                                "correction; without a mark no row is told to be the best")},
           {tr("± error"), tr("Standard error over seeds where there are several, else over items")},
           {tr("difference"), tr("Score minus that of the baseline, else of the run selected in the list, else of the first, in points of "
                                 "per cent")},
           {tr("p"), tr("Of the test beside, corrected for the task's other rows (Holm): how often chance alone would bring a difference "
                        "at least as large. Below 0.05 counts as told apart")},
           {tr("test"), tr("Paired t test over the seeds that the first row has too, else McNemar's exact test over the items that both "
                           "answered (a paired t test where items can be right in part). A test over items says nothing of other seeds")}})
    columns_.push_back(std::move(column));
  addMoreColumn({tr("± 95 % of it"), tr("Half of the 95 % interval of the mean difference of the seeds that the first row has too")});
  double number = 0;
  for (const ScoreComparison::OfTask& task : scores.tasks) {
    ++number;
    for (size_t i = 0; i < task.rows.size(); ++i) {
      const ScoreComparison::Row& row = task.rows[i];
      if (!row.score) continue;
      rows_.push_back({{{QString::fromStdString(row.title), NAN}}, i < directories.size() ? directories[i] : QString()});
      rows_.back().best = task.best == i;
      if (several) addCells(rows_.size() - 1, {{QString::fromStdString(task.task), number}});
      addCells(rows_.size() - 1, cellsOfScore(row, task.rows.front(), task.best == i));
    }
  }
  arrange();
  endResetModel();
}

}  // namespace saccade::ui
