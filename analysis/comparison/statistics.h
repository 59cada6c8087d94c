#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saccade {

/// NaN of no numbers.
double mean(std::span<const double> values);
/// Sample standard deviation (n − 1); nothing for fewer than two numbers.
std::optional<double> deviation(std::span<const double> values);

/// Of Student's t distribution with `degrees` > 0 degrees of freedom: P(T ≤ t), and the t at which it is `probability` (in (0, 1)).
double student_t_cdf(double t, double degrees);
double student_t_quantile(double probability, double degrees);
/// student_t_quantile(0.975, degrees), which a 95 % interval is made with; up to 64 degrees it is computed once.
double student_t_975(int64_t degrees);

/// What repetitions say of a number.
struct Repeated {
  int64_t count = 0;
  double mean = 0;
  std::optional<double> deviation;  ///< sample standard deviation; two or more
  std::optional<double> half_95;    ///< half of the 95 % interval of the mean, Student t with count − 1 degrees of freedom
};
/// Without the values that are not finite.
Repeated repeated(std::span<const double> values);

/// A paired t test of the differences a − b of seeds that both have.
struct PairedTest {
  Repeated difference;
  std::optional<double> p;       ///< two-sided; from two pairs on
  std::optional<double> p_holm;  ///< corrected for the other tests of its table (holm())
  /// So many pairs more would bring p below 0.05, if mean and deviation stayed; 0: it is already; nothing: one pair alone, or more than
  /// 1 000. After correct_by_holm() of the corrected p.
  std::optional<int64_t> more;
};
/// Equal lengths. Pairs of which one is not finite do not count.
PairedTest paired_test(std::span<const double> a, std::span<const double> b);

/// McNemar's test of items that two answer, exact and two-sided: of those that only one gets right, so many are the first's and so many the
/// other's. 1 where there are none.
double mcnemar_p(int64_t first_alone, int64_t other_alone);

/// Holm's step-down correction of the p values that are there (S. Holm 1979, Scandinavian Journal of Statistics 6, 65), and how many more
/// pairs the corrected ones would take.
void correct_by_holm(std::vector<PairedTest>& tests);

/// "settled", "about 3 more seeds would settle it", "more than 1 000 more seeds", "needs a second seed"
std::string describe_more(const PairedTest& test);

}  // namespace saccade
