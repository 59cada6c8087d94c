#pragma once
#include <cmath>
#include <string>

#include "models/architectures/registry.h"

namespace saccade {

/// Initial deviation of matrices in the Transformer hosts (specification 1.1).
constexpr double kDeviation = 0.02;

/// Of projections that end in the residual stream: it receives two of them a layer.
inline double residual_deviation(const ModelShape& shape) { return kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers)); }

/// "layer3.query"
inline std::string layer_name(int64_t layer, const std::string& name) { return "layer" + std::to_string(layer) + "." + name; }

}  // namespace saccade
