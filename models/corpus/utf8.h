#pragma once
#include <cstddef>
#include <string_view>

namespace saccade {

/// Bytes of the valid UTF-8 character (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF) at the front; 0 when there is none.
size_t utf8_character(std::string_view text);
/// Where the first invalid byte stands, or text.size().
size_t valid_utf8(std::string_view text);
/// The longest size ≤ `limit` that does not cut a character of valid UTF-8.
size_t utf8_floor(std::string_view text, size_t limit);

}  // namespace saccade
