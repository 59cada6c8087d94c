#include "ui/run_trash.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>

#include "analysis/runs/run_lock.h"
#include "analysis/runs/run_origin.h"

namespace saccade::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("RunTrash", text); }
QString trash_of(const QString& folder) { return folder + QStringLiteral("/.trash"); }

/// Folders of what was thrown away together, the oldest first: named by when.
QStringList loads(const QString& folder) { return QDir(trash_of(folder)).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name); }

}  // namespace

QStringList trash_runs(const QStringList& directories, QString* reason) {
  QStringList moved;
  const QString load = QDateTime::currentDateTimeUtc().toString(QStringLiteral("yyyyMMdd-HHmmss-zzz"));
  for (const QString& directory : directories) {
    const QFileInfo run(directory);
    const QString into = trash_of(run.path()) + QLatin1Char('/') + load;
    QString why;
    if (QFileInfo(run.path()).fileName() == QStringLiteral("branches"))
      why = tr("%1 is a branch of another run.").arg(run.fileName());
    else if (QFileInfo::exists(directory + QLatin1Char('/') + QLatin1String(kOriginFile)))
      why = tr("%1 is mirrored from a host, and would come again. Remove it there.").arg(run.fileName());
    else if (lock_holder(directory.toStdString()))
      why = tr("%1 is running. Stop it first.").arg(run.fileName());
    else if (!QDir().mkpath(into) || !QDir().rename(directory, into + QLatin1Char('/') + run.fileName()))
      why = tr("%1 cannot be moved to %2.").arg(directory, into);
    if (why.isEmpty())
      moved << directory;
    else if (reason->isEmpty())
      *reason = why;
  }
  return moved;
}

QStringList restore_runs(const QString& folder, QString* reason) {
  QStringList back;
  const QStringList all = loads(folder);
  if (all.isEmpty()) return *reason = tr("The trash is empty."), back;
  const QString load = trash_of(folder) + QLatin1Char('/') + all.last();
  for (const QString& name : QDir(load).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
    const QString directory = folder + QLatin1Char('/') + name;
    if (!QFileInfo::exists(directory) && QDir().rename(load + QLatin1Char('/') + name, directory))
      back << directory;
    else if (reason->isEmpty())
      *reason = tr("%1 stands there again already; the other one stays in %2.").arg(directory, load);
  }
  QDir().rmdir(load);  // stays where something is left in it
  return back;
}

int trashed_runs(const QString& folder) {
  int count = 0;
  for (const QString& load : loads(folder))
    count += static_cast<int>(QDir(trash_of(folder) + QLatin1Char('/') + load).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size());
  return count;
}

}  // namespace saccade::ui
