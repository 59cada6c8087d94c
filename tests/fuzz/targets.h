#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::test {

/// What our code makes of any bytes. It returns, or throws an Error; everything else is a find.
struct FuzzTarget {
  std::string name;
  void (*run)(std::string_view bytes);
  int tries = 1500;  ///< changed seeds in the ordinary test; fewer where each starts a process
};
/// All of them, by name.
const std::vector<FuzzTarget>& fuzz_targets();
/// Runs one, and lets no Error out. Ends the program where something is wrong with what was accepted.
void run_target(const FuzzTarget& target, std::string_view bytes);

// For the targets.
std::vector<FuzzTarget> text_targets();     ///< what people and other programs write
std::vector<FuzzTarget> stored_targets();   ///< what this program keeps beside runs and corpora
std::vector<FuzzTarget> remote_targets();   ///< what comes over the channel to a host, and is kept of it
std::vector<FuzzTarget> cluster_targets();  ///< profiles of hosts and clusters, what Slurm says, and what is kept of jobs and holders
std::vector<FuzzTarget> hdf5_targets();     ///< checkpoints and captures, whatever their groups hold

/// Ends the program unless `condition` holds.
void require(bool condition, const char* what);
/// A folder of this process, in memory where the system has such; the user's data and cache lie in it too.
const std::filesystem::path& fuzz_folder();
/// A file there.
std::filesystem::path written(const std::string& name, std::string_view bytes);

}  // namespace saccade::test
