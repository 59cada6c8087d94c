#include "app/cli/study_status.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/launchers/launcher.h"
#include "analysis/studies/queue.h"
#include "analysis/studies/study_folder.h"
#include "analysis/studies/study_progress.h"
#include "app/cli/command.h"
#include "app/cli/host_call.h"
#include "app/cli/output.h"
#include "app/cli/study_counts.h"
#include "app/cli/study_launch.h"
#include "app/cli/this_program.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// A process has begun the run and has not written it yet: it reads its text, or makes its tokens.
bool is_prepared(const StudyView& view, const WantedRun& wanted) try {
  const bool waits = wanted.status == WantedRun::Status::open || wanted.status == WantedRun::Status::unfinished;
  return waits && is_claimed(view.directory / "logs" / (wanted.name + ".txt"));
} catch (const Error&) {  // on a file system that cannot be written nobody prepares it
  return false;
}

/// Why nothing of a study begins though it could, on the queues of this machine; empty: it goes on, or is elsewhere.
std::string what_keeps(const StudyView& view) try {
  const bool at_work = std::any_of(view.wanted.begin(), view.wanted.end(), [&](const WantedRun& wanted) {
    return wanted.status == WantedRun::Status::live || is_prepared(view, wanted);
  });
  if (view.complete() || !view.blocked().empty() || view.ready().empty() || at_work) return {};
  if (chosen_launcher(view.directory) != "local" || on_host(view.directory)) return {};
  std::string words;
  for (const DeviceQueue& queue : DeviceQueue::all()) {
    const QueueState state = queue.read();
    const fs::path study = fs::absolute(view.directory).lexically_normal();
    if (std::none_of(state.entries.begin(), state.entries.end(), [&](const QueueEntry& e) { return e.directory == study; })) continue;
    if (!state.paused && queue.worker()) return {};
    words += (words.empty() ? "" : "; ") + ("the queue of " + queue.device()) + (state.paused ? " is paused" : " is worked off by nobody") +
             ": saccade queue go-on --device " + queue.device();
  }
  const std::string& left = view.state.left_queue;
  return words.empty() ? (left.empty() ? "it stands in no queue" : left) + ": saccade study resume " + view.directory.string() : words;
} catch (const Error&) {  // saccade queue list tells what is wrong with a queue
  return {};
}

std::vector<std::string> status_row(const StudyView& view, const WantedRun& wanted, const std::map<std::string, std::string>& jobs) {
  const auto& there = wanted.there;
  const auto job = jobs.find(wanted.name);
  const double nothing = std::nan("");
  return {wanted.name,
          to_string(wanted.status),
          there ? std::to_string(there->step) + "/" + std::to_string(there->steps) : "",
          number(there ? there->end.validation : nothing, 4),
          number(there ? there->end.ood : nothing, 4),
          !wanted.problem.empty()     ? wanted.problem
          : job != jobs.end()         ? job->second
          : is_prepared(view, wanted) ? "is being prepared"
                                      : ""};
}

Json status_json(const StudyView& view, const std::map<std::string, std::string>& jobs) {
  Json runs = Json::array(), cells = Json::array();
  const auto number_or_null = [](double v) { return std::isfinite(v) ? Json(v) : Json(); };
  for (const WantedRun& wanted : view.wanted) {
    runs.push_back({{"name", wanted.name},
                    {"cell", view.cells[wanted.run.cell].name},
                    {"seed", wanted.run.seed},
                    {"status", to_string(wanted.status)},
                    {"problem", wanted.problem},
                    {"preparing", is_prepared(view, wanted)},
                    {"job", jobs.contains(wanted.name) ? jobs.at(wanted.name) : ""},
                    {"identity", wanted.run.identity}});
    if (wanted.there)
      runs.back().update({{"step", wanted.there->step},
                          {"steps", wanted.there->steps},
                          {"validation_loss", number_or_null(wanted.there->end.validation)},
                          {"ood_loss", number_or_null(wanted.there->end.ood)}});
  }
  for (size_t i = 0; i < view.cells.size(); ++i) cells.push_back({{"name", view.cells[i].name}, {"tuning", to_json(view.views[i].tuning)}});
  const StudyProgress progress = progress_of(view);
  return {{"directory", view.directory.string()},
          {"question", view.study.question},
          {"complete", view.complete()},
          {"blocked", view.blocked()},
          {"waits", what_keeps(view)},
          {"left_queue", view.state.left_queue},
          {"later", view.later},
          {"hours", view.seconds / 3600},
          {"share", progress.share},
          {"seconds_left", number_or_null(progress.seconds_left)},
          {"runs", runs},
          {"cells", cells},
          {"problems", view.problems}};
}

/// `jobs`: what the scheduler says of runs, by their names.
std::string status_text(const StudyView& view, const std::map<std::string, std::string>& jobs, int64_t most_rows) {
  std::string text = view.study.question + "\n" + view.directory.string() + ": " + (view.complete() ? "complete; " : "") + counts(view) +
                     "; " + human_seconds(view.seconds) + " of training";
  const double left = progress_of(view).seconds_left;
  text += std::isnan(left) ? "\n" : ", about " + human_seconds(left) + " left (one run after the other)\n";
  if (const std::string why = view.blocked(); !why.empty()) text += "nothing more is started: " + why + "\n";
  const std::string keeps = what_keeps(view);
  if (!keeps.empty()) text += "nothing begins: " + keeps + "\n";
  if (!view.complete() && keeps.find(view.state.left_queue) == std::string::npos) text += view.state.left_queue + "\n";
  std::vector<std::vector<std::string>> rows;
  for (const WantedRun& wanted : view.wanted)
    if (most_rows <= 0 || static_cast<int64_t>(rows.size()) < most_rows) rows.push_back(status_row(view, wanted, jobs));
  text += "\n" + table({"run", "state", "step", "validation", "OOD", ""}, rows);
  if (rows.size() < view.wanted.size()) text += "and " + std::to_string(view.wanted.size() - rows.size()) + " more\n";
  text += "\n";
  std::vector<std::pair<std::string, std::string>> cells;
  for (size_t i = 0; i < view.cells.size(); ++i) cells.emplace_back(view.cells[i].name, describe(view.views[i].tuning));
  return text + list(cells);
}

}  // namespace

int show_study_status(const fs::path& study, int64_t most_rows) {
  const StudyView view = view_study(study);
  for (const std::string& problem : view.problems) warn("skipped: " + problem);
  std::map<std::string, std::string> jobs;
  Json json = status_json(view, jobs);
  const std::string cluster = chosen_launcher(view.directory);
  if (cluster != "local") {
    jobs = job_states(*launcher_of(view.directory, this_program()));
    json = status_json(view, jobs);
    json["cluster"] = cluster;
  }
  print_result(json, (cluster == "local" ? "" : "on the cluster " + cluster + "\n") + status_text(view, jobs, most_rows));
  return 0;
}

}  // namespace saccade::cli
