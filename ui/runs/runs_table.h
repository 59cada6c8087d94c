#pragma once
#include <QAbstractTableModel>
#include <QString>

#include "ui/run_list.h"

namespace saccade::ui {

/// The list of runs as a table of numbers. SortRole gives what to sort by; the first column also answers RunList's roles.
class RunsTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    name,
    star,
    architecture,
    state,
    tags,
    note,
    progress,
    loss,
    ood,
    speed,
    seed,
    parameters,
    steps,
    started,
    duration,
    folder,
    column_count
  };
  enum Role { SortRole = RunList::ProblemRole + 100 };

  explicit RunsTable(RunList* runs, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  /// Star (Qt::CheckStateRole or a bool), tags ("a, b") and note; written beside the run.
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

 Q_SIGNALS:
  void failed(const QString& reason);

 private:
  QVariant shown(const Run& run, int column) const;
  QVariant sorted(const Run& run, int column) const;

  RunList* runs_;
};

}  // namespace saccade::ui
