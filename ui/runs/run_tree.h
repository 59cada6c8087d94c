#pragma once
#include <QAbstractItemModel>
#include <QHash>
#include <QString>
#include <memory>
#include <vector>

#include "analysis/comparison/run_settings.h"
#include "ui/runs/runs_table.h"

namespace saccade::ui {

class QueuedRuns;
struct QueuedRun;
struct TreeRow;

/// The rows of the page Runs, in RunsTable's columns: runs that pass the window's filter, each with its cooldown branches below it, and
/// what waits in a queue; gathered by a setting, under rows that head them, or one after the other. Sorted inside groups; groups follow
/// each other by their values. Rows that stay what they are keep their indexes, so that views keep what is marked and folded.
class RunTree : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum class Kind { group, run, branch, queued };
  /// KindRole: int (Kind). KeyRole: QString, the same in every session. MembersRole: QStringList of the directories of all runs that the
  /// row stands for, a run's branches apart. All others as RunsTable; of groups and what is queued DirectoryRole is empty.
  enum Role { KindRole = RunsTable::SortRole + 1, KeyRole, MembersRole };

  RunTree(RunList* runs, QueuedRuns* queued, QObject* parent = nullptr);
  ~RunTree() override;

  /// RunSetting's key; empty: one after the other.
  void setGrouping(const QString& key);
  QString grouping() const { return grouping_; }
  /// Of a run's first row; invalid where it has none.
  QModelIndex indexOf(const QString& directory) const;
  const QueuedRun* queued(const QModelIndex& index) const;  ///< null of other rows; until the next change
  bool deep() const;                                        ///< some row has others below it
  /// What is known of all runs that there are, to find out in what they differ. The runs live as long as `kept`.
  std::vector<RunFacts> facts(std::vector<SharedRun>& kept) const;

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& index) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

 Q_SIGNALS:
  void failed(const QString& reason);
  void arranged();  ///< rows came, went or changed their places

 private:
  struct Wanted;
  struct Told;
  void schedule();
  void rebuild();
  std::vector<Wanted> wantedRows() const;
  std::vector<Wanted> listedRuns() const;
  std::vector<Wanted> gathered(std::vector<Wanted> rows) const;
  QSet<QString> passing() const;
  RunFacts factsOf(const Run& run, const QString& directory) const;
  void keepOnly(TreeRow& parent, const std::vector<Wanted>& wanted);
  void add(TreeRow& parent, std::vector<Wanted> wanted);
  std::unique_ptr<TreeRow> made(Wanted wanted, TreeRow* parent);
  void forget(const TreeRow& row);
  bool before(const TreeRow& a, const TreeRow& b) const;
  void takeSortKeys(TreeRow& row);
  bool inOrder(const TreeRow& row) const;
  void putInOrder(TreeRow& row);
  void reorder();
  void changed(int first, int last);
  QModelIndex indexAt(const TreeRow* row, int column = 0) const;
  const TreeRow* at(const QModelIndex& index) const;
  QVariant groupData(const TreeRow& row, int column, int role) const;
  QVariant queuedData(const TreeRow& row, int column, int role) const;
  QVariant runData(const TreeRow& row, int column, int role) const;
  const Told& told(const TreeRow& row) const;

  RunList* runs_;
  QueuedRuns* queued_;
  RunsTable* table_;
  QString grouping_;
  std::unique_ptr<TreeRow> root_;
  QMultiHash<QString, TreeRow*> of_run_;  ///< by directory
  QHash<QString, int> waits_;             ///< index of QueuedRuns, by directory
  int sorted_by_ = -1;
  Qt::SortOrder order_ = Qt::AscendingOrder;
  bool scheduled_ = false;
};

}  // namespace saccade::ui
