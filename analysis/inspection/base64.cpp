#include "analysis/inspection/base64.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/engine/error.h"

namespace saccade {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are sent as they lie in memory");

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> digit_values() {
  std::array<int8_t, 256> values{};
  for (int8_t& v : values) v = -1;
  for (size_t i = 0; i < kDigits.size(); ++i) values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  return values;
}
constexpr std::array<int8_t, 256> kValues = digit_values();

}  // namespace

std::string base64_of_floats(std::span<const float> values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  const size_t size = values.size_bytes();
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (size_t i = 0; i < size; i += 3) {
    const size_t here = std::min<size_t>(3, size - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < here ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= here ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::vector<float> floats_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) throw DataError("base64 of " + std::to_string(text.size()) + " characters; expected a multiple of 4");
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0, size = text.size() / 4 * 3 - padding;
  if (size % sizeof(float) != 0) throw DataError("base64 of " + std::to_string(size) + " bytes; expected whole floats");
  std::vector<uint8_t> bytes;
  bytes.reserve(size + 2);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 4; ++j) {
      const bool pad = i + j >= text.size() - padding;
      const int8_t value = pad ? int8_t{0} : kValues[static_cast<uint8_t>(text[i + j])];
      if (value < 0) throw DataError("base64 has a character that is none of its digits");
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    for (size_t j = 0; j < 3; ++j) bytes.push_back(static_cast<uint8_t>(bits >> (16 - 8 * j)));
  }
  std::vector<float> values(size / sizeof(float));
  if (size > 0) std::memcpy(values.data(), bytes.data(), size);
  return values;
}

}  // namespace saccade
