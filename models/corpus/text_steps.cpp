#include "models/corpus/text_steps.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/engine/error.h"
#include "kernels/engine/interruption.h"
#include "models/corpus/utf8.h"

namespace saccade {
namespace {

/// All characters below U+0300 stand in texts that are normalized already.
bool needs_no_nfc(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0xCC) return false;
  return true;
}

utf8proc_int32_t code_point(std::string_view character) {
  utf8proc_int32_t code = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(character.data()), static_cast<utf8proc_ssize_t>(character.size()), &code);
  return code;
}

/// Marks that Unicode got after version 9, whose tables Hugging Face's tokenizers have: there these change no place with others and are
/// joined with none. And U+11A7, which utf8proc 2.8 joins with a Hangul syllable, so that it is lost.
bool stays_in_nfc(std::string_view character) {
  static constexpr utf8proc_int32_t kRanges[][2] = {
      {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},
      {0xEBA, 0xEBA},     {0x11A7, 0x11A7},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
      {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
      {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
      {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
      {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
      {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};
  const utf8proc_int32_t code = code_point(character);
  const auto* range = std::upper_bound(std::begin(kRanges), std::end(kRanges), code, [](auto c, const auto& r) { return c < r[0]; });
  return range != std::begin(kRanges) && code <= range[-1][1];
}

void append_nfc(std::string_view text, std::string& normalized) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, std::free);
  if (size < 0) throw DataError(std::string("cannot bring text into the form NFC: ") + utf8proc_errmsg(size));
  normalized.append(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
}

std::string to_nfc(std::string_view text) {
  if (needs_no_nfc(text)) return std::string(text);
  std::string made;
  size_t done = 0;
  for (size_t at = 0, size = 1; at < text.size(); at += size) {
    size = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : std::max<size_t>(1, utf8_character(text.substr(at)));
    if (static_cast<unsigned char>(text[at]) < 0xDF || !stays_in_nfc(text.substr(at, size))) continue;
    append_nfc(text.substr(done, at - done), made);
    made += text.substr(at, size);
    done = at + size;
  }
  append_nfc(text.substr(done), made);
  return made;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(from, at), text.size());
    made += text.substr(at, found - at);
    if (found < text.size()) made += to;
    at = found + from.size();
  }
  return made;
}

std::string_view first_character(std::string_view text) { return text.substr(0, std::max<size_t>(1, utf8_character(text))); }

std::string_view last_character(std::string_view text) { return text.substr(text.empty() ? 0 : utf8_floor(text, text.size() - 1)); }

/// White_Space of Unicode.
bool is_space(std::string_view character) {
  if (character.empty()) return false;
  const utf8proc_int32_t code = code_point(character);
  if ((code >= 9 && code <= 13) || code == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/// \w of Unicode (UTS 18, annex C): letters, marks, decimal digits, letter numbers, connectors.
bool is_word(std::string_view character) {
  if (character.empty()) return false;
  const utf8proc_int32_t code = code_point(character);
  const utf8proc_category_t category = utf8proc_category(code);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC || code == 0x200C ||
         code == 0x200D;
}

using Piece = std::function<void(std::string_view)>;

void split_by_pattern(const SplitPattern& pattern, std::string_view text, SplitPattern::Scratch& scratch, const Piece& piece) {
  constexpr size_t kLookEvery = 1 << 16;
  size_t looked = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [begin, end] = pattern.find(text, at, scratch).value_or(std::pair(text.size(), text.size()));
    if (begin > at) piece(text.substr(at, begin - at));
    if (end > begin) piece(text.substr(begin, end - begin));
    at = end;
    if (at - looked > kLookEvery) looked = at, stop_here_if_asked();
  }
}

void split_at_marks(const SplitStep& step, std::string_view text, bool at_beginning, const Piece& piece) {
  std::string marked = replaced(text, " ", step.mark);
  const bool wants = step.prefix == SplitStep::Prefix::always || (step.prefix == SplitStep::Prefix::first && at_beginning);
  if (wants && !marked.starts_with(step.mark)) marked.insert(0, step.mark);
  const std::string_view all = marked;
  if (!step.split) return piece(all);
  for (size_t at = 0; at < all.size();) {
    const size_t next = std::min(all.find(step.mark, at + 1), all.size());
    piece(all.substr(at, next - at));
    at = next;
  }
}

}  // namespace

std::string Normalization::operator()(std::string_view text) const {
  switch (kind) {
    case Kind::nfc: return to_nfc(text);
    case Kind::prepend: return text.empty() ? std::string() : to + std::string(text);
    case Kind::replace: return replaced(text, from, to);
  }
  return {};
}

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  uint64_t node = 0;
  for (const char c : token.content) {
    uint64_t& next = children_[node << 8 | static_cast<unsigned char>(c)];
    if (next == 0) next = ++nodes_;
    node = next;
  }
  begins_[static_cast<unsigned char>(token.content.front())] = true;
  tokens_.push_back(std::move(token));
  ends_[node] = tokens_.size();
}

const AddedToken* AddedTokens::longest_at(std::string_view text) const {
  const AddedToken* longest = nullptr;
  uint64_t node = 0;
  for (const char c : text) {
    const uint64_t* next = children_.find(node << 8 | static_cast<unsigned char>(c));
    if (!next) break;
    node = *next;
    if (const uint64_t* end = ends_.find(node)) longest = &tokens_[*end - 1];
  }
  return longest;
}

void AddedTokens::split(std::string_view text, const std::function<void(std::string_view, int32_t)>& part) const {
  size_t done = 0;
  for (size_t at = tokens_.empty() ? text.size() : 0; at < text.size();) {
    const AddedToken* found = begins_[static_cast<unsigned char>(text[at])] ? longest_at(text.substr(at)) : nullptr;
    if (!found) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + found->content.size();
    at = end;
    if (found->special) continue;
    if (found->single_word && (is_word(last_character(text.substr(0, begin))) || is_word(first_character(text.substr(end))))) continue;
    if (found->strip_left)
      while (begin > done && is_space(last_character(text.substr(0, begin)))) begin = utf8_floor(text, begin - 1);
    if (found->strip_right)
      while (end < text.size() && is_space(first_character(text.substr(end)))) end += first_character(text.substr(end)).size();
    if (begin > done) part(text.substr(done, begin - done), -1);
    part(text.substr(begin, end - begin), found->number);
    done = end;
  }
  if (done < text.size()) part(text.substr(done), -1);
}

void split_text(const SplitStep* step, const SplitStep* end, std::string_view text, bool at_beginning, SplitPattern::Scratch& scratch,
                const Piece& piece) {
  if (text.empty()) return;
  if (step == end) return piece(text);
  const Piece next = step + 1 == end ? piece : Piece([&](std::string_view part) {
    split_text(step + 1, end, part, at_beginning && part.data() == text.data(), scratch, piece);
  });
  switch (step->kind) {
    case SplitStep::Kind::pattern: return split_by_pattern(step->pattern.front(), text, scratch, next);
    case SplitStep::Kind::prefix_space: return next(text.starts_with(' ') ? std::string(text) : " " + std::string(text));
    case SplitStep::Kind::metaspace: return split_at_marks(*step, text, at_beginning, next);
  }
}

}  // namespace saccade
