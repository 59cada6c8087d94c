#pragma once
#include <QString>
#include <vector>

#include "models/json.h"

namespace saccade::ui {

/// A host as its files tell it.
struct HostNow {
  QString name;
  QString state;                ///< "connected", "offline, as of 14:05"
  QString details = {};         ///< where it is mirrored, and why it is not reached; a line each
  nlohmann::json profile = {};  ///< as the form has it
  QString problem = {};         ///< why the profile cannot be read
  bool mirrored = false;        ///< its folder is there
};

/// All hosts, by name. Reads files.
std::vector<HostNow> read_hosts();

}  // namespace saccade::ui
