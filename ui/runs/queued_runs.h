#pragma once
#include <QHash>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <vector>

#include "analysis/runs/run.h"
#include "ui/latest_job.h"

namespace saccade::ui {

/// A run that waits for a device of this machine.
struct QueuedRun {
  RunInfo info = {};  ///< what its config says; null config: it has begun before and is to go on
  QString directory = {}, device = {}, added = {};
  QString study = {};        ///< whose entry it is part of; empty: an entry of its own
  bool is_study = false;     ///< a study in the folder, of which no run is in the list
  qint64 entry = 0;          ///< its number in the queue
  int place = 0, count = 0;  ///< of the entry, from 1, among those of its device
  bool paused = false;       ///< the queue is
};

/// What is read at one time.
struct QueueNow {
  std::vector<QueuedRun> runs;      ///< in their order, device by device
  QHash<QString, QString> studies;  ///< names of those that folders of runs belong to, by folder
  QString problem = {};             ///< why queues could not be read, a line each
};

/// What waits for this machine and comes into `folder`; `folders`: those that its runs stand in. Reads files.
QueueNow read_queued(const QString& folder, const QStringList& folders);

/// The same, once a second while it is asked to look.
class QueuedRuns : public QObject {
  Q_OBJECT
 public:
  explicit QueuedRuns(QObject* parent = nullptr);
  void setFolders(const QString& folder, const QStringList& folders);
  void setLooking(bool on);
  void look();  ///< now
  const QueueNow& now() const { return now_; }

 Q_SIGNALS:
  void changed();

 private:
  void take(QueueNow now);

  QString folder_;
  QStringList folders_;
  QueueNow now_;
  LatestJob<QueueNow> job_;
  QTimer timer_;
};

}  // namespace saccade::ui
