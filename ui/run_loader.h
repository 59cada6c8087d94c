#pragma once
#include <QDateTime>
#include <QHash>
#include <QList>
#include <QObject>
#include <QSet>
#include <QString>
#include <QStringList>
#include <QThreadPool>
#include <atomic>
#include <memory>

#include "ui/shown_runs.h"

namespace saccade::ui {

/// A directory as read by the loader: a run, or why it is none.
struct LoadedDirectory {
  QString directory;
  QDateTime stamp;  ///< of run.json when it was read
  SharedRun run;
  QString problem;
};

/// Reads runs in threads of its own; what it delivers is never changed again. Searches find outlines (RunDetail), for lists; curves are
/// read when asked for, and what follows a live run is a new run each time.
class RunLoader : public QObject {
  Q_OBJECT
 public:
  explicit RunLoader(QObject* parent = nullptr);
  ~RunLoader() override;

  /// Reads `folder` once. `known`: directories not to open again unless run.json has another stamp (damaged ones); `runs`: looked at again.
  /// Does nothing while a search of the same folder is under way.
  void search(const QString& folder, const QHash<QString, QDateTime>& known, const std::vector<SharedRun>& runs);
  /// What is new in these; does nothing while the last such look is under way.
  void follow(const std::vector<SharedRun>& runs);
  /// Reads the curves of directories, first the first; those under way already are passed over. `most_points`: see RunDetail.
  void read(const QStringList& directories, size_t most_points);
  void cancel();

 Q_SIGNALS:
  void found(int directories, bool studies);  ///< so many a search is going through; whether studies stand beside them
  void loaded(const QList<saccade::ui::LoadedDirectory>& directories);
  void searched(const QStringList& directories);  ///< all run directories there, newest first

 private:
  template <class F>
  void post(int generation, F deliver);
  void work(const QString& folder, const QHash<QString, QDateTime>& known, const std::vector<SharedRun>& runs, int generation);
  QList<LoadedDirectory> news_of(const std::vector<SharedRun>& runs, int generation) const;

  QThreadPool pool_;
  std::atomic<int> generation_{0};
  bool searching_ = false, following_ = false;
  QSet<QString> reading_;
};

}  // namespace saccade::ui
