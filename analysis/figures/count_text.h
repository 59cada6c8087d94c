#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace saccade {

/// "61 k", "1.2 M"; "–" where it is not finite.
inline std::string count_text(double value) {
  if (!std::isfinite(value)) return "–";
  static constexpr std::pair<double, const char*> units[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  std::array<char, 32> text{};
  for (const auto& [factor, name] : units)
    if (value >= factor) {
      std::snprintf(text.data(), text.size(), "%.3g%s", value / factor, name);
      return text.data();
    }
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

/// "1 run", "2 runs"; of what has another plural `many`.
inline std::string counted(int64_t count, const std::string& one, const std::string& many = {}) {
  return std::to_string(count) + " " + (count == 1 ? one : many.empty() ? one + "s" : many);
}

}  // namespace saccade
