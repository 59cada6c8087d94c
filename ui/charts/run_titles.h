#pragma once
#include <QString>
#include <vector>

#include "analysis/figures/figure.h"

namespace saccade::ui {

class RunList;

/// Architectures of the whole list, visible or not: with them a colour stays when runs are hidden.
Titles run_titles(const RunList& runs);
/// "Top-1 Chunk exact, seed 2"
QString run_label(const Run& run);

}  // namespace saccade::ui
