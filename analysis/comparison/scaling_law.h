#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saccade {

/// L = E + A / N^α + B / D^β: how the loss L (nats per token) falls with parameters N and training tokens D (arXiv:2203.15556, section 3.3,
/// equation 2).
struct ScalingLaw {
  /// Its numbers; the exponents say how fast each part falls.
  struct Numbers {
    double floor = 0;             ///< E
    double log_a = 0, alpha = 0;  ///< ln A and α
    double log_b = 0, beta = 0;   ///< ln B and β
    /// Of the number of parameters that is best for C = 6 N D floating-point operations: N ∝ C^(β / (α + β)).
    double optimal_exponent() const { return beta / (alpha + beta); }
  };
  Numbers numbers;
  std::vector<double> residuals;  ///< ln L − ln of what the law says, of every point in the order given; NaN of those that do not count
  size_t points = 0;              ///< that count
  /// The middle 95 % of 1 000 samples of the points drawn with replacement.
  struct Intervals {
    std::array<double, 2> floor, alpha, beta, optimal_exponent;
  };
  Intervals interval_95;
  double at(double parameters, double tokens) const;
};

/// Five numbers are found: fewer points carry no interval of them.
inline constexpr size_t kLeastScalingPoints = 10;

/// Minimises the Huber loss (δ = 1e-3) of ln L − ln(E + A / N^α + B / D^β) from the grid of starts of arXiv:2203.15556, appendix D.3: α and
/// β of 0, 0.5 … 2, ln E of −1, −0.5 … 1, ln A and ln B of 0, 5 … 25. Points that are not positive and finite do not count. Throws
/// UsageError, saying what is missing, where there are fewer than ten, fewer than three different N or D, or where D follows from N, so
/// that nothing tells the two apart.
ScalingLaw fit_scaling_law(std::span<const double> parameters, std::span<const double> tokens, std::span<const double> losses);

}  // namespace saccade
