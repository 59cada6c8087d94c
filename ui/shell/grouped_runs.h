#pragma once
#include <QAbstractListModel>
#include <QString>
#include <QStringList>

#include "ui/run_list.h"

namespace saccade::ui {

/// The runs panel's rows: runs that pass the filter, under a heading per state.
/// The filter is words that must all be found: in title, name, state, or as `setting:value` ("mixer:top1 seed:1").
class GroupedRuns : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role { HeadingRole = RunList::ProblemRole + 1 };  ///< true for headings; all other roles are RunList's

  explicit GroupedRuns(RunList* runs, QObject* parent = nullptr);

  void setFilter(const QString& filter);
  int row(const QString& directory) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  struct Row {
    QString heading;    ///< of a group, else empty
    QString directory;  ///< of a run
    bool operator==(const Row&) const = default;
  };
  void schedule();
  void rebuild();
  bool passes(const QModelIndex& run) const;
  QModelIndex source(const QModelIndex& index) const;

  RunList* runs_;
  QString filter_;
  QList<Row> rows_;
  bool scheduled_ = false;
};

}  // namespace saccade::ui
