#include "ui/studies/studies_state.h"

#include <QCoreApplication>
#include <QDir>
#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/launchers/launcher.h"
#include "analysis/remote/mirror.h"
#include "analysis/runs/run.h"
#include "analysis/runs/run_info.h"
#include "analysis/runs/run_origin.h"
#include "models/config_text.h"
#include "models/json.h"
#include "ui/mirror_text.h"
#include "ui/run_summary.h"

namespace saccade::ui {
namespace {

namespace fs = std::filesystem;

QString tr(const char* text) { return QCoreApplication::translate("StudiesPage", text); }
QString text_of(const fs::path& path) { return QString::fromStdString(path.string()); }

StudyRunLine line_of(const WantedRun& wanted, const std::string& cell, const fs::path& study) {
  const double nothing = std::nan("");
  StudyRunLine line{.name = QString::fromStdString(wanted.name),
                    .directory = text_of(study / "runs" / wanted.name),
                    .cell = QString::fromStdString(cell),
                    .state = QString::fromLatin1(to_string(wanted.status)),
                    .problem = QString::fromStdString(wanted.problem),
                    .value = wanted.run.tuned,
                    .seed = wanted.run.seed,
                    .steps = wanted.run.config.training.steps,
                    .validation = wanted.there ? wanted.there->end.validation : nothing,
                    .ood = wanted.there ? wanted.there->end.ood : nothing,
                    .failed = wanted.status == WantedRun::Status::gave_up || wanted.status == WantedRun::Status::diverged};
  if (wanted.there) {
    line.step = wanted.there->step;
    for (const RunEnd& branch : wanted.there->branches)
      line.branches << line.directory + QLatin1Char('/') + QString::fromStdString(branch.branch);
  }
  if (line.problem.isEmpty() && wanted.there && line.failed) line.problem = QString::fromStdString(wanted.there->message);
  return line;
}

/// Of several values, all of which have ended.
bool search_has_ended(const Tuning& tuning) { return tuning.state == Tuning::State::tuned || tuning.state == Tuning::State::edge; }

/// Where a study waits, in one queue or several.
struct Waiting {
  size_t place = 0;     ///< among the entries of its device, from 1; the foremost
  bool paused = false;  ///< everywhere
  int64_t jobs = 1;     ///< together
};

QString state_in_queue(bool running, const Waiting& waiting) {
  if (running) return tr("running");
  if (waiting.paused) return tr("paused");
  return waiting.place == 1 ? tr("starting") : tr("waits");
}

QString state_of(const StudyView& view, const StudyProgress& progress, const Waiting* waiting, const QString& cluster) {
  if (view.complete()) return tr("complete");
  if (!cluster.isEmpty() && progress.running > 0) return tr("running on %1").arg(cluster);
  if (!cluster.isEmpty() && !view.state.stopped) return tr("on %1").arg(cluster);
  if (waiting) return state_in_queue(progress.running > 0, *waiting);
  if (progress.running > 0) return tr("running out");
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
    std::vector<std::string> problems = view.problems;
    if (!view.complete() && !view.state.left_queue.empty()) problems.insert(problems.begin(), view.state.left_queue);
    for (const std::string& problem : problems) line.problem += (line.problem.isEmpty() ? "" : "\n") + QString::fromStdString(problem);
    for (const WantedRun& wanted : view.wanted) line.runs.push_back(line_of(wanted, view.cells[wanted.run.cell].name, directory));
    if (view.study.tuning)
      line.tuned =
          QString::fromStdString(view.study.tuning->setting).section(QLatin1Char('.'), -1).replace(QLatin1Char('_'), QLatin1Char(' '));
    if (view.study.tuning)
      for (const CellView& cell : view.views)
        for (const size_t at : cell.wanted) {
          line.runs[at].best = cell.tuning.best && view.wanted[at].run.tuned == cell.tuning.best;
          line.runs[at].searched = search_has_ended(cell.tuning);
        }
    for (size_t i = 0; i < view.cells.size(); ++i)
      line.tuning << QString::fromStdString(view.cells[i].name + ": " + describe(view.views[i].tuning));
  } catch (const std::exception& error) {
    line.readable = false;
    line.state = tr("cannot be read");
    line.problem = QString::fromUtf8(error.what());
  }
  return line;
}

/// A queue as it was read, here or on a host; directories are those of this machine where they are mirrored.
struct OneQueue {
  QString device;
  QueueState state;
  bool worked = false;
};

std::vector<OneQueue> queues_of_this_machine() {
  std::vector<OneQueue> queues;
  for (const DeviceQueue& queue : DeviceQueue::all())
    queues.push_back({QString::fromStdString(queue.device()), queue.read(), queue.worker().has_value()});
  return queues;
}

/// Where something in the folder that a host serves is mirrored; else itself.
fs::path mirrored(const fs::path& there, const std::optional<MirrorState>& mirror) {
  if (!mirror || mirror->folder.empty()) return there;
  const fs::path inside = there.lexically_relative(mirror->folder);
  return inside.empty() || *inside.begin() == ".." ? there : mirror->root / inside;
}

/// What `saccade --json queue list` of a host says. Throws nlohmann's exceptions.
std::vector<OneQueue> queues_of_host(const QByteArray& told, const std::optional<MirrorState>& mirror) {
  std::vector<OneQueue> queues;
  for (const auto& each : parse_json_or_discard(told.toStdString())) {
    OneQueue queue{QString::fromStdString(each.at("device")), {}, !each.at("worker").is_null()};
    queue.state.paused = each.at("paused");
    queue.state.jobs = each.at("jobs").is_number() ? each.at("jobs").get<int64_t>() : kJobsAsPays;
    for (const auto& e : each.at("entries"))
      queue.state.entries.push_back({e.at("id"), e.at("kind"), mirrored(e.at("directory").get<std::string>(), mirror), {}, e.at("added")});
    queues.push_back(std::move(queue));
  }
  return queues;
}

QueueLine line_of(const QueueEntry& entry, const QString& device) {
  QueueLine line{.device = device,
                 .name = text_of(entry.directory.filename()),
                 .directory = text_of(entry.directory),
                 .added = QString::fromStdString(entry.added),
                 .id = entry.id,
                 .study = entry.kind == "study",
                 .state = tr("waits"),
                 .share = 0,
                 .seconds_left = std::nan("")};
  if (line.study) return line;
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
QueueHead head_of(const OneQueue& queue, const std::vector<QueueLine>& entries) {
  QueueHead head{.device = queue.device, .paused = queue.state.paused, .worked = queue.worked, .jobs = queue.state.jobs};
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

/// Heads and entries of the result; its studies are there.
void show_queues(const std::vector<OneQueue>& queues, StudiesState& result) {
  for (const OneQueue& queue : queues)
    for (size_t i = 0; i < queue.state.entries.size(); ++i) {
      QueueLine entry = line_of(queue.state.entries[i], queue.device);
      for (const StudyLine& study : result.studies) {
        if (!entry.study || study.directory != entry.directory) continue;
        entry.share = study.progress.share;
        entry.state = study.host.isEmpty() ? study.state : state_in_queue(study.progress.running > 0, {i + 1, queue.state.paused});
        if (study.host.isEmpty() || !queue.state.paused) entry.seconds_left = study.progress.seconds_left;
      }
      result.entries.push_back(std::move(entry));
    }
  for (const OneQueue& queue : queues) result.queues.push_back(head_of(queue, result.entries));
}

void show_queues_of_host(const QueuesAsked& asked, StudiesState& result) {
  try {
    const std::optional<MirrorState> mirror = read_mirror(mirror_folder(asked.host.toStdString()));
    result.reached = mirror && mirror->connected;
    result.host_text = mirrorText(mirror);
    if (!result.reached && mirror && !mirror->problem.empty()) result.host_text += tr(": %1").arg(QString::fromStdString(mirror->problem));
    if (result.reached && !asked.problem.isEmpty()) result.host_text = asked.problem;
    result.told = !asked.told.isEmpty();
    if (result.told) show_queues(queues_of_host(asked.told, mirror), result);
  } catch (const std::exception& error) {
    result.told = false;
    result.host_text = QString::fromUtf8(error.what());
  }
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

StudiesState read_studies(const QStringList& folders, const QueuesAsked& asked) {
  StudiesState result{.host = asked.host};
  std::map<fs::path, Waiting> waiting;
  std::vector<QueueEntry> all;
  const std::vector<OneQueue> here = queues_of_this_machine();
  for (const OneQueue& queue : here)
    for (size_t i = 0; i < queue.state.entries.size(); ++i) {
      const Waiting one{i + 1, queue.state.paused, std::max<int64_t>(1, queue.state.jobs)};
      const auto [at, first] = waiting.try_emplace(queue.state.entries[i].directory, one);
      if (!first) at->second = {std::min(at->second.place, one.place), at->second.paused && one.paused, at->second.jobs + one.jobs};
      all.push_back(queue.state.entries[i]);
    }
  for (const fs::path& directory : studies_in(folders, all)) {
    const auto at = waiting.find(directory);
    result.studies.push_back(read_study(directory, at == waiting.end() ? nullptr : &at->second));
  }
  std::stable_sort(result.studies.begin(), result.studies.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  asked.host.isEmpty() ? show_queues(here, result) : show_queues_of_host(asked, result);
  return result;
}

}  // namespace saccade::ui
