#include "ui/run_loader.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>

namespace saccade::ui {
namespace {

QDateTime stamp_of(const QString& directory) { return QFileInfo(directory + QStringLiteral("/run.json")).lastModified(); }

bool looks_like_run(const QString& directory) {
  return QFileInfo::exists(directory + QStringLiteral("/run.json")) || QFileInfo::exists(directory + QStringLiteral("/journal.jsonl"));
}

/// Run directories one level deep with their cooldown branches, or the folder itself; newest first by the time the journal was begun.
QStringList run_directories(const QString& folder) {
  if (looks_like_run(folder)) return {QDir(folder).absolutePath()};
  QFileInfoList found;
  for (const QFileInfo& entry : QDir(folder).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot))
    if (looks_like_run(entry.absoluteFilePath())) {
      found.append(entry);
      for (const QFileInfo& branch :
           QDir(entry.absoluteFilePath() + QStringLiteral("/branches")).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot))
        if (looks_like_run(branch.absoluteFilePath())) found.append(branch);
    }
  const auto born = [](const QFileInfo& entry) {
    const QFileInfo journal(entry.absoluteFilePath() + QStringLiteral("/journal.jsonl"));
    const QDateTime time = journal.birthTime();
    return time.isValid() ? time : entry.lastModified();
  };
  std::stable_sort(found.begin(), found.end(), [&](const QFileInfo& a, const QFileInfo& b) { return born(a) > born(b); });
  QStringList directories;
  for (const QFileInfo& entry : found) directories << entry.absoluteFilePath();
  return directories;
}

LoadedDirectory open_run(const QString& directory) {
  LoadedDirectory loaded{directory, stamp_of(directory), nullptr, {}};
  try {
    loaded.run = std::make_shared<Run>(std::filesystem::path(directory.toStdString()));
    loaded.run->poll();
  } catch (const std::exception& error) {
    loaded.run = nullptr;
    loaded.problem = QString::fromUtf8(error.what());
  }
  return loaded;
}

}  // namespace

RunLoader::RunLoader(QObject* parent) : QObject(parent) { pool_.setMaxThreadCount(1); }

RunLoader::~RunLoader() {
  cancel();
  pool_.waitForDone();
}

void RunLoader::cancel() {
  ++generation_;
  busy_ = false;
}

void RunLoader::search(const QString& folder, const QHash<QString, QDateTime>& known) {
  if (busy_) return;
  busy_ = true;
  pool_.start([this, folder, known, generation = generation_.load()] { work(folder, known, generation); });
}

void RunLoader::work(const QString& folder, const QHash<QString, QDateTime>& known, int generation) {
  const auto post = [this, generation](auto deliver) {
    QMetaObject::invokeMethod(
        this,
        [this, generation, deliver] {
          if (generation == generation_) deliver();
        },
        Qt::QueuedConnection);
  };
  const QStringList directories = run_directories(folder);
  for (const QString& directory : directories) {
    if (generation != generation_) return;
    const auto seen = known.constFind(directory);
    if (seen != known.constEnd() && (!seen->isValid() || *seen == stamp_of(directory))) continue;
    post([this, loaded = open_run(directory)] { Q_EMIT opened(loaded); });
  }
  post([this, directories] {
    busy_ = false;
    Q_EMIT searched(directories);
  });
}

}  // namespace saccade::ui
