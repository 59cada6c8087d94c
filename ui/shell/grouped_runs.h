#pragma once
#include <QAbstractListModel>
#include <QString>
#include <QStringList>
#include <optional>

#include "ui/run_list.h"

namespace saccade::ui {

/// The runs panel's rows: what passes the filter of the selection, under a heading per state. Seeds of one setting are one row, and where
/// that is opened, rows of their own below it.
class GroupedRuns : public QAbstractListModel {
  Q_OBJECT
 public:
  /// HeadingRole: true for headings. SeedsRole: number of seeds, 0 for a single run or a seed. OpenedRole, of a group. ChildRole: a seed
  /// below its group. KeyRole: of the group. MembersRole: directories of all runs of the row. All other roles are RunList's; DirectoryRole
  /// of a group is its first run's.
  enum Role { HeadingRole = RunList::ProblemRole + 1, SeedsRole, OpenedRole, ChildRole, KeyRole, MembersRole };

  explicit GroupedRuns(RunList* runs, QObject* parent = nullptr);

  /// Of a run, or of its group where that is closed; −1: none.
  int row(const QString& directory) const;
  void setOpened(const QModelIndex& group, bool opened);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 private:
  struct Row {
    QString heading;      ///< of a state, else empty
    QStringList members;  ///< directories
    QString key, title;   ///< of a group
    bool opened = false, child = false;
    bool group() const { return members.size() > 1; }
    bool operator==(const Row&) const = default;
  };
  void schedule();
  void rebuild();
  std::optional<size_t> mark(const Row& row) const;
  QList<Row> rowsNow() const;
  QVariant groupData(const Row& row, int role) const;
  QModelIndex source(const QString& directory) const;
  int shownMembers(const Row& row) const;

  RunList* runs_;
  QList<Row> rows_;
  QList<std::optional<size_t>> marks_;  ///< of the rows, as the views know them
  bool scheduled_ = false;
};

}  // namespace saccade::ui
