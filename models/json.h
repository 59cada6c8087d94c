#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>  // every other source includes this header instead (tests/layers_test.sh)
#include <optional>
#include <string>
#include <utility>

namespace saccade {

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

/// The value as a T; none where it is no number, has a fraction, or is more than T holds. 2.0 is the whole number 2.
template <WholeNumber T, class Json>
std::optional<T> whole_number(const Json& value) {
  const auto fitting = [](auto number) { return std::in_range<T>(number) ? std::optional<T>(static_cast<T>(number)) : std::nullopt; };
  if (value.is_number_unsigned()) return fitting(value.template get_ref<const std::uint64_t&>());
  if (value.is_number_integer()) return fitting(value.template get_ref<const std::int64_t&>());
  if (!value.is_number_float()) return {};
  const double number = value.template get_ref<const double&>();
  const bool whole = number == std::trunc(number) && number >= -0x1p63 && number < 0x1p63;
  return whole ? fitting(static_cast<std::int64_t>(number)) : std::nullopt;
}

}  // namespace saccade

/// What get<int64_t>(), value("step", 0) and the like convert with. nlohmann's own conversion casts whatever number there is: 1.5 becomes
/// 1, 2^32 as int 0, and 1e62 is undefined behaviour. This one throws its type_error, as for a text.
template <saccade::WholeNumber T>
struct nlohmann::adl_serializer<T> {
  template <class Json>
  static void to_json(Json& json, T value) {
    ::nlohmann::to_json(json, value);
  }

  template <class Json>
  static void from_json(const Json& json, T& value) {
    const auto number = saccade::whole_number<T>(json);
    if (!number) {
      const std::string found = json.is_number() ? json.dump() : json.type_name();
      const std::string range = std::to_string(std::numeric_limits<T>::min()) + " to " + std::to_string(std::numeric_limits<T>::max());
      throw Json::type_error::create(302, "type must be a whole number of " + range + ", but is " + found, &json);
    }
    value = *number;
  }
};
