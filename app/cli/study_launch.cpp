#include "app/cli/study_launch.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "analysis/figures/count_text.h"
#include "analysis/launchers/batch_script.h"
#include "analysis/launchers/slurm_launcher.h"
#include "analysis/runs/files.h"
#include "app/cli/command.h"
#include "app/cli/study_counts.h"
#include "app/cli/this_program.h"
#include "kernels/engine/clock.h"

namespace saccade::cli {
namespace fs = std::filesystem;

std::string study_script(const Study& study, const fs::path& folder, const std::string& cluster) {
  const StudyView view = holds_study(folder) ? view_study(folder) : view_study(study, {});
  return script_to_use(folder, script_of_study(load_cluster(cluster), view, folder, this_program()));
}

int dry_run(const Study& study, const fs::path& folder, const std::string& cluster, std::optional<int64_t> at_a_time) {
  const ClusterProfile profile = load_cluster(cluster);
  const StudyView view = holds_study(folder) ? view_study(study, run_summaries(folder), read_study_state(folder)) : view_study(study, {});
  const auto runs = static_cast<int64_t>(view.ready().size());
  const int64_t jobs = std::min(profile.most_jobs, (runs + profile.pack - 1) / profile.pack);
  const std::string script = script_to_use(folder, script_of_study(profile, view, folder, this_program()));
  const std::string array = "0-" + std::to_string(jobs - 1) + "%" + std::to_string(at_a_time.value_or(profile.at_a_time));
  print_result({{"directory", folder.string()},
                {"cluster", cluster},
                {"runs", runs},
                {"jobs", jobs},
                {"array", array},
                {"later", view.later},
                {"script", script},
                {"edited", !is_generated(script)}},
               script + "\n# nothing was submitted: " + counted(runs, "run") + " in an array of " + counted(jobs, "job") +
                   " (--array=" + array + "), " + counted(view.later, "run") + " later\n");
  return 0;
}

void take_script(const fs::path& folder, const std::string& file) {
  const std::string text = read_text(file);
  if (!text.starts_with("#!")) throw UsageError(file + " does not begin with #!; expected a script for sbatch");
  make_run_folder(folder / "slurm");
  replace_text(script_file(folder), text);
}

int wait_on_cluster(const fs::path& folder, Launcher& launcher, int64_t poll_seconds) {
  catch_stop_signals();
  Progress bar(folder.filename().string());
  double asked = now();
  while (!stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const bool due = now() - asked >= static_cast<double>(poll_seconds);
    const StudyView view = view_study(folder);
    bar.update(share_ended(view), counts(view));
    if (view.complete()) return 0;
    if (const std::string why = view.blocked(); !why.empty()) throw Error(folder.string() + ": " + why);
    if (!due) continue;
    asked = now();
    try {
      const Launched launched = launcher.go_on();
      if (launched.runs == 0 && launched.waiting == 0 && view_study(folder).blocked().empty() && !view_study(folder).complete())
        throw Error(folder.string() + " has no job in the " + launcher.place() + "; see saccade study status " + folder.string());
    } catch (const NoAnswer& error) {
      say(std::string(error.what()) + "; asked again later");
    }
  }
  return 130;
}

std::map<std::string, std::string> job_states(Launcher& launcher) try {
  std::map<std::string, std::string> states;
  for (const LaunchedJob& job : launcher.jobs())
    for (const std::string& run : job.runs)
      states[run] = job.id + " " + job.state + (job.reason.empty() || job.reason == "None" ? "" : " (" + job.reason + ")");
  return states;
} catch (const NoAnswer& error) {
  warn(launcher.place() + ": " + error.what() + "; how far the runs are stands in their journals");
  return {};
}

}  // namespace saccade::cli
