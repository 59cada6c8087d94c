#pragma once
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade {

/// Replaces setting names of earlier versions in a config, in place, by today's; a value whose unit has changed is converted.
/// Returns what was replaced ("training.clip is now training.max_grad_norm"), nothing when every name is today's. Whether names
/// and values are valid is for the schemas to say. Throws UsageError when one setting is given under both names.
std::vector<std::string> rename_settings(nlohmann::json& config);

/// As rename_settings for a config read from `origin`, all in one line for a person: "run.json: training.clip is now …". Empty
/// when every name is today's.
std::string rename_settings(nlohmann::json& config, const std::string& origin);

/// Fills in, in place, settings that the config of a stored run lacks because it is older than they are, where it was made with
/// another value than today's default. For names of today (rename_settings first), and not for configs that users write.
void fill_old_defaults(nlohmann::json& config);

/// Removes from `config` the setting that `path` ("training.clip") calls by its other name, so that an override may use either.
void remove_other_name(nlohmann::json& config, const std::string& path);

/// Today's name of a setting without its section: "host" → "block"; the name itself where it has not changed.
std::string current_setting_name(const std::string& name);

}  // namespace saccade
