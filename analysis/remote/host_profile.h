#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/settings.h"

namespace saccade {

/// How a machine is reached over ssh, and what of it is used: CONFIG/hosts/NAME.json. Keys, users, ports and jumps are ssh's business.
struct HostProfile {
  std::string ssh;                  ///< what ssh is told: an alias of its config, or user@machine
  std::string program = "saccade";  ///< starts saccade there, as a shell takes it
  std::string folder;               ///< of runs, there; empty: its runs folder
  std::string cluster;              ///< of the host, that runs go to; empty: the host itself
  std::string gpu_command = "nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader";
  std::string files = "all";  ///< captures and results.h5 come by themselves, or only when "asked" for
  int64_t answer_seconds = 20, poll_seconds = 1;
};

/// Every setting with its range, default and help.
const Schema<HostProfile>& host_schema();

/// Checks everything, and throws UsageError with `origin`, the place in it and the nearest name.
HostProfile host_profile_of(const nlohmann::json& object, const std::string& origin);

/// CONFIG/hosts/NAME.json
std::filesystem::path host_file(const std::string& name);
/// Names of the profiles there are, in alphabetical order.
std::vector<std::string> host_names();
/// Throws UsageError where there is none of that name (with the nearest), or where it is wrong.
HostProfile load_host(const std::string& name);
/// Writes it. Throws UsageError where there is one and `replace` is not set, where a cluster has the name, or where it is no file name.
void save_host(const std::string& name, const nlohmann::json& profile, bool replace);
void remove_host(const std::string& name);

/// What --on names. Throws UsageError where it is nothing, or both a host and a cluster.
enum class Where { here, cluster, host };
Where where_named(const std::string& name);

}  // namespace saccade
