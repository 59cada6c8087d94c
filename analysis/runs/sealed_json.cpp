#include "analysis/runs/sealed_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "analysis/runs/files.h"
#include "kernels/engine/error.h"
#include "models/config_text.h"
#include "models/corpus/crc32c.h"
#include "models/settings.h"

namespace saccade {
namespace {

constexpr std::string_view kKey = ",\"crc32c\":\"";
static_assert(kSealSize == kKey.size() + 8 + 2);

}  // namespace

std::string sealed(std::string body) {
  const std::string digits = crc32c_digits(body);
  return body.append(kKey).append(digits) + "\"}";
}

bool seal_holds(std::string_view text) {
  if (text.size() <= kSealSize) return false;
  const std::string_view end = text.substr(text.size() - kSealSize), digits = end.substr(kKey.size(), 8);
  uint32_t crc = 0;
  const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), crc, 16);
  const bool lower = std::none_of(digits.begin(), digits.end(), [](char c) { return c >= 'A' && c <= 'F'; });
  return error == std::errc() && last == digits.data() + digits.size() && lower && end.starts_with(kKey) && end.ends_with("\"}") &&
         crc == crc32c(text.substr(0, text.size() - kSealSize));
}

void write_sealed_json(const std::filesystem::path& path, const nlohmann::json& object) {
  std::string body = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  body.pop_back();
  replace_text(path, sealed(std::move(body)) + "\n");
}

nlohmann::json read_sealed_json(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  std::string twice;
  nlohmann::json object = parse_json_or_discard(text, &twice);
  if (!object.is_object()) throw DataError(path.string() + " is damaged: no JSON");
  if (!twice.empty()) throw DataError(path.string() + " is damaged: it has the key \"" + twice + "\" twice");
  if (object.contains("crc32c") && !seal_holds(std::string_view(text).substr(0, text.ends_with('\n') ? text.size() - 1 : text.size())))
    throw DataError(path.string() + " is damaged: it differs from its checksum");
  object.erase("crc32c");
  return object;
}

namespace {

int64_t checked_count(const nlohmann::json& value, const char* key) {
  Setting count;
  count.name = key, count.kind = Setting::Kind::integer, count.minimum = 0, count.maximum = 1e15;
  check_setting(count, value, std::string("/") + key);
  return value.get<int64_t>();
}

}  // namespace

int64_t count_of(const nlohmann::json& object, const char* key) { return checked_count(object.at(key), key); }

double number_or_nan(const nlohmann::json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

std::vector<int64_t> counts_of(const nlohmann::json& object, const char* key) {
  std::vector<int64_t> counts;
  if (const auto list = object.find(key); list != object.end())
    for (const nlohmann::json& value : *list) counts.push_back(checked_count(value, key));
  return counts;
}

}  // namespace saccade
