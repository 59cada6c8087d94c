#pragma once
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <span>

namespace saccade {

inline constexpr double kHuberDelta = 1e-3;  ///< of residuals of logarithms, as arXiv:2203.15556, section 3.3

/// r² / 2 up to δ, δ (|r| − δ / 2) beyond.
inline double huber_loss(double residual) {
  const double r = std::abs(residual);
  return r <= kHuberDelta ? r * r / 2 : kHuberDelta * (r - kHuberDelta / 2);
}

/// What minimise_huber() has found: the parameters and the sum of their Huber losses.
template <int N>
struct HuberFit {
  Eigen::Vector<double, N> parameters;
  double loss = 0;
};

/// Levenberg–Marquardt from `start`, each residual weighted so that the squares' gradient is the Huber loss's. `law(parameters, i, slope)`
/// gives what the law says in the place of wanted[i] and fills the slopes by parameter.
template <int N, class Law>
HuberFit<N> minimise_huber(const Eigen::Vector<double, N>& start, std::span<const double> wanted, Law law, int rounds) {
  using Vector = Eigen::Vector<double, N>;
  using Matrix = Eigen::Matrix<double, N, N>;
  Vector slope;
  const auto loss_of = [&](const Vector& parameters) {
    double sum = 0;
    for (size_t i = 0; i < wanted.size(); ++i) sum += huber_loss(wanted[i] - law(parameters, i, slope));
    return sum;
  };
  HuberFit<N> best{start, loss_of(start)};
  double damping = 1e-3;
  for (int round = 0; round < rounds && damping < 1e12; ++round) {
    Matrix normal = Matrix::Zero();
    Vector gradient = Vector::Zero();
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double r = wanted[i] - law(best.parameters, i, slope);
      const double weight = std::abs(r) <= kHuberDelta ? 1 : kHuberDelta / std::abs(r);
      normal += weight * slope * slope.transpose(), gradient += weight * r * slope;
    }
    const Matrix damped = normal + damping * Matrix(normal.diagonal().asDiagonal()) + 1e-15 * Matrix::Identity();
    const Vector step = damped.ldlt().solve(gradient);
    const Vector next = best.parameters + step.cwiseMax(-5).cwiseMin(5);
    if (const double found = loss_of(next); found < best.loss) {
      const bool done = best.loss - found < 1e-14 * best.loss;
      best = {next, found}, damping = std::max(damping / 5, 1e-12);
      if (done) break;
    } else {
      damping *= 4;
    }
  }
  return best;
}

}  // namespace saccade
