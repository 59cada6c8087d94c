#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/settings.h"

namespace saccade {

/// What a site wants to be told with every job, and how its jobs are made: CONFIG/clusters/NAME.json.
struct ClusterProfile {
  std::string scheduler = "slurm";
  std::string partition, account, qos, gres, memory, time;  ///< as sbatch takes them; empty: what the site has
  int64_t cpus = 4;                                         ///< of a job
  int64_t gpus = 0;                                         ///< that share each run (--gpus); 0: as the config's device says
  std::vector<std::string> options;                         ///< further ones of sbatch, "--constraint=h100"
  std::vector<std::string> setup;                           ///< lines of shell before the program
  std::string container;                                    ///< words before the program: "apptainer exec --nv saccade.sif"
  std::string program;                                      ///< on the nodes; empty: the one that submits
  std::string scratch;                                      ///< folder for caches on the nodes; may name variables; empty: the usual one
  int64_t signal_lead = 0;                                  ///< seconds; 0: by what a checkpoint and a step take
  int64_t at_a_time = 8, most_jobs = 500, pack = 1;
  std::string next_round = "job";  ///< who submits what only the ends of other runs decide: a job that waits for them, or "by-hand"
  int64_t answer_seconds = 60, poll_seconds = 45;
};

/// Every setting with its range, default and help.
const Schema<ClusterProfile>& cluster_schema();

/// Checks everything, and throws UsageError with `origin`, the place in it and the nearest name.
ClusterProfile parse_cluster_profile(const std::string& text, const std::string& origin);
ClusterProfile cluster_profile_of(const nlohmann::json& object, const std::string& origin);

/// CONFIG/clusters/NAME.json
std::filesystem::path cluster_file(const std::string& name);
/// Names of the profiles there are, in alphabetical order.
std::vector<std::string> cluster_names();
/// Throws UsageError where there is none of that name (with the nearest), or where it is wrong.
ClusterProfile load_cluster(const std::string& name);
/// Writes CONFIG/clusters/NAME.json. Throws UsageError where there is one and `replace` is not set, or where the name is no file name.
void save_cluster(const std::string& name, const nlohmann::json& profile, bool replace);

/// "1-12:00:00", "04:00:00", "30:00" or "90" (minutes) in seconds; 0 where it is none of these, or is empty.
int64_t slurm_seconds(const std::string& time);

}  // namespace saccade
