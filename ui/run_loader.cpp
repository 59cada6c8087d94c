#include "ui/run_loader.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QThread>
#include <algorithm>

#include "analysis/runs/run_origin.h"
#include "analysis/studies/study_folder.h"
#include "ui/threads/hand_over.h"
#include "ui/threads/step_back.h"

namespace saccade::ui {
namespace {

constexpr int kSearch = 2, kFollow = 1, kRead = 0;  // who goes first
constexpr qint64 kBatchMs = 25;                     // as often as that new directories are told

QDateTime stamp_of(const QString& directory) { return QFileInfo(directory + QStringLiteral("/run.json")).lastModified(); }

bool looks_like_run(const QString& directory) {
  return QFileInfo::exists(directory + QStringLiteral("/run.json")) || QFileInfo::exists(directory + QStringLiteral("/journal.jsonl"));
}

struct InFolder {
  QStringList runs;      ///< newest first by the time the journal was begun
  bool studies = false;  ///< there are some
};

/// Run directories one level deep with their cooldown branches, those mirrored from hosts, or the folder itself.
InFolder run_directories(const QString& folder) {
  if (looks_like_run(folder)) return {{QDir(folder).absolutePath()}};
  InFolder all;
  std::vector<std::pair<QDateTime, QString>> found;
  const auto add = [&](const QFileInfo& entry) {
    const QDateTime begun = QFileInfo(entry.absoluteFilePath() + QStringLiteral("/journal.jsonl")).birthTime();
    found.emplace_back(begun.isValid() ? begun : entry.lastModified(), entry.absoluteFilePath());
  };
  const auto look_inside = [&](const QString& parent, const auto& inner) -> void {
    for (const QFileInfo& entry : QDir(parent).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot)) {
      if (parent == folder && QFileInfo::exists(entry.absoluteFilePath() + QLatin1Char('/') + QLatin1String(kMirrorFile)))
        inner(entry.absoluteFilePath(), inner);
      if (!looks_like_run(entry.absoluteFilePath())) {
        all.studies = all.studies || holds_study(entry.absoluteFilePath().toStdString());
        continue;
      }
      add(entry);
      const QDir branches(entry.absoluteFilePath() + QStringLiteral("/branches"));
      for (const QFileInfo& branch : branches.entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot))
        if (looks_like_run(branch.absoluteFilePath())) add(branch);
    }
  };
  look_inside(folder, look_inside);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [begun, directory] : found) all.runs << directory;
  return all;
}

constexpr double kPatience = 60;  // seconds in which what another machine wrote, or a copy brings, arrives

LoadedDirectory open_run(const QString& directory, const RunDetail& detail) {
  LoadedDirectory loaded{directory, stamp_of(directory), nullptr, {}};
  try {
    loaded.run = std::make_shared<const Run>(std::filesystem::path(directory.toStdString()), detail);
  } catch (const std::exception& error) {
    loaded.problem = QString::fromUtf8(error.what());
  }
  return loaded;
}

/// The run as it is now, beside the one that others may be looking at.
LoadedDirectory read_on(const Run& before) {
  const QString directory = QString::fromStdString(before.info().directory.string());
  LoadedDirectory loaded{directory, stamp_of(directory), nullptr, {}};
  try {
    auto next = std::make_shared<Run>(before);
    next->poll();
    loaded.run = std::move(next);
  } catch (const std::exception& error) {
    loaded.problem = QString::fromUtf8(error.what());
  }
  return loaded;
}

}  // namespace

RunLoader::RunLoader(QObject* parent) : QObject(parent) { pool_.setMaxThreadCount(std::clamp(QThread::idealThreadCount() - 1, 1, 4)); }

RunLoader::~RunLoader() {
  cancel();
  wait_for(pool_);
}

void RunLoader::cancel() {
  ++generation_;
  pool_.clear();
  searching_ = following_ = false;
  reading_.clear();
}

template <class F>
void RunLoader::post(int generation, F deliver) {
  hand_over(this, [this, generation, deliver] {
    if (generation == generation_) deliver();
  });
}

void RunLoader::search(const QString& folder, const QHash<QString, QDateTime>& known, const std::vector<SharedRun>& runs) {
  if (searching_) return;
  searching_ = true;
  start_in(
      pool_,
      [this, folder, known, runs, generation = generation_.load()] {
        step_back();
        work(folder, known, runs, generation);
      },
      kSearch);
}

void RunLoader::follow(const std::vector<SharedRun>& runs) {
  if (following_ || runs.empty()) return;
  following_ = true;
  start_in(
      pool_,
      [this, runs, generation = generation_.load()] {
        step_back();
        const QList<LoadedDirectory> news = news_of(runs, generation);
        post(generation, [this, news] {
          following_ = false;
          if (!news.isEmpty()) Q_EMIT loaded(news);
        });
      },
      kFollow);
}

void RunLoader::read(const QStringList& directories, size_t most_points) {
  for (const QString& directory : directories) {
    if (reading_.contains(directory)) continue;
    reading_.insert(directory);
    start_in(
        pool_,
        [this, directory, most_points, generation = generation_.load()] {
          if (generation != generation_) return;
          step_back();
          const LoadedDirectory run = open_run(directory, {.most_points = most_points, .patience = kPatience});
          post(generation, [this, run] {
            reading_.remove(run.directory);
            Q_EMIT loaded({run});
          });
        },
        kRead);
  }
}

QList<LoadedDirectory> RunLoader::news_of(const std::vector<SharedRun>& runs, int generation) const {
  QList<LoadedDirectory> news;
  for (const SharedRun& run : runs) {
    if (generation != generation_) break;
    if (run->outdated()) news << read_on(*run);
  }
  return news;
}

void RunLoader::work(const QString& folder, const QHash<QString, QDateTime>& known, const std::vector<SharedRun>& runs, int generation) {
  const auto [directories, studies] = run_directories(folder);
  post(generation, [this, count = static_cast<int>(directories.size()), beside = studies] { Q_EMIT found(count, beside); });
  QList<LoadedDirectory> batch;
  QElapsedTimer clock;
  clock.start();
  const auto deliver = [&] {
    if (!batch.isEmpty()) post(generation, [this, batch] { Q_EMIT loaded(batch); });
    batch.clear();
    clock.restart();
  };
  for (const QString& directory : directories) {
    if (generation != generation_) return;
    const auto seen = known.constFind(directory);
    if (seen != known.constEnd() && (!seen->isValid() || *seen == stamp_of(directory))) continue;
    batch << open_run(directory, {.outline = true, .patience = kPatience});
    if (clock.elapsed() > kBatchMs) deliver();
  }
  deliver();
  batch = news_of(runs, generation);
  deliver();
  post(generation, [this, all = directories] {
    searching_ = false;
    Q_EMIT searched(all);
  });
}

}  // namespace saccade::ui
