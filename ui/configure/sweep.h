#pragma once
#include <string>
#include <vector>

#include "models/json.h"
#include "ui/configure/config_draft.h"

namespace saccade::ui {

/// A study as the editor has it, over the configuration that is being written:
///
///     {"name": "windows", "question": "…", "seeds": "1, 2", "axes": [{"setting": "architecture.window", "kind": "values", "values": "8,
///     16"},
///      {"setting": "training.learning_rate", "kind": "log", "from": "0.001", "to": "0.01", "count": 4}], "tuned": true,
///      "tuning": {an axis}, "extend": true, "every_seed": false,
///      "equal": "parameters", "equal_by": "architecture.width", "branches": "0.5, 0.8"}
///
/// Texts are as they were typed: what they mean, and whether they mean anything, is said when the study file is made of them.
nlohmann::json empty_sweep();

/// Whether runs are made equal in this ("parameters", "state") by settings of the architecture, not by their number of steps.
bool equal_by_settings(const std::string& what);

/// "architecture.window"
std::string dotted_name(const FormField& field);
/// An axis over a setting with values around its value: every choice, on and off, a log range of rates, or half, one and twice of it.
nlohmann::json proposed_axis(const FormField& field, const nlohmann::json& value);

/// The study file (docs/studies.md) with `base` as the config of all runs. Ranges of integer settings are rounded, since a log_range of the
/// file is not. Throws UsageError "/axes/0/from is …; expected …".
nlohmann::json study_file(const nlohmann::json& sweep, const nlohmann::json& base, const std::vector<FormField>& fields);

}  // namespace saccade::ui
