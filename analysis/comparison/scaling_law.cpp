#include "analysis/comparison/scaling_law.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/comparison/huber_fit.h"
#include "kernels/engine/error.h"
#include "kernels/engine/random.h"

namespace saccade {
namespace {

using Vector = Eigen::Vector<double, 5>;  // ln E, ln A, α, ln B, β
using Fit = HuberFit<5>;

/// ln N, ln D and ln L of the points that count.
struct Points {
  std::vector<double> n, d, loss;
  std::vector<size_t> place;  ///< in what was given
  size_t size() const { return loss.size(); }
};

Points points_of(std::span<const double> n, std::span<const double> d, std::span<const double> losses) {
  const auto counts = [](double v) { return v > 0 && std::isfinite(v); };
  Points points;
  for (size_t i = 0; i < std::min({n.size(), d.size(), losses.size()}); ++i)
    if (counts(n[i]) && counts(d[i]) && counts(losses[i])) {
      points.n.push_back(std::log(n[i])), points.d.push_back(std::log(d[i])), points.loss.push_back(std::log(losses[i]));
      points.place.push_back(i);
    }
  return points;
}

/// What a line through (ln N, ln D) leaves of the spread of ln D.
double share_apart(const Points& points) {
  const auto size = static_cast<double>(points.size());
  double mean_n = 0, mean_d = 0, nn = 0, nd = 0, dd = 0;
  for (size_t i = 0; i < points.size(); ++i) mean_n += points.n[i] / size, mean_d += points.d[i] / size;
  for (size_t i = 0; i < points.size(); ++i) {
    const double n = points.n[i] - mean_n, d = points.d[i] - mean_d;
    nn += n * n, nd += n * d, dd += d * d;
  }
  return 1 - nd * nd / (nn * dd);
}

/// Why five numbers cannot be told from these points; empty where they can.
std::string missing(const Points& points) {
  const auto different = [](const std::vector<double>& v) { return std::set<double>(v.begin(), v.end()).size(); };
  const std::string needs = "a law of parameters and tokens needs ";
  if (points.size() < kLeastScalingPoints)
    return needs + std::to_string(kLeastScalingPoints) + " runs; there are " + std::to_string(points.size());
  for (const auto& [values, name] : {std::pair{&points.n, "numbers of parameters"}, std::pair{&points.d, "numbers of tokens"}})
    if (different(*values) < 3) return needs + "three different " + name + "; there are " + std::to_string(different(*values));
  if (share_apart(points) < 1e-3) return needs + "tokens that do not follow from the parameters";
  return {};
}

/// ln(E + A / N^α + B / D^β) of a point, by log-sum-exp.
double log_law(const Vector& p, double n, double d, Vector& slope) {
  const double a = p[1] - p[2] * n, b = p[3] - p[4] * d, most = std::max({p[0], a, b});
  const double of_e = std::exp(p[0] - most), of_a = std::exp(a - most), of_b = std::exp(b - most), sum = of_e + of_a + of_b;
  slope << of_e / sum, of_a / sum, -n * of_a / sum, of_b / sum, -d * of_b / sum;
  return most + std::log(sum);
}

Fit descend(const Points& points, const Vector& start, int rounds) {
  const auto law = [&](const Vector& p, size_t i, Vector& slope) { return log_law(p, points.n[i], points.d[i], slope); };
  return minimise_huber<5>(start, points.loss, law, rounds);
}

/// A short way down from every start, the whole way from the lowest.
Fit from_all_starts(const Points& points) {
  constexpr size_t kLowest = 40;
  std::vector<Fit> fits;
  for (const double alpha : {0.0, 0.5, 1.0, 1.5, 2.0})
    for (const double beta : {0.0, 0.5, 1.0, 1.5, 2.0})
      for (const double e : {-1.0, -0.5, 0.0, 0.5, 1.0})
        for (const double a : {0.0, 5.0, 10.0, 15.0, 20.0, 25.0})
          for (const double b : {0.0, 5.0, 10.0, 15.0, 20.0, 25.0}) fits.push_back(descend(points, Vector{e, a, alpha, b, beta}, 12));
  const auto lower = [](const Fit& x, const Fit& y) { return x.loss < y.loss; };
  std::partial_sort(fits.begin(), fits.begin() + kLowest, fits.end(), lower);
  fits.resize(kLowest);
  for (Fit& fit : fits) fit = descend(points, fit.parameters, 2000);
  return *std::min_element(fits.begin(), fits.end(), lower);
}

ScalingLaw::Numbers numbers_of(const Vector& p) { return {std::exp(p[0]), p[1], p[2], p[3], p[4]}; }

ScalingLaw::Intervals intervals(const Points& points, const Vector& all) {
  constexpr size_t kSamples = 1000;
  const Random random(1, "scaling law");
  std::array<std::vector<double>, 4> found;
  for (size_t s = 0, drawn = 0; s < kSamples; ++s) {
    Points sample;
    for (size_t i = 0; i < points.size(); ++i) {
      const auto at = static_cast<size_t>(random.below(points.size(), drawn++));
      sample.n.push_back(points.n[at]), sample.d.push_back(points.d[at]), sample.loss.push_back(points.loss[at]);
    }
    const ScalingLaw::Numbers law = numbers_of(descend(sample, all, 200).parameters);
    const std::array<double, 4> values{law.floor, law.alpha, law.beta, law.optimal_exponent()};
    for (size_t i = 0; i < values.size(); ++i) found[i].push_back(values[i]);
  }
  const auto middle = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    const auto quantile = [&](double q) { return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)]; };
    return std::array{quantile(0.025), quantile(0.975)};
  };
  return {middle(found[0]), middle(found[1]), middle(found[2]), middle(found[3])};
}

}  // namespace

double ScalingLaw::at(double parameters, double tokens) const {
  return numbers.floor + std::exp(numbers.log_a - numbers.alpha * std::log(parameters)) +
         std::exp(numbers.log_b - numbers.beta * std::log(tokens));
}

ScalingLaw fit_scaling_law(std::span<const double> parameters, std::span<const double> tokens, std::span<const double> losses) {
  const Points points = points_of(parameters, tokens, losses);
  if (const std::string why = missing(points); !why.empty()) throw UsageError(why);
  const Vector best = from_all_starts(points).parameters;
  ScalingLaw law{numbers_of(best), std::vector<double>(losses.size(), std::nan("")), points.size(), intervals(points, best)};
  for (size_t i = 0; i < points.size(); ++i)
    law.residuals[points.place[i]] = points.loss[i] - std::log(law.at(parameters[points.place[i]], tokens[points.place[i]]));
  return law;
}

}  // namespace saccade
