#include "models/corpus/unigram_scores.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "models/json.h"

namespace saccade {
namespace {

constexpr int kGreatestPower = 308;

/// The double nearest to 10^n, n = 0 … 308.
double power_of_ten(int n) {
  static const auto powers = [] {
    std::array<double, kGreatestPower + 1> made{};
    for (int i = 0; i <= kGreatestPower; ++i) {
      const std::string text = "1e" + std::to_string(i);
      std::from_chars(text.data(), text.data() + text.size(), made[static_cast<size_t>(i)]);
    }
    return made;
  }();
  return powers[static_cast<size_t>(n)];
}

double scaled(uint64_t digits, int64_t exponent) {
  auto value = static_cast<double>(digits);
  if (value == 0) return value;
  for (; exponent < -kGreatestPower && value != 0; exponent += kGreatestPower) value /= power_of_ten(kGreatestPower);
  if (exponent > kGreatestPower) return std::numeric_limits<double>::infinity();
  if (value == 0) return value;
  return exponent >= 0 ? value * power_of_ten(static_cast<int>(exponent)) : value / power_of_ten(static_cast<int>(-exponent));
}

class VocabNumbers : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<double> numbers;

  bool key(string_t& name) override {
    if (depth_ < keys_.size()) keys_[depth_] = name;
    return true;
  }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool number_integer(number_integer_t value) override { return take(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(static_cast<double>(value)); }
  bool number_float(number_float_t, const string_t& text) override { return take(serde_number(text)); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  bool open() {
    if (++depth_ < keys_.size()) keys_[depth_].clear();
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  bool take(double value) {  // { "model": { "vocab": [ [ "token", value
    if (depth_ == 4 && keys_[1] == "model" && keys_[2] == "vocab") numbers.push_back(value);
    return true;
  }

  size_t depth_ = 0;
  std::array<std::string, 4> keys_;  ///< at depth 1, 2, 3
};

}  // namespace

double serde_number(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  if (negative) decimal.remove_prefix(1);
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool in_fraction = false, full = false;
  size_t at = 0;
  for (; at < decimal.size() && (decimal[at] == '.' || (decimal[at] >= '0' && decimal[at] <= '9')); ++at) {
    if (decimal[at] == '.') {
      in_fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(decimal[at] - '0');
    full |= digits > (std::numeric_limits<uint64_t>::max() - digit) / 10;
    if (full) {
      exponent += in_fraction ? 0 : 1;
    } else {
      digits = 10 * digits + digit;
      exponent -= in_fraction ? 1 : 0;
    }
  }
  if (at < decimal.size()) {  // e+12
    std::string_view power = decimal.substr(at + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    int64_t written = 0;
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), written);
    if (error == std::errc::result_out_of_range) written = power.starts_with('-') ? -1'000'000'000 : 1'000'000'000;
    exponent += std::clamp<int64_t>(written, -1'000'000'000, 1'000'000'000);
  }
  const double value = scaled(digits, exponent);
  return negative ? -value : value;
}

std::vector<double> unigram_scores(const std::string& file) {
  VocabNumbers handler;
  nlohmann::json::sax_parse(file, &handler);
  return std::move(handler.numbers);
}

}  // namespace saccade
