#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade::ui {

class RunList;

/// One setting in which runs differ, with the value of each run; "–" where a run has no such setting.
struct Difference {
  QString setting;  ///< its last word, "chunk"; with its section where that word is ambiguous
  QString pointer;  ///< "/architecture/chunk"
  QStringList values;
  bool operator==(const Difference&) const = default;
};
/// Names of runs apart. Empty for fewer than two runs.
std::vector<Difference> differences(const std::vector<const Run*>& runs);

/// Runs whose differences are told, with what their columns are called; the baseline stands first, where one is chosen.
struct ComparedRuns {
  std::vector<const Run*> runs;
  QStringList heads;
  bool with_baseline = false;
};
/// Those of the directories that can be read, `most` at most. The baseline is among them whatever the directories, unless they are none.
ComparedRuns compared_runs(const RunList& list, const QStringList& directories, size_t most);

/// Every setting of one run and where it comes from, as differences() gives them.
std::vector<Difference> all_settings(const RunInfo& run);

/// A JSON value as a person writes it: 32, exact, prose + code.
QString plainValue(const nlohmann::json& value);

}  // namespace saccade::ui
