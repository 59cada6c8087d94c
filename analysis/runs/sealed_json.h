#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/json.h"

namespace saccade {

/// JSON objects whose last key, "crc32c", is the CRC-32C (eight hexadecimal digits) of the text up to the comma before it: records of the
/// journal, and files of a run with numbers that stand nowhere else.

/// The object's text with that key. `body`: the text without its last brace.
std::string sealed(std::string body);
/// Whether the text, without a newline behind it, ends in the CRC of what stands before.
bool seal_holds(std::string_view text);
constexpr size_t kSealSize = 21;  ///< bytes of that key and the brace behind it

/// Puts a file of one sealed line in the place of `path` (replace_text). Throws DataError.
void write_sealed_json(const std::filesystem::path& path, const nlohmann::json& object);
/// The object. Files of earlier versions have no seal and are taken as they are. Throws DataError when the file cannot be read, is no JSON
/// object, has a key twice, is nested deeper than 64 levels, or differs from its seal.
nlohmann::json read_sealed_json(const std::filesystem::path& path);
/// NaN for null, as which JSON has numbers that are not finite; else the number. Throws nlohmann's exception.
double number_or_nan(const nlohmann::json& value);
/// The count of that name: whole, from 0 to 1e15. Throws UsageError that names the key where it is none, nlohmann's exception without it.
int64_t count_of(const nlohmann::json& object, const char* key);
/// A list of them, likewise; empty where there is none of that name.
std::vector<int64_t> counts_of(const nlohmann::json& object, const char* key);

}  // namespace saccade
