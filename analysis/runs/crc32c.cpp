#include "analysis/runs/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define SACCADE_CRC_INSTRUCTION
#endif

namespace saccade {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? (c >> 1) ^ kReflectedPolynomial : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

#ifdef SACCADE_CRC_INSTRUCTION
/// By the processor's own instruction, eight bytes at a time.
__attribute__((target("sse4.2"))) uint32_t instructed(std::string_view bytes, uint32_t crc) {
  uint64_t wide = ~crc;
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    wide = _mm_crc32_u64(wide, word);
    bytes.remove_prefix(8);
  }
  auto narrow = static_cast<uint32_t>(wide);
  for (const char c : bytes) narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(c));
  return ~narrow;
}
#endif

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t crc) {
#ifdef SACCADE_CRC_INSTRUCTION
  static const bool can = __builtin_cpu_supports("sse4.2");
  if (can) return instructed(bytes, crc);
#endif
  crc = ~crc;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

}  // namespace saccade
