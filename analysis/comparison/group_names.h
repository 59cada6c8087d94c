#pragma once
#include <map>
#include <string>
#include <vector>

#include "analysis/comparison/groups.h"

namespace saccade {

/// What each group is called: its architecture, and where several groups have one, the settings in which these differ ("Avey, width 80").
/// Names in `kept` (by Run::setting) stay as they are, so that a group which comes later renames none. In the order of `groups`.
std::vector<std::string> group_names(const std::vector<RunGroup>& groups, const std::map<std::string, std::string>& kept = {});

/// A setting as people write it: 32, on, prose + code.
std::string plain_text(const nlohmann::json& value);

}  // namespace saccade
