#pragma once
#include "analysis/studies/study.h"

namespace saccade::study_file {

/// The values of an axis, or of what is tuned: those under "values", or under "log_range" {"from": 0.001, "to": 0.008, "count": 4} a
/// geometric grid with both ends, of numbers with four digits between them. Throws UsageError.
nlohmann::json grid_values(const nlohmann::json& axis, const std::string& pointer);

/// /axes of a study file: each over a setting, over bases or over cases, none of which sets what another one sets. Throws UsageError.
std::vector<StudyAxis> read_axes(const nlohmann::json& file);

}  // namespace saccade::study_file
