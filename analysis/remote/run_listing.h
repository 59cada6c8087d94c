#pragma once
#include <map>
#include <string>

#include "analysis/remote/served_folder.h"
#include "models/json.h"

namespace saccade {

inline constexpr const char* kTaskResults = "tasks";  ///< folder of a run with its scores (analysis/tasks/task_run.h)

/// What stands in a served folder, by the name of each run or study there: {"kind": "run" | "study", "live": null | {"process", "host"},
/// "files": {"run.json": [size, "version"], "captures/step-5.h5": …}}. A version is another one whenever the file may be.
/// Runs are those directly there, those of studies and cooldown branches. Links and what nobody can read are left out.
using RunListing = std::map<std::string, nlohmann::json>;
RunListing list_served(const ServedFolder& folder);

/// What is another since `before`, which becomes `now`: {"folders": {name: entry}, "gone": [names]}.
nlohmann::json listing_changes(RunListing& before, RunListing now);

}  // namespace saccade
