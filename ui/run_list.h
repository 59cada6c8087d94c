#pragma once
#include <QAbstractListModel>
#include <QColor>
#include <QString>
#include <QStringList>
#include <memory>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade::ui {

/// The runs of one folder, followed from their journals (polled; a timer collects changes, 5 a second at most). Directories are
/// searched and opened in a worker thread; here only what was appended since is read.
class RunList : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role {
    DirectoryRole = Qt::UserRole + 1,
    TitleRole,
    SeedRole,
    StateRole,
    ProgressRole,
    ColourRole,
    VisibleRole,
    SummaryRole,
    DashRole,
    MarkerRole,
    ProblemRole
  };
  // Text roles are QString, SeedRole qint64, StateRole int (RunState), ProgressRole double 0 … 1, ColourRole QColor as drawn on
  // paper, DashRole int (Dash), MarkerRole int (Marker). TitleRole tells settings apart as figures do ("Avey (run-b)").
  // ProblemRole is one line, not empty when the directory is damaged: run() is null then.

  explicit RunList(const QString& folder, QObject* parent = nullptr);
  ~RunList() override;

  QString folder() const;
  void setFolder(const QString& folder);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;  ///< VisibleRole / Qt::CheckStateRole
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  bool loading() const;  ///< until the folder has been read for the first time
  /// Directories switched invisible, also of runs not (yet) in the list.
  QStringList hidden() const;
  void setHidden(const QStringList& directories);

  /// Runs switched visible, in list order: what charts draw.
  std::vector<const Run*> visibleRuns() const;
  /// All that can be read: among these the looks of runs differ (run_looks()).
  std::vector<const Run*> runs() const;
  /// "Top-1 Chunk exact, seed 2"
  QString label(const Run& run) const;
  /// Null when not in the list. Runs live until the changed() after they left it: ask again on changed().
  const Run* run(const QString& directory) const;
  int row(const QString& directory) const;

 public Q_SLOTS:
  void refresh();  ///< looks for new directories and polls now

 Q_SIGNALS:
  void changed();  ///< new data in some run, or visibility changed; at most 5 a second
  void loaded();   ///< loading() turned false

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::ui
