#pragma once
#include <filesystem>
#include <string>

#include "analysis/launchers/cluster_profile.h"

namespace saccade {

/// The script of the jobs of a study or of one run; sbatch gets the name, the comment, the array and the output file as options, so that it
/// is the same for every round. Called with the folder it is for and the name of the round.
struct BatchScript {
  std::string what;               ///< "the study tuned-tiny"
  std::filesystem::path program;  ///< on the nodes
  int64_t lead = 120;             ///< seconds before the time limit at which it is told to end
};
/// The text, with the SHA-256 of all other lines in its second one. Throws UsageError where the time limit leaves less than twice the lead.
std::string batch_script(const ClusterProfile& profile, const BatchScript& script);
/// The script of the job that submits the next round.
std::string advance_script(const ClusterProfile& profile, const BatchScript& script);

/// Whether the text is as batch_script made it.
bool is_generated(const std::string& script);

/// HOME/slurm/script.sh: an edited one stays and is used; one that nobody edited is put anew. Returns what stands there then.
std::string keep_script(const std::filesystem::path& home, const std::string& generated);
/// The same without writing.
std::string script_to_use(const std::filesystem::path& home, const std::string& generated);
std::filesystem::path script_file(const std::filesystem::path& home);

}  // namespace saccade
