#pragma once
#include <string>
#include <vector>

#include "analysis/runs/run.h"

namespace saccade {

/// What each layer of a run's hybrid stack mixes with ("Gated DeltaNet", "Attention window 64"); empty where one mixer is in all layers,
/// and for stacks with a mixer or block that this version does not have.
std::vector<std::string> layer_mixers(const RunInfo& info);

/// A series of one layer.
struct LayerSeries {
  std::string name;   ///< "entropy/layer3"
  std::string label;  ///< "layer 3", in a hybrid stack "layer 3 (Attention)"
  double depth = 1;   ///< 0 for the first of the layers that have one … 1 for the last
};
/// Series of a statistic of the layers that have it, first to last: not every mixer reports everything.
std::vector<LayerSeries> layers_with(const Run& run, const std::string& statistic);

}  // namespace saccade
