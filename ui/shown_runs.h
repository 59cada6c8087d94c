#pragma once
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/figures/palette.h"

namespace saccade::ui {

using SharedRun = std::shared_ptr<const Run>;

/// Runs of one setting: one thing in every chart and table, unless its seeds are looked at one by one.
struct ShownGroup {
  QString key;   ///< the same in every session
  RunLook look;  ///< of the mean, or of its only run
  std::vector<SharedRun> seeds;
  std::vector<RunLook> looks;  ///< of the seeds one by one
  bool opened = false;
};

/// What every page, chart, table and export shows. Never changes: hold it as long as its runs are needed, in any thread.
struct ShownRuns {
  std::vector<ShownGroup> groups;
  QString baseline;  ///< directory of the run that others are measured against; empty: the first

  RunSet runs() const;
  DrawnSet drawn() const;
  /// The thing that a run is part of, as it is drawn; nothing when the run is not shown.
  std::optional<DrawnRuns> drawn_with(const QString& directory) const;
};

}  // namespace saccade::ui
