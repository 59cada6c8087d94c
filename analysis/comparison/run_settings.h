#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// What runs can be gathered by: a setting of their configs, or what else is known of them.
struct RunSetting {
  std::string key;    ///< "/training/learning_rate", a pointer into the config; or architecture, tag, study, state, host
  std::string title;  ///< "learning rate"; with its section where two settings end in the same word
  bool usual = false;
};

/// A run as it is gathered.
struct RunFacts {
  const RunInfo& info;
  const RunNotes* notes = nullptr;  ///< null: it has none
  std::string state = {};           ///< as people read it: "Done"
  std::string study = {};           ///< that it belongs to; empty: none
};

/// "0.003": what stands over the runs that have it. Values with numbers sort by them, what is not set comes last.
struct SettingValue {
  std::string text;
  std::optional<double> number = {};
  bool set = true;
};
bool operator<(const SettingValue& a, const SettingValue& b);

/// The settings in which the runs differ: usual ones first, in their own order, then the others by name. What is only told of runs (tag,
/// study, host) is among them where any has one.
std::vector<RunSetting> differing_settings(const std::vector<RunFacts>& runs);
/// One of them by its key, whether or not any runs differ in it.
RunSetting setting_of(const std::string& key);

/// Under what a run is gathered: one value, of tags one for each.
std::vector<SettingValue> values_of(const RunFacts& run, const std::string& key);

}  // namespace saccade
