#include "analysis/comparison/power_law.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "analysis/comparison/huber_fit.h"
#include "kernels/engine/random.h"

namespace saccade {
namespace {

/// ln x and ln y of the points that count.
struct Points {
  std::vector<double> x, y;
  std::vector<size_t> place;  ///< in what was given
  size_t different() const { return std::set<double>(x.begin(), x.end()).size(); }
};

Points points_of(std::span<const double> x, std::span<const double> y) {
  Points points;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (x[i] > 0 && y[i] > 0 && std::isfinite(x[i]) && std::isfinite(y[i])) {
      points.x.push_back(std::log(x[i])), points.y.push_back(std::log(y[i]));
      points.place.push_back(i);
    }
  return points;
}

/// ln(E + A x^−a) of ln x.
double log_law(const PowerLaw& law, double x) {
  const double power = law.log_factor - law.exponent * x;
  return law.floor > 0 ? std::log(law.floor + std::exp(power)) : power;
}

PowerLaw line(const Points& points) {
  const auto n = static_cast<double>(points.x.size());
  double mean_x = 0, mean_y = 0, sum_xx = 0, sum_xy = 0;
  for (size_t i = 0; i < points.x.size(); ++i) mean_x += points.x[i] / n, mean_y += points.y[i] / n;
  for (size_t i = 0; i < points.x.size(); ++i) {
    sum_xx += (points.x[i] - mean_x) * (points.x[i] - mean_x);
    sum_xy += (points.x[i] - mean_x) * (points.y[i] - mean_y);
  }
  PowerLaw law;
  law.exponent = -sum_xy / sum_xx;
  law.log_factor = mean_y + law.exponent * mean_x;
  return law;
}

double huber(const Points& points, const PowerLaw& law) {
  double sum = 0;
  for (size_t i = 0; i < points.x.size(); ++i) sum += huber_loss(points.y[i] - log_law(law, points.x[i]));
  return sum;
}

/// In ln E, ln A and a.
PowerLaw descend(const Points& points, const PowerLaw& from, int rounds) {
  const auto law_of = [](const Eigen::Vector3d& p) { return PowerLaw{std::exp(p[0]), p[1], p[2], {}, {}}; };
  const auto predict = [&](const Eigen::Vector3d& p, size_t i, Eigen::Vector3d& slope) {
    const PowerLaw law = law_of(p);
    const double fitted = log_law(law, points.x[i]);
    const double share = law.floor / std::exp(fitted);  // of the floor in what the law says
    slope = {share, 1 - share, -(1 - share) * points.x[i]};
    return fitted;
  };
  const Eigen::Vector3d start{std::log(from.floor), from.log_factor, from.exponent};
  return law_of(minimise_huber<3>(start, points.y, predict, rounds).parameters);
}

PowerLaw with_floor(const Points& points) {
  const double least = std::exp(*std::min_element(points.y.begin(), points.y.end()));
  PowerLaw best = line(points);
  for (const double share : {0.05, 0.3, 0.6, 0.9, 0.99}) {
    Points above = points;
    for (double& y : above.y) y = std::log(std::exp(y) - share * least);
    PowerLaw start = line(above);
    start.floor = share * least;
    if (PowerLaw found = descend(points, start, 500); huber(points, found) < huber(points, best)) best = std::move(found);
  }
  return best;
}

/// `again`: the law of other points, from that of all of them.
std::optional<PowerLaw> fit(std::span<const double> x, std::span<const double> y, size_t least,
                            const std::function<PowerLaw(const Points&)>& how,
                            const std::function<PowerLaw(const Points&, const PowerLaw& all)>& again) {
  const Points points = points_of(x, y);
  if (points.different() < least) return {};
  PowerLaw law = how(points);
  law.residuals.assign(std::min(x.size(), y.size()), std::nan(""));
  for (size_t i = 0; i < points.x.size(); ++i) law.residuals[points.place[i]] = points.y[i] - log_law(law, points.x[i]);
  if (points.x.size() < 4) return law;
  constexpr size_t kSamples = 1000;
  const Random random(1, "power law");
  std::vector<double> exponents;
  for (size_t s = 0, drawn = 0; s < kSamples; ++s) {
    Points sample;
    for (size_t i = 0; i < points.x.size(); ++i) {
      const auto at = static_cast<size_t>(random.below(points.x.size(), drawn++));
      sample.x.push_back(points.x[at]), sample.y.push_back(points.y[at]);
    }
    if (sample.different() >= least) exponents.push_back(again(sample, law).exponent);
  }
  if (exponents.size() < kSamples / 2) return law;
  std::sort(exponents.begin(), exponents.end());
  const auto quantile = [&](double q) { return exponents[static_cast<size_t>(q * static_cast<double>(exponents.size() - 1) + 0.5)]; };
  law.exponent_95 = {quantile(0.025), quantile(0.975)};
  return law;
}

}  // namespace

double PowerLaw::at(double x) const { return std::exp(log_law(*this, std::log(x))); }

std::optional<PowerLaw> fit_power_law(std::span<const double> x, std::span<const double> y) {
  return fit(x, y, 2, line, [](const Points& sample, const PowerLaw&) { return line(sample); });
}

std::optional<PowerLaw> fit_power_law_with_floor(std::span<const double> x, std::span<const double> y) {
  return fit(x, y, 4, with_floor,
             [](const Points& sample, const PowerLaw& all) { return all.floor > 0 ? descend(sample, all, 40) : line(sample); });
}

}  // namespace saccade
