#pragma once
#include <QDateTime>
#include <QHash>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QThreadPool>
#include <atomic>
#include <memory>

#include "analysis/runs/run.h"

namespace saccade::ui {

/// A directory as opened by the loader: a run, or why it is none.
struct LoadedDirectory {
  QString directory;
  QDateTime stamp;  ///< of run.json when it was read
  std::shared_ptr<Run> run;
  QString problem;
};

/// Searches a folder for run directories and opens new ones, in a thread of its own.
class RunLoader : public QObject {
  Q_OBJECT
 public:
  explicit RunLoader(QObject* parent = nullptr);
  ~RunLoader() override;

  /// Reads `folder` once. `known`: directories not to open again unless run.json has another stamp (damaged ones).
  /// Does nothing while a search of the same folder is under way.
  void search(const QString& folder, const QHash<QString, QDateTime>& known);
  void cancel();

 Q_SIGNALS:
  void opened(const saccade::ui::LoadedDirectory& directory);
  void searched(const QStringList& directories);  ///< all run directories there, newest first

 private:
  void work(const QString& folder, const QHash<QString, QDateTime>& known, int generation);

  QThreadPool pool_;
  std::atomic<int> generation_{0};
  bool busy_ = false;
};

}  // namespace saccade::ui
