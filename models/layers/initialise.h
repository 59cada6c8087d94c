#pragma once
#include <cmath>
#include <string>

#include "models/mixer.h"

namespace saccade {

/// Initial std of matrices in the Transformer blocks, as in GPT-2 (Radford et al. 2019).
constexpr double kDeviation = 0.02;

/// Of projections that end in the residual stream: it receives two of them a layer.
inline double residual_deviation(const ModelShape& shape) {
  return shape.scaled_residual ? kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers)) : kDeviation;
}

/// The usual bound of a linear layer's uniform initial values: 1 / sqrt(inputs).
inline double fan_in_bound(int64_t inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); }

/// b with softplus(b) = s.
inline double inverse_softplus(double s) { return s + std::log(-std::expm1(-s)); }

/// Bias of a step size from u in [0, 1): softplus(bias) is log-uniform in [0.001, 0.1] (Mamba, section 3.6).
inline double step_bias(double u) { return inverse_softplus(std::exp(u * std::log(0.1 / 0.001) + std::log(0.001))); }

/// "layer3.query"
inline std::string layer_name(int64_t layer, const std::string& name) { return "layer" + std::to_string(layer) + "." + name; }

}  // namespace saccade
