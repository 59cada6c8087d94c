#include "models/corpus/crc32c.h"

#include <array>
#include <cstdio>

namespace saccade {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82F63B78;

/// Row k: what a byte becomes that k more bytes follow, so that eight bytes take one step of eight look-ups that do not wait for each
/// other ("slicing by 8", Kounavis and Berry 2008).
using Table = std::array<std::array<uint32_t, 256>, 8>;

constexpr Table make_table() {
  Table table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? (c >> 1) ^ kReflectedPolynomial : c >> 1;
    table[0][i] = c;
  }
  for (size_t row = 1; row < table.size(); ++row)
    for (size_t i = 0; i < 256; ++i) table[row][i] = table[0][table[row - 1][i] & 0xFF] ^ (table[row - 1][i] >> 8);
  return table;
}
constexpr Table kTable = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const unsigned char* const end = at + bytes.size();
  crc = ~crc;
  for (; end - at >= 8; at += 8) {
    crc ^= static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 | static_cast<uint32_t>(at[2]) << 16 |
           static_cast<uint32_t>(at[3]) << 24;
    crc = kTable[7][crc & 0xFF] ^ kTable[6][(crc >> 8) & 0xFF] ^ kTable[5][(crc >> 16) & 0xFF] ^ kTable[4][crc >> 24] ^ kTable[3][at[4]] ^
          kTable[2][at[5]] ^ kTable[1][at[6]] ^ kTable[0][at[7]];
  }
  for (; at != end; ++at) crc = kTable[0][(crc ^ *at) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string crc32c_digits(std::string_view bytes) {
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", crc32c(bytes));
  return digits.data();
}

}  // namespace saccade
