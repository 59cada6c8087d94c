#pragma once
#include <QAbstractTableModel>
#include <QString>
#include <optional>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "analysis/figures/score_comparison.h"

namespace saccade::ui {

class RunList;

/// A comparison as rows and columns: one table for where the runs ended, one for equal pre-training loss, one for scores on tasks. Rows
/// stand as compared, or by a column, unknown numbers last.
class ComparisonTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum class Kind { at_equal_loss, at_end, scores };
  /// `runs`: whose look a row's first cell has, by RunList's roles; may be null.
  explicit ComparisonTable(Kind kind, const RunList* runs = nullptr, QObject* parent = nullptr);

  /// `entropies`: of every row, for the table of ends: normalised, mean of the layers and seeds at the end; NaN where not known.
  void setComparison(const Comparison& comparison, const std::vector<double>& entropies = {});

  /// A row for each task and thing drawn that was scored on it. `directories`: of the first seed of each thing, as they stand in the tasks'
  /// rows.
  void setScores(const ScoreComparison& scores, const std::vector<QString>& directories);

  QString directory(int row) const { return shown(row).directory; }  ///< of the row's first seed
  std::optional<int64_t> seedsToTellApart(int row) const;            ///< of the table at equal losses: seeds more; nothing: not known
  std::vector<int> moreColumns() const { return more_columns_; }     ///< that are shown where there is room

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;  ///< column −1: as compared

  /// As shown, tab-separated with a header line, for a spreadsheet.
  QString asText() const;

 private:
  struct Column {
    QString name, help;
  };
  static std::vector<Column> columnsAtEqualLoss();
  struct Cell {
    QString text;
    double value;      ///< NaN: unknown, or the architecture's name
    QString tip = {};  ///< empty: the text itself
  };
  struct Row {
    std::vector<Cell> cells;
    QString directory;
    std::optional<int64_t> more_seeds = {};
    bool best = false;  ///< of the least OOD loss, or the highest score of its task, where that can be told
  };
  static Cell to_tell_apart(const std::optional<PairedTest>& test);
  static Cell number(const std::optional<double>& value);
  static Cell half_95_of(const std::optional<PairedTest>& test);
  static std::vector<Column> columnsOfSeeds(), columnsOfDifference();
  static std::vector<Cell> cellsOfSeeds(const ComparedLoss&loss), cellsOfDifference(const ComparedLoss&loss, bool first);
  /// What a table of ends has beside losses.
  struct EndColumns {
    bool over_seeds, costs, paired;  ///< intervals and tests; gap, entropy and what runs took; differences on the same text
  };
  void setEqualLoss(const Comparison& comparison);
  void setEnds(const Comparison& comparison, const std::vector<double>& entropies);
  static std::vector<Cell> cellsOfScore(const ScoreComparison::Row& row, const ScoreComparison::Row& first, bool best);
  void addColumnsOfEnds(const Comparison& comparison, const EndColumns& shown);
  void addMoreColumn(Column column);
  void addCells(size_t row, const std::vector<Cell>& cells);
  void arrange();
  const Row& shown(int row) const { return rows_[shown_[static_cast<size_t>(row)]]; }

  Kind kind_;
  const RunList* runs_;
  std::vector<Column> columns_;
  std::vector<int> more_columns_;
  std::vector<Row> rows_;      ///< as compared
  std::vector<size_t> shown_;  ///< which of them stands where
  int best_column_ = 1;        ///< what is bold of the best
  int sorted_by_ = -1;
  Qt::SortOrder order_ = Qt::AscendingOrder;
};

}  // namespace saccade::ui
