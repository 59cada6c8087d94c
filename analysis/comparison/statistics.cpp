#include "analysis/comparison/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace saccade {
namespace {

constexpr double kLevel = 0.05;

/// The continued fraction of the incomplete beta function (Lentz's method; Press et al., Numerical Recipes, 3rd ed., section 6.4).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kExact = 1e-15;
  const auto safe = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / safe(1 - (a + b) * x / (a + 1)), h = d;
  for (int m = 1; m < 10000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / safe(1 + even * d), c = safe(1 + even / c);
    h *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / safe(1 + odd * d), c = safe(1 + odd / c);
    const double factor = d * c;
    h *= factor;
    if (std::abs(factor - 1) < kExact) break;
  }
  return h;
}

/// The regularized incomplete beta function I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// Two-sided, of a mean difference of `pairs`.
double p_of(double mean, double deviation, int64_t pairs) {
  if (deviation == 0) return mean == 0 ? 1 : 0;
  const double t = std::abs(mean) * std::sqrt(static_cast<double>(pairs)) / deviation;
  return 2 * student_t_cdf(-t, static_cast<double>(pairs - 1));
}

/// How many more pairs would have p below `level`, if mean and deviation stayed. It falls with the number of pairs, so halving finds it.
std::optional<int64_t> more_pairs(const Repeated& d, double level) {
  constexpr int64_t kMost = 1000;
  const auto settles = [&](int64_t more) { return p_of(d.mean, *d.deviation, d.count + more) < level; };
  if (settles(0)) return 0;
  if (!settles(kMost)) return {};
  int64_t too_few = 0, enough = kMost;
  while (enough - too_few > 1) {
    const int64_t middle = (too_few + enough) / 2;
    (settles(middle) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> deviation(std::span<const double> values) {
  if (values.size() < 2) return {};
  const double m = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - m) * (v - m);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double student_t_cdf(double t, double degrees) {
  const double tail = 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double probability, double degrees) {
  if (probability < 0.5) return -student_t_quantile(1 - probability, degrees);
  double low = 0, high = 1;
  while (student_t_cdf(high, degrees) < probability) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-13 * high; ++i) {
    const double middle = (low + high) / 2;
    (student_t_cdf(middle, degrees) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double student_t_975(int64_t degrees) {
  static const std::array<double, 64> first = [] {  // asked for by every group of seeds, and every point of a band
    std::array<double, 64> values{};
    for (size_t i = 0; i < values.size(); ++i) values[i] = student_t_quantile(1 - kLevel / 2, static_cast<double>(i + 1));
    return values;
  }();
  return degrees <= 64 ? first.at(static_cast<size_t>(degrees - 1)) : student_t_quantile(1 - kLevel / 2, static_cast<double>(degrees));
}

Repeated repeated(std::span<const double> values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  Repeated result{static_cast<int64_t>(finite.size()), mean(finite), deviation(finite), {}};
  if (!result.deviation) return result;
  const auto n = static_cast<double>(finite.size());
  result.half_95 = student_t_975(result.count - 1) * *result.deviation / std::sqrt(n);
  return result;
}

PairedTest paired_test(std::span<const double> a, std::span<const double> b) {
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) differences.push_back(a[i] - b[i]);
  PairedTest test{repeated(differences), {}, {}, {}};
  const Repeated& d = test.difference;
  if (!d.deviation) return test;
  test.p = p_of(d.mean, *d.deviation, d.count);
  test.more = more_pairs(d, kLevel);
  return test;
}

double mcnemar_p(int64_t first_alone, int64_t other_alone) {
  const auto n = static_cast<double>(first_alone + other_alone);
  double tail = 0;  // of the binomial distribution with n throws of 1 / 2
  for (int64_t k = 0; k <= std::min(first_alone, other_alone); ++k) {
    const auto at = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(at + 1) - std::lgamma(n - at + 1) - n * std::numbers::ln2);
  }
  return std::min(1.0, 2 * tail);
}

void correct_by_holm(std::vector<PairedTest>& tests) {
  std::vector<PairedTest*> order;
  for (PairedTest& test : tests)
    if (test.p) order.push_back(&test);
  std::stable_sort(order.begin(), order.end(), [](const PairedTest* x, const PairedTest* y) { return *x->p < *y->p; });
  double largest = 0;
  std::optional<int64_t> most = 0;  // of the tests before, each of which must be settled first
  for (size_t i = 0; i < order.size(); ++i) {
    PairedTest& test = *order[i];
    const auto left = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, left * *test.p));
    test.p_holm = largest;
    if (!test.difference.deviation) continue;
    const std::optional<int64_t> own = more_pairs(test.difference, kLevel / left);
    most = own && most ? std::optional(std::max(*own, *most)) : std::nullopt;
    test.more = most;
  }
}

std::string describe_more(const PairedTest& test) {
  if (test.difference.count < 2) return "needs a second seed";
  if (!test.more) return "more than 1 000 more seeds";
  if (*test.more == 0) return "settled";
  return "about " + std::to_string(*test.more) + " more seed" + (*test.more == 1 ? "" : "s") + " would settle it";
}

}  // namespace saccade
