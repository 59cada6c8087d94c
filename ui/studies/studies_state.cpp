#include "ui/studies/studies_state.h"

#include <QCoreApplication>
#include <QDir>
#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/launchers/launcher.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {

namespace fs = std::filesystem;

QString tr(const char* text) { return QCoreApplication::translate("StudiesPage", text); }
QString text_of(const fs::path& path) { return QString::fromStdString(path.string()); }

StudyRunLine line_of(const WantedRun& wanted, const fs::path& study) {
  const double nothing = std::nan("");
  StudyRunLine line{.name = QString::fromStdString(wanted.name),
                    .directory = text_of(study / "runs" / wanted.name),
                    .state = QString::fromLatin1(to_string(wanted.status)),
                    .problem = QString::fromStdString(wanted.problem),
                    .steps = wanted.run.config.training.steps,
                    .validation = wanted.there ? wanted.there->end.validation : nothing,
                    .ood = wanted.there ? wanted.there->end.ood : nothing,
                    .failed = wanted.status == WantedRun::Status::gave_up || wanted.status == WantedRun::Status::diverged};
  if (wanted.there) line.step = wanted.there->step;
  if (line.problem.isEmpty() && wanted.there && line.failed) line.problem = QString::fromStdString(wanted.there->message);
  return line;
}

/// Where a study waits.
struct Waiting {
  size_t place = 0;  ///< among the entries of its device, from 1
  bool paused = false;
  int64_t jobs = 1;
};

QString state_of(const StudyView& view, const StudyProgress& progress, const Waiting* waiting, const QString& cluster) {
  if (view.complete()) return tr("complete");
  if (!cluster.isEmpty() && progress.running > 0) return tr("running on %1").arg(cluster);
  if (!cluster.isEmpty() && !view.state.stopped) return tr("on %1").arg(cluster);
  if (progress.running > 0) return waiting ? tr("running") : tr("running out");
  if (waiting && waiting->paused) return tr("paused");
  if (waiting) return waiting->place == 1 ? tr("starting") : tr("waits");
  if (view.state.stopped) return tr("stopped");
  return tr("not queued");
}

StudyLine read_study(const fs::path& directory, const Waiting* waiting) {
  StudyLine line{.directory = text_of(directory), .name = text_of(directory.filename())};
  line.queued = waiting != nullptr;
  try {
    const StudyView view = view_study(directory);
    line.question = QString::fromStdString(view.study.question), line.source = QString::fromStdString(view.study.source);
    line.progress = progress_of(view, waiting ? waiting->jobs : 1);
    line.complete = view.complete();
    if (const std::string chosen = chosen_launcher(directory); chosen != "local") line.cluster = QString::fromStdString(chosen);
    if (const auto mirror = mirror_of(directory)) line.host = QString::fromStdString(mirror->host);
    line.state = state_of(view, line.progress, waiting, line.host.isEmpty() ? line.cluster : line.host);
    if (line.cluster.isEmpty() && line.host.isEmpty() && (!waiting || waiting->paused))
      line.progress.seconds_left = std::nan("");  // it would be a guess of when someone goes on
    line.seconds = view.seconds, line.budget_hours = view.state.budget_hours;
    line.problem = QString::fromStdString(view.blocked());
    for (const std::string& problem : view.problems) line.problem += (line.problem.isEmpty() ? "" : "\n") + QString::fromStdString(problem);
    for (const WantedRun& wanted : view.wanted) line.runs.push_back(line_of(wanted, directory));
    for (size_t i = 0; i < view.cells.size(); ++i)
      line.tuning << QString::fromStdString(view.cells[i].name + ": " + describe(view.views[i].tuning));
  } catch (const std::exception& error) {
    line.readable = false;
    line.state = tr("cannot be read");
    line.problem = QString::fromUtf8(error.what());
  }
  return line;
}

QueueLine line_of(const QueueEntry& entry, const std::string& device) {
  QueueLine line{.device = QString::fromStdString(device),
                 .name = text_of(entry.directory.filename()),
                 .directory = text_of(entry.directory),
                 .added = QString::fromStdString(entry.added),
                 .id = entry.id,
                 .study = entry.kind == "study",
                 .seconds_left = std::nan("")};
  if (line.study) return line;
  line.state = tr("waits");
  try {
    if (!holds_run(entry.directory)) return line;
    const Run run(entry.directory);
    const RunInfo& info = run.info();
    if (info.steps > 0) line.share = static_cast<double>(info.step) / static_cast<double>(info.steps);
    if (isActive(info.state)) line.seconds_left = numbers_of(run).seconds_left;
    line.state = QString::fromLatin1(to_string(info.state));
  } catch (const std::exception& error) {
    line.state = QString::fromUtf8(error.what());
  }
  return line;
}

/// The whole of a device: its studies by their steps; a run that waits alone counts as one of their size.
QueueHead head_of(const QueueState& state, const DeviceQueue& queue, const std::vector<QueueLine>& entries) {
  QueueHead head{
      .device = QString::fromStdString(queue.device()), .paused = state.paused, .worked = queue.worker().has_value(), .jobs = state.jobs};
  double count = 0;
  for (const QueueLine& entry : entries)
    if (entry.device == head.device) {
      head.share += entry.share, ++count;
      if (std::isnan(entry.seconds_left))
        head.at_least = true;
      else
        head.seconds_left += entry.seconds_left;
    }
  if (count > 0) head.share /= count;
  return head;
}

std::vector<fs::path> studies_in(const QStringList& folders, const std::vector<QueueEntry>& entries) {
  std::set<fs::path> found;
  const auto take = [&](const fs::path& directory) {
    if (holds_study(directory)) found.insert(fs::absolute(directory).lexically_normal());
  };
  for (const QString& folder : folders) {
    for (const QFileInfo& entry : QDir(folder).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot)) take(entry.filePath().toStdString());
    take(folder.toStdString());
  }
  for (const QueueEntry& entry : entries) take(entry.directory);
  return {found.begin(), found.end()};
}

}  // namespace

StudiesState read_studies(const QStringList& folders) {
  StudiesState result;
  std::map<fs::path, Waiting> waiting;
  std::vector<QueueEntry> all;
  std::vector<std::pair<QueueState, DeviceQueue>> queues;
  for (const DeviceQueue& queue : DeviceQueue::all()) {
    const QueueState state = queue.read();
    for (size_t i = 0; i < state.entries.size(); ++i) {
      waiting[state.entries[i].directory] = {i + 1, state.paused, state.jobs};
      result.entries.push_back(line_of(state.entries[i], queue.device()));
      all.push_back(state.entries[i]);
    }
    queues.emplace_back(state, queue);
  }
  for (const fs::path& directory : studies_in(folders, all)) {
    const auto at = waiting.find(directory);
    result.studies.push_back(read_study(directory, at == waiting.end() ? nullptr : &at->second));
  }
  std::stable_sort(result.studies.begin(), result.studies.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (QueueLine& entry : result.entries)
    for (const StudyLine& study : result.studies)
      if (entry.study && study.directory == entry.directory)
        entry.state = study.state, entry.share = study.progress.share, entry.seconds_left = study.progress.seconds_left;
  for (const auto& [state, queue] : queues) result.queues.push_back(head_of(state, queue, result.entries));
  return result;
}

}  // namespace saccade::ui
