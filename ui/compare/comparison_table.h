#pragma once
#include <QAbstractTableModel>
#include <QString>
#include <vector>

#include "analysis/comparison/comparison.h"

namespace saccade::ui {

class RunList;

/// A comparison as rows and columns of text: one table for where the runs ended, one for equal pre-training loss.
class ComparisonTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum class Kind { at_equal_loss, at_end };
  /// `runs`: whose look a row's first cell has, by RunList's roles; may be null.
  explicit ComparisonTable(Kind kind, const RunList* runs = nullptr, QObject* parent = nullptr);

  void setComparison(const Comparison& comparison);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  /// Tab-separated with a header line, for a spreadsheet.
  QString asText() const;

 private:
  struct Column {
    QString name, help;
  };
  Kind kind_;
  const RunList* runs_;
  std::vector<Column> columns_;
  std::vector<std::vector<QString>> cells_;
  std::vector<QString> directories_;
  int best_ = -1;  ///< row of the least OOD loss
};

}  // namespace saccade::ui
