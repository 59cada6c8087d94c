#pragma once
#include <vector>

#include "models/probe.h"

namespace saccade {

/// An empty record that wants what a probe wants, for a part of a layer whose heads follow those that `before` has reported (null: the
/// first part).
ProbeRecord record_of_part(Probe& probe, const ProbeRecord* before);

/// Reports what mixers that stand side by side in a layer have reported, as one mixer with the heads of all of them, the first one's
/// first. Where a part that reports heads lacks a number or a map that another has, its heads have none: NaN, −1 in `selected` and in what
/// was chosen, −inf in `score`. A map whose sizes beyond the heads differ is left out; where the parts choose among different candidates
/// only `weights` is left.
void report_parts(Probe& probe, int64_t layer, const std::vector<ProbeRecord>& parts);

}  // namespace saccade
