#pragma once
#include <QAbstractTableModel>
#include <QString>

#include "ui/run_list.h"

namespace saccade::ui {

/// The list of runs as a table of numbers. SortRole gives what to sort by; the first column also answers RunList's roles.
class RunsTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { name, architecture, state, progress, loss, ood, speed, seed, parameters, steps, started, duration, folder, column_count };
  enum Role { SortRole = RunList::ProblemRole + 100 };

  explicit RunsTable(RunList* runs, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QVariant shown(const Run& run, int column) const;
  QVariant sorted(const Run& run, int column) const;

  RunList* runs_;
};

}  // namespace saccade::ui
