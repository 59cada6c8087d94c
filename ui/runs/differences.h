#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade::ui {

/// One setting in which runs differ, with the value of each run; "–" where a run has no such setting.
struct Difference {
  QString setting;  ///< its last word, "chunk"; with its section where that word is ambiguous
  QString pointer;  ///< "/architecture/chunk"
  QStringList values;
  bool operator==(const Difference&) const = default;
};
/// Names of runs apart. Empty for fewer than two runs.
std::vector<Difference> differences(const std::vector<const Run*>& runs);

/// Every setting of one run and where it comes from, as differences() gives them.
std::vector<Difference> all_settings(const RunInfo& run);

/// A JSON value as a person writes it: 32, exact, prose + code.
QString plainValue(const nlohmann::json& value);

}  // namespace saccade::ui
