#pragma once
// For programs that report case by case.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace saccade::test {

inline int failed_cases = 0;

inline void report(const std::string& name, bool good, const std::string& what) {
  std::printf("%s %s: %s\n", good ? "ok  " : "FAIL", name.c_str(), what.c_str());
  std::fflush(stdout);
  if (!good) ++failed_cases;
}
/// The exit code.
inline int end_of_cases() {
  std::printf(failed_cases ? "%d cases FAILED\n" : "all cases pass\n", failed_cases);
  return failed_cases ? 1 : 0;
}

inline double largest(const std::vector<double>& x) {
  double most = 0;
  for (double v : x) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace saccade::test
