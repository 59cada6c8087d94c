#pragma once
#include <QObject>
#include <QString>
#include <QStringList>

#include "analysis/figures/figure.h"
#include "ui/offer.h"
#include "ui/place.h"

namespace saccade::ui {

class RunList;

/// What is selected, shared by all pages: they read it, write it, and forget each other.
class Session : public QObject {
  Q_OBJECT
 public:
  explicit Session(const QString& runsFolder, QObject* parent = nullptr);

  RunList* runs() const { return runs_; }  ///< the runs panel's model; owns the followed runs

  Place& place() { return place_; }  ///< what the next window begins with
  /// Takes up what `settings` remember, and keeps it there from now on. Before pages are made.
  void remember(QSettings* settings);

  /// Runs marked in the list or the table, by directory: what "these" are.
  QStringList chosen() const { return chosen_; }
  void setChosen(const QStringList& directories);

  QString currentRun() const { return currentRun_; }   ///< directory; empty: none
  qint64 captureStep() const { return captureStep_; }  ///< −1: the newest
  bool stepLinked() const { return stepLinked_; }      ///< Live marks the capture step, and moving the mark moves it
  int sample() const { return sample_; }
  int layer() const { return layer_; }
  int head() const { return head_; }
  int query() const { return query_; }
  XAxis xAxis() const { return xAxis_; }

 public Q_SLOTS:
  void setCurrentRun(const QString& directory);  ///< step, layer, head and query stay: that is what one compares runs at
  void setCaptureStep(qint64 step);
  void setStepLinked(bool linked);
  void setSample(int sample);
  void setHead(int layer, int head);
  void setQuery(int query);
  void setXAxis(XAxis axis);
  /// Starts `saccade train` detached on a resolved config; it belongs to no window.
  /// `place`: a host or a cluster (WhereChoice) that it goes to instead.
  void startRun(const QByteArray& configJson, const QString& place = {});
  /// Starts `saccade fork` detached, likewise: from the parent's checkpoint of `step`, with settings as assignments. `configJson`: its
  /// resolved config, which names it.
  void startFork(const QString& parent, qint64 step, const QStringList& assignments, const QByteArray& configJson);
  void resumeRun(const QString& directory);  ///< starts `saccade resume` detached
  void stopRun(const QString& directory);    ///< the run saves a checkpoint, then stops
  void showPage(const QString& id);
  void tellSaved(const QString& file);          ///< that it was written, and offers to show where
  void openFolder(const QString& folder);       ///< of runs, in place of the one that is open
  void duplicateRun(const QString& directory);  ///< on the page that configures runs
  void forkRun(const QString& directory);       ///< likewise, from one of its checkpoints
  /// Opens items that a task asked a run, in Inspect, with the checkpoint that was scored. `items`: a JSON object with run, task, step, the
  /// items (number, words) to choose from, and which of them comes first (at).
  void inspectItems(const QString& directory, qint64 step, const QByteArray& items);
  void showSetting(const QString& pointer);   ///< on the page that configures runs: "/training/steps"
  void startFromPreset(const QString& path);  ///< likewise

 Q_SIGNALS:
  void settingRequested(const QString& pointer);
  void presetRequested(const QString& path);
  void duplicateRequested(const QString& directory);  ///< its configuration is to be written anew
  void forkRequested(const QString& directory);
  void itemsRequested(const QByteArray& items);
  void chosenChanged();
  void currentRunChanged(const QString& directory);
  void captureStepChanged(qint64 step);
  void stepLinkChanged(bool linked);
  void sampleChanged(int sample);
  void headChanged(int layer, int head);
  void queryChanged(int query);
  void xAxisChanged(XAxis axis);
  void runStarted(const QString& directory);
  void runBegan(const QString& directory);                            ///< it stands on the disk
  void startFailed(const QString& directory, const QString& reason);  ///< it never will; failed() says so, too
  void runEnded(const QString& directory);  ///< what runStarted() told of has gone: its process, or the call for another machine
  void pageRequested(const QString& id);
  void folderRequested(const QString& folder);
  void failed(const QString& message);                       ///< shown in the window's message bar
  void noted(const QString& message);                        ///< likewise, where nothing failed
  void offered(const QString& message, const Offer& offer);  ///< likewise, with a button for what comes next

 private:
  void chooseRun();
  void startThere(const QString& directory, const QStringList& arguments, const QString& place);
  void launch(const QString& directory, const QStringList& arguments, const QString& log);

  RunList* runs_;
  Place place_;
  QStringList chosen_;
  QString currentRun_;
  QString started_;  ///< becomes the current run once it is in the list
  qint64 captureStep_ = -1;
  bool stepLinked_ = true;
  int sample_ = 0, layer_ = 0, head_ = 0, query_ = -1;
  XAxis xAxis_ = XAxis::tokens;
};

}  // namespace saccade::ui
