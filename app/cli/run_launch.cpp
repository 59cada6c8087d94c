#include "app/cli/run_launch.h"

#include "analysis/launchers/job_round.h"
#include "analysis/launchers/launcher.h"
#include "analysis/runs/files.h"
#include "analysis/runs/run_info.h"
#include "app/cli/command.h"
#include "app/cli/this_program.h"
#include "kernels/engine/error.h"

namespace saccade::cli {
namespace fs = std::filesystem;

int launch_run(const fs::path& run, const nlohmann::json& config, const std::string& cluster) {
  if (cluster == "local")
    throw UsageError("--on local: leave --on out to train here, or put the run into the queue with saccade queue add");
  if (!config.is_null() && holds_run(run))
    throw UsageError(run.string() + " already holds a run; saccade resume " + run.string() + " --on " + cluster + " goes on with it");
  make_folders_above(run);
  make_run_folder(run);
  choose_launcher(run, cluster);
  if (!config.is_null()) replace_text(run / "slurm" / "config.json", config.dump(2) + "\n");
  set_stopped(run, false);
  const auto launcher = launcher_of(run, this_program());
  const Launched launched = launcher->go_on();
  const std::string what = launched.runs > 0      ? "submitted as job " + launched.entry
                           : launched.waiting > 0 ? "has a job already"
                                                  : "has ended; nothing to submit";
  print_result({{"directory", run.string()}, {"cluster", cluster}, {"job", launched.entry}, {"submitted", launched.runs}},
               run.string() + ": " + launched.place + ", " + what + "\nits script and what the job says: " + (run / "slurm").string());
  return 0;
}

bool stop_launched_run(const fs::path& run) { return chosen_launcher(run) != "local" && launcher_of(run, this_program())->stop().jobs > 0; }

}  // namespace saccade::cli
