#include "analysis/tasks/unicode_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "models/corpus/utf8.h"

namespace saccade {
namespace {

constexpr uint32_t kDottedI = 0x130;  ///< small, it is i and a dot above, the one letter that becomes two

uint32_t small(uint32_t c) { return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
uint32_t large(uint32_t c) { return static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))); }

/// str.isspace()
bool is_blank(uint32_t c) {
  static constexpr std::array<uint32_t, 7> kOthers{0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F};
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || (c >= 0x2000 && c <= 0x200A) || c == 0x3000 ||
         std::find(kOthers.begin(), kOthers.end(), c) != kOthers.end();
}

/// The character of `bytes` bytes at the front.
uint32_t decoded(std::string_view text, size_t bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  if (bytes < 2) return byte(0);
  uint32_t c = byte(0) & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) c = c << 6 | (byte(i) & 0x3F);
  return c;
}

void append(std::string& text, uint32_t c) {
  const size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  if (bytes == 1) {
    text += static_cast<char>(c);
    return;
  }
  text += static_cast<char>((0xF00u >> bytes & 0xFF) | c >> 6 * (bytes - 1));
  for (size_t i = bytes - 1; i-- > 0;) text += static_cast<char>(0x80 | (c >> 6 * i & 0x3F));
}

/// What the first character becomes, and behind it what follows.
template <class Change>
void append_changed(std::string& to, std::string_view& text, Change&& change) {
  const size_t bytes = utf8_character(text);
  if (bytes == 0)
    to += text.front();
  else
    append(to, change(decoded(text, bytes)));
  text.remove_prefix(std::max<size_t>(bytes, 1));
}

}  // namespace

std::string lower(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const bool dotted = utf8_character(text) == 2 && decoded(text, 2) == kDottedI;
    append_changed(all, text, [&](uint32_t c) { return dotted ? uint32_t{'i'} : small(c); });
    if (dotted) append(all, 0x307);
  }
  return all;
}

std::string capital(std::string_view text) {
  std::string all;
  if (!text.empty()) append_changed(all, text, large);
  return all + std::string(text);
}

std::string_view without_blanks_before(std::string_view text) {
  while (const size_t bytes = utf8_character(text)) {
    if (!is_blank(decoded(text, bytes))) break;
    text.remove_prefix(bytes);
  }
  return text;
}

std::string_view without_blanks_behind(std::string_view text) {
  while (!text.empty()) {
    size_t bytes = 1;  // back to where a character begins
    while (bytes < 4 && bytes < text.size() && (static_cast<unsigned char>(text[text.size() - bytes]) & 0xC0) == 0x80) ++bytes;
    const std::string_view last = text.substr(text.size() - bytes);
    if (utf8_character(last) != bytes || !is_blank(decoded(last, bytes))) break;
    text.remove_suffix(bytes);
  }
  return text;
}

std::string trimmed(std::string_view text) { return std::string(without_blanks_behind(without_blanks_before(text))); }

size_t place_of(std::string_view text, int64_t character) {
  size_t at = 0;
  for (int64_t i = 0; i < character && at < text.size(); ++i) at += std::max<size_t>(utf8_character(text.substr(at)), 1);
  return at;
}

}  // namespace saccade
