#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saccade {

/// Floats as they lie in memory (little-endian), in base64 (RFC 4648, section 4, with padding).
std::string base64_of_floats(std::span<const float> values);
/// Throws DataError where the text is not that of whole floats.
std::vector<float> floats_of_base64(std::string_view text);

}  // namespace saccade
