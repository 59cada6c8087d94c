#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/launchers/launcher.h"
#include "analysis/studies/study_folder.h"
#include "models/json.h"

namespace saccade::cli {

/// The script of a study's jobs on a cluster: the edited one of its folder, else one made from the profile. Nothing is written.
std::string study_script(const Study& study, const std::filesystem::path& folder, const std::string& cluster);

/// `study start --on CLUSTER --dry-run`: what would be submitted.
int dry_run(const Study& study, const std::filesystem::path& folder, const std::string& cluster, std::optional<int64_t> at_a_time);

/// Puts a script that the user has edited into the study's folder. Throws DataError, UsageError where it is none for bash.
void take_script(const std::filesystem::path& folder, const std::string& file);

/// Waits until a study on a cluster has ended, and submits what comes to be decided: squeue is asked once every poll_seconds.
int wait_on_cluster(const std::filesystem::path& folder, Launcher& launcher, int64_t poll_seconds);

/// What the scheduler says of a run, by its name: "4711_3 PENDING (Priority)". Says so where it does not answer; empty in a queue.
std::map<std::string, std::string> job_states(Launcher& launcher);

}  // namespace saccade::cli
