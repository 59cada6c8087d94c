#include "models/corpus/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace saccade {
namespace {

unsigned byte(std::string_view text, size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; }
bool continues(std::string_view text, size_t i) { return (byte(text, i) & 0xC0) == 0x80; }

}  // namespace

size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte(text, 0), second = byte(text, 1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return continues(text, 1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const bool valid = continues(text, 1) && continues(text, 2) && !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F);
    return valid ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool valid = continues(text, 1) && continues(text, 2) && continues(text, 3) && !(first == 0xF0 && second < 0x90) &&
                       !(first == 0xF4 && second > 0x8F);
    return valid ? 4 : 0;
  }
  return 0;
}

size_t valid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;  // most text is ASCII: eight bytes at a time
    if (at + sizeof eight <= text.size()) std::memcpy(&eight, text.data() + at, sizeof eight);
    if (at + sizeof eight <= text.size() && (eight & 0x8080808080808080u) == 0) {
      at += sizeof eight;
      continue;
    }
    const size_t size = utf8_character(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return at;
}

size_t utf8_floor(std::string_view text, size_t limit) {
  size_t size = std::min(text.size(), limit);
  while (size > 0 && continues(text, size)) --size;
  return size;
}

}  // namespace saccade
