#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace saccade {

// Letter case and white space of UTF-8 as Python's str has them, by which EleutherAI's evaluation harness is written. Bytes that are no
// valid UTF-8 stay as they are.

/// Every letter in lower case, by the simple mappings of the Unicode Character Database; a final sigma is not told apart.
std::string lower(std::string_view text);
/// The first letter in upper case, where one letter is its upper case; the rest as it is.
std::string capital(std::string_view text);

/// Without white space at the end, at the beginning, or at both.
std::string_view without_blanks_behind(std::string_view text);
std::string_view without_blanks_before(std::string_view text);
std::string trimmed(std::string_view text);

/// The byte at which a character stands, counted from 0; of one behind the last, the text's end.
size_t place_of(std::string_view text, int64_t character);

}  // namespace saccade
