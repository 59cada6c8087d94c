#pragma once
#include "analysis/figures/page.h"

namespace saccade {

/// Right answers of runs that were trained on generated tasks (docs/tasks.md): their share at each run's last evaluation while training,
/// over a number in the names of the domains ("length", "pairs") or of the run (run_number()), a curve for each group of seeds. Domains
/// that stand at the same number count as one, by their mean. Bands are 95 % intervals over seeds (Student's t, cut off at 0 and 1); of one
/// seed there is none. Where all that is shown was trained up to the same number, a line stands there, which the axis names.
Figure answer_figure(const DrawnSet& drawn, const std::string& against);

}  // namespace saccade
