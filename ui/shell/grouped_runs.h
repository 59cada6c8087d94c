#pragma once
#include <QAbstractListModel>
#include <QString>
#include <QStringList>
#include <vector>

#include "ui/run_list.h"

namespace saccade::ui {

/// The runs panel's rows: what passes the filter of the selection, under a heading per state. Seeds of one setting are one row, and where
/// that is opened, rows of their own below it. Cooldown branches stand below their run where that is opened; a branch at work has its run
/// stand among those that are.
class GroupedRuns : public QAbstractListModel {
  Q_OBJECT
 public:
  /// HeadingRole: true for headings. SeedsRole: number of seeds, 0 for a single run or a seed. FoldsRole: it can be opened; OpenedRole: it
  /// is. ChildRole: a seed below its group, or a branch below its run. KeyRole: of the group. MembersRole: directories of all runs of the
  /// row, their branches apart. All other roles are RunList's; DirectoryRole of a group is its first run's.
  enum Role { HeadingRole = RunList::ProblemRole + 1, SeedsRole, FoldsRole, OpenedRole, ChildRole, KeyRole, MembersRole };

  explicit GroupedRuns(RunList* runs, QObject* parent = nullptr);

  /// Of a run, or of its group where that is closed; −1: none, also of a branch whose run is closed.
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
    QString key, title;   ///< of a group, or of a run with branches; title also of a branch
    bool opened = false, child = false;
    int branches = 0;
    bool group() const { return members.size() > 1; }
    bool folds() const { return group() || branches > 0; }
    bool operator==(const Row&) const = default;
  };
  /// Another one when a row may show something else. Runs never change: one that was read on is another object.
  struct Mark {
    std::vector<SharedRun> runs;
    QString problem;
    size_t looks = 0;
    bool operator==(const Mark&) const = default;
  };
  void schedule();
  void rebuild();
  void tellChanges(const QList<Mark>& before);
  Mark mark(const Row& row) const;
  struct Family;
  QList<Row> rowsNow() const;
  std::vector<Family> families() const;
  void append(const Family& family, QList<Row>& rows) const;
  QVariant runData(const Row& row, int role) const;
  QVariant groupData(const Row& row, int role) const;
  RunState groupState(const Row& row) const;
  std::vector<RunState> groupStates(const Row& row) const;
  QString doneOf(const Row& row) const;
  QStringList groupNumbers(const Row& row) const;
  QModelIndex source(const QString& directory) const;
  int shownMembers(const Row& row) const;

  RunList* runs_;
  QList<Row> rows_;
  QList<Mark> marks_;  ///< of the rows, as the views know them
  bool scheduled_ = false;
};

}  // namespace saccade::ui
