#pragma once
#include <filesystem>
#include <string>

#include "models/json.h"

namespace saccade::cli {

/// `saccade train … --on CLUSTER` and `saccade resume RUN --on CLUSTER`: the run as one job of its own, with its script and what was
/// submitted in RUN/slurm. `config`: resolved; null for a run that has begun.
int launch_run(const std::filesystem::path& run, const nlohmann::json& config, const std::string& cluster);

/// Stops the job of a run that was submitted to a cluster; false where it was not, or no job of it is alive. Throws NoAnswer.
bool stop_launched_run(const std::filesystem::path& run);

}  // namespace saccade::cli
