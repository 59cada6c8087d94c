#pragma once
#include <filesystem>
#include <string>

#include "models/json.h"

namespace saccade {

/// What people want to know of a machine before they train there: {"gpus": [lines], "processor", "threads", "memory_bytes",
/// "disk_free_bytes", "partitions": [lines], "glibc"}. `gpu_command` names a GPU a line, with its driver; where it is not there, the
/// GPUs that this build can use are named. Partitions are those of Slurm's sinfo, where there is one. Takes 4 s at most.
nlohmann::json machine_facts(const std::filesystem::path& folder, const std::string& gpu_command);

}  // namespace saccade
