#pragma once
#include <QAbstractListModel>
#include <QColor>
#include <QString>
#include <QStringList>
#include <memory>
#include <vector>

#include "ui/run_selection.h"

namespace saccade::ui {

/// Directory of the run that a cooldown branch ("RUN/branches/step-N") belongs to; empty of what is none.
QString trunk_in(const QString& directory);

/// How far a folder of runs has been read.
struct ReadingProgress {
  int read = 0, all = 0;  ///< runs: of the folder as long as RunList::loading(), then those that are shown, with their curves
  bool halted = false;    ///< by RunList::halt()
  bool done() const { return read == all && !halted; }
};

/// The runs of one folder, followed from their journals, and the one selection among them (RunSelection). All reading is done in worker
/// threads: first outlines of all, then the curves of those that are shown. A timer collects changes, 5 a second at most.
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
    DamageRole,
    ProblemRole
  };
  // Text roles are QString, SeedRole qint64, StateRole int (RunState), ProgressRole double 0 … 1, ColourRole QColor as drawn on
  // paper, DashRole int (Dash), MarkerRole int (Marker). TitleRole tells settings apart as figures do ("Avey (run-b)").
  // DamageRole is whether records of its journal are lost. ProblemRole is one line, not empty when the directory is damaged: run() is
  // null then, and it can be neither shown nor hidden.

  explicit RunList(const QString& folder, QObject* parent = nullptr);
  ~RunList() override;

  QString folder() const;
  void setFolder(const QString& folder);  ///< of a study: its runs

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;  ///< VisibleRole / Qt::CheckStateRole
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  bool loading() const;        ///< until the folder has been read for the first time
  bool besideStudies() const;  ///< the folder holds studies, whose runs are none of the list's
  int unread() const;          ///< runs that are shown but whose curves are still being read
  ReadingProgress progress() const;
  /// Reads no more runs and curves than have been; runs that are at work are followed all the same. Until readOn(); curves also as soon as
  /// others are shown.
  void halt();
  void readOn();

  /// The selection. Its runs need not be in the list (yet).
  const RunSelection& selection() const;
  void setFilter(const QString& text);
  QStringList hidden() const;
  void setHidden(const QStringList& directories);
  void setOpened(const QString& key, bool opened);  ///< of a group
  void setBaseline(const QString& directory);
  void setColours(const QHash<QString, Colour>& colours);
  /// Of the groups that the runs are in; invalid: those of their architectures again.
  void setColour(const QStringList& directories, const QColor& colour);
  /// Of those that pass the filter; cooldown branches come and go with their runs.
  void showOnly(const QStringList& directories);
  void setShown(const QStringList& directories, bool shown);  ///< likewise
  /// Writes them beside the run, where every window finds them. Throws DataError.
  void setNotes(const QString& directory, const RunNotes& notes);
  /// What every page shows; of the last changed().
  std::shared_ptr<const ShownRuns> shown() const;

  /// Runs that are shown and read, in list order.
  std::vector<const Run*> visibleRuns() const;
  /// All that can be read.
  std::vector<const Run*> runs() const;
  /// "Top-1 Chunk exact, chunk 32, seed 2"
  QString label(const Run& run) const;
  /// Null when not in the list. Runs live until the changed() after they left it: ask again on changed().
  const Run* run(const QString& directory) const;
  SharedRun shared(const QString& directory) const;  ///< likewise, to be kept
  int row(const QString& directory) const;

 public Q_SLOTS:
  void refresh();  ///< looks for new directories and polls now

 Q_SIGNALS:
  void changed();           ///< new data in some run, or visibility changed; at most 5 a second
  void loaded();            ///< loading() turned false
  void selectionChanged();  ///< filter, visibility, opened groups or baseline, at once; changed() follows

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::ui
