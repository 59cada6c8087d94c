#pragma once
#include "analysis/studies/cells.h"

namespace saccade {

/// What a config's check says of a run, with the study's file and, where one of the file's settings is at fault, its place there:
/// "FILE: /axes/0/setting: study, run …: /architecture has no setting …". `settings`: assignments of the run, later ones count.
std::string blamed(const Study& study, const std::vector<std::string>& settings, const std::string& message);

}  // namespace saccade
