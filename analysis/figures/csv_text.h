#pragma once
#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace saccade {

/// The shortest text that reads back as the same number, whatever the locale; "nan" for NaN.
template <class T>
std::string csv_number(T value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// A field of CSV (RFC 4180): in quotes where it has to be.
inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace saccade
