#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

namespace saccade {

/// y = E + A x^−a of positive numbers: how losses fall with compute, parameters or tokens (arXiv:2001.08361, section 1.2; with a floor
/// E arXiv:2203.15556, section 3.3).
struct PowerLaw {
  double floor = 0;                     ///< E; 0 of a plain power law
  double log_factor = 0, exponent = 0;  ///< ln A and a
  std::vector<double> residuals;        ///< ln y − ln of what the law says, of every point in the order given
  /// The middle 95 % of the exponents of 1 000 samples of the points drawn with replacement; nothing of fewer than four points.
  std::optional<std::array<double, 2>> exponent_95;
  double at(double x) const;
};

/// ln y = ln A − a ln x by least squares. Points that are not positive and finite do not count; nothing of fewer than two different x.
std::optional<PowerLaw> fit_power_law(std::span<const double> x, std::span<const double> y);

/// Minimises the Huber loss (δ = 1e-3) of ln y − ln(E + A x^−a) from a grid of starts, E ≥ 0, as arXiv:2203.15556, section 3.3 does in two
/// variables. Nothing of fewer than four different x: three numbers go through any three points.
std::optional<PowerLaw> fit_power_law_with_floor(std::span<const double> x, std::span<const double> y);

}  // namespace saccade
