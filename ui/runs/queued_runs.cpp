#include "ui/runs/queued_runs.h"

#include <algorithm>
#include <filesystem>

#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "models/architectures/registry.h"

namespace saccade::ui {
namespace {

namespace fs = std::filesystem;

constexpr int kBetweenLooks = 1000;  // ms

QString text_of(const fs::path& path) { return QString::fromStdString(path.string()); }

fs::path plain(const fs::path& path) {
  std::error_code none;
  const fs::path found = fs::weakly_canonical(path, none);
  return none ? path.lexically_normal() : found;
}

RunInfo info_of(const nlohmann::json& config, const fs::path& directory) {
  RunInfo info;
  info.directory = directory;
  info.name = directory.filename().string();
  if (!config.is_object()) return info;
  const RunConfig resolved = resolve_config(config, directory.string());
  info.config = to_json(resolved);
  info.name = resolved.name.empty() ? info.name : resolved.name;
  info.title = architecture_title(resolved.architecture);
  info.seed = resolved.training.seed;
  info.steps = resolved.training.steps;
  return info;
}

/// The runs of a study that are not there yet, in the order in which they are begun as far as that is known.
void add_study(const fs::path& study, const QueuedRun& entry, std::vector<QueuedRun>& runs) {
  const StudyView view = view_study(study);
  for (const WantedRun& wanted : view.wanted) {
    if (wanted.there || wanted.status != WantedRun::Status::open) continue;
    QueuedRun run = entry;
    run.info = info_of(to_json(wanted.run.config), study / "runs" / wanted.name);
    run.info.name = wanted.name;
    run.directory = text_of(run.info.directory);
    run.study = text_of(study.filename());
    runs.push_back(std::move(run));
  }
}

/// Whether a row would look the same.
bool same(const QueuedRun& a, const QueuedRun& b) {
  return a.directory == b.directory && a.device == b.device && a.entry == b.entry && a.place == b.place && a.count == b.count &&
         a.paused == b.paused && a.is_study == b.is_study && a.info.name == b.info.name && a.info.config == b.info.config;
}

/// `directory`: of the entry, as the folder's runs are written.
void add_entry(const QueueEntry& entry, const fs::path& folder, QueuedRun queued, std::vector<QueuedRun>& runs) {
  const fs::path where = plain(entry.directory), here = plain(folder);
  queued.directory = text_of(folder / where.filename());
  queued.entry = entry.id;
  queued.added = QString::fromStdString(entry.added);
  if (entry.kind == "study" && where / "runs" == here) return add_study(folder.parent_path(), queued, runs);
  if (where.parent_path() != here) return;
  if (entry.kind == "study") {
    if (view_study(where).begun > 0) return;
    queued.is_study = true;
    queued.study = text_of(where.filename());
    queued.info = info_of({}, where);
  } else {
    queued.info = info_of(entry.config, folder / where.filename());
  }
  runs.push_back(std::move(queued));
}

}  // namespace

QueueNow read_queued(const QString& folder, const QStringList& folders) {
  QueueNow now;
  QStringList problems;
  const auto trying = [&](const auto& what) {
    try {
      what();
    } catch (const std::exception& error) {
      problems << QString::fromUtf8(error.what());
    }
  };
  trying([&] {
    for (const DeviceQueue& queue : DeviceQueue::all())
      trying([&] {
        const QueueState state = queue.read();
        for (size_t i = 0; i < state.entries.size(); ++i)
          trying([&] {
            QueuedRun queued;
            queued.device = QString::fromStdString(queue.device());
            queued.place = static_cast<int>(i) + 1, queued.count = static_cast<int>(state.entries.size());
            queued.paused = state.paused;
            add_entry(state.entries[i], folder.toStdString(), std::move(queued), now.runs);
          });
      });
  });
  for (const QString& each : folders)
    trying([&] {
      if (const auto study = study_of_run(fs::path(each.toStdString()) / "run")) now.studies.insert(each, text_of(study->filename()));
    });
  now.problem = problems.join(QLatin1Char('\n'));
  return now;
}

QueuedRuns::QueuedRuns(QObject* parent) : QObject(parent), job_(this, [this](QueueNow now) { take(std::move(now)); }) {
  timer_.setInterval(kBetweenLooks);
  connect(&timer_, &QTimer::timeout, this, [this] { job_.ask([f = folder_, all = folders_] { return read_queued(f, all); }, false); });
}

void QueuedRuns::setFolders(const QString& folder, const QStringList& folders) {
  if (folder == folder_ && folders == folders_) return;
  folder_ = folder, folders_ = folders;
  if (timer_.isActive()) look();
}

void QueuedRuns::setLooking(bool on) {
  if (on == timer_.isActive()) return;
  on ? timer_.start() : timer_.stop();
  if (on) look();
}

void QueuedRuns::look() {
  job_.ask([f = folder_, all = folders_] { return read_queued(f, all); }, true);
}

void QueuedRuns::take(QueueNow now) {
  const bool as_before = now.studies == now_.studies && now.problem == now_.problem &&
                         std::equal(now.runs.begin(), now.runs.end(), now_.runs.begin(), now_.runs.end(), same);
  now_ = std::move(now);
  if (!as_before) Q_EMIT changed();
}

}  // namespace saccade::ui
