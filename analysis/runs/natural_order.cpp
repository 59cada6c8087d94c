#include "analysis/runs/natural_order.h"

#include <charconv>

namespace saccade {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Number {
  double value = 0;
  size_t length = 0;  ///< of its text; 0: there is none
};

Number number_at_start(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return {};
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value, std::chars_format::fixed);
  number.length = error == std::errc{} ? static_cast<size_t>(end - text.data()) : 0;
  return number;
}

}  // namespace

bool natural_before(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    const Number in_a = number_at_start(a), in_b = number_at_start(b);
    if (in_a.length > 0 && in_b.length > 0) {
      if (in_a.value != in_b.value) return in_a.value < in_b.value;
      a.remove_prefix(in_a.length), b.remove_prefix(in_b.length);
    } else {
      if (a.front() != b.front()) return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
      a.remove_prefix(1), b.remove_prefix(1);
    }
  }
  return a.empty() && b.empty() ? whole_a < whole_b : a.empty();
}

}  // namespace saccade
