#include "analysis/launchers/launcher.h"

#include "analysis/launchers/cluster_profile.h"
#include "analysis/launchers/local_launcher.h"
#include "analysis/launchers/slurm_launcher.h"
#include "analysis/runs/files.h"
#include "analysis/runs/sealed_json.h"

namespace saccade {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

fs::path chosen_file(const fs::path& home) { return home / "slurm" / "cluster.json"; }

[[noreturn]] void refuse(const fs::path& home) { throw DataError(chosen_file(home).string() + " is damaged"); }

/// Null where none is chosen; else it names one.
Json read_chosen(const fs::path& home) {
  std::error_code none;
  if (!fs::exists(chosen_file(home), none)) return {};
  Json chosen = read_sealed_json(chosen_file(home));
  if (!chosen.contains("cluster") || !chosen["cluster"].is_string()) refuse(home);
  return chosen;
}

/// The profile as it is today, else as it was when it was chosen: on the nodes there may be none.
ClusterProfile profile_of(const Json& chosen, const fs::path& home) try {
  const std::string name = chosen.at("cluster");
  std::error_code none;
  ClusterProfile profile =
      fs::exists(cluster_file(name), none) ? load_cluster(name) : cluster_profile_of(chosen.at("profile"), chosen_file(home).string());
  if (chosen.contains("at_a_time")) profile.at_a_time = chosen.at("at_a_time");
  if (profile.at_a_time < 1) refuse(home);
  return profile;
} catch (const Json::exception&) {
  refuse(home);
}

}  // namespace

std::string chosen_launcher(const fs::path& home) {
  const Json chosen = read_chosen(home);
  return chosen.is_null() ? "local" : chosen.at("cluster").get<std::string>();
}

std::unique_ptr<Launcher> launcher_of(const fs::path& home, const fs::path& program) {
  const Json chosen = read_chosen(home);
  if (chosen.is_null()) return std::make_unique<LocalLauncher>(home, program);
  return std::make_unique<SlurmLauncher>(home, chosen.at("cluster"), profile_of(chosen, home), program);
}

void choose_launcher(const fs::path& home, const std::string& name, std::optional<int64_t> at_a_time) {
  const std::string before = chosen_launcher(home);
  if (before != name && !launcher_of(home, {})->jobs().empty())
    throw UsageError(home.string() + " has jobs in the " + launcher_of(home, {})->place() + "; stop them before it goes elsewhere");
  if (name == "local") {
    remove_run_file(chosen_file(home));
    return;
  }
  Json chosen{{"format_version", 1}, {"cluster", name}, {"profile", cluster_schema().write(load_cluster(name))}};
  if (at_a_time) chosen["at_a_time"] = *at_a_time;
  make_run_folder(home / "slurm");
  write_sealed_json(chosen_file(home), chosen);
}

}  // namespace saccade
