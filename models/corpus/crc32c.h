#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace saccade {

/// CRC-32C (Castagnoli), as iSCSI and ext4 use it; `crc` continues an earlier one.
uint32_t crc32c(std::string_view bytes, uint32_t crc = 0);
/// Its eight hexadecimal digits.
std::string crc32c_digits(std::string_view bytes);

}  // namespace saccade
