#pragma once
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

namespace saccade {

/// A number as tables print it, by a pattern of printf like "%.3f"; "–" where there is none or it is not finite.
inline std::string number_text(const char* pattern, const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "–";
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), pattern, *value);
  return text.data();
}

}  // namespace saccade
