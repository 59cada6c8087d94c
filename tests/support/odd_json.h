#pragma once
#include <limits>
#include <string>
#include <vector>

#include "models/json.h"

namespace saccade::test {

/// One value of an object replaced by another, or taken away.
struct OddJson {
  std::string what;  ///< "/config/data = []"
  nlohmann::json object;
};

/// Every value of `object`, groups of values and single ones, replaced by each of a few that hardly anybody expects there.
inline std::vector<OddJson> odd_versions(const nlohmann::json& object) {
  using Json = nlohmann::json;
  std::vector<Json> strange = {nullptr, Json::array(), Json::object(), "text", false, -1, 1e300, std::numeric_limits<uint64_t>::max()};
  strange.push_back(Json::array({Json::object(), 1, "a"}));
  Json deep = 1;
  for (int i = 0; i < 60; ++i) deep = Json::array({deep});
  strange.push_back(deep);
  std::vector<Json::json_pointer> places;
  const auto collect = [&](auto& self, const Json& value, const Json::json_pointer& at) -> void {
    places.push_back(at);
    if (value.is_object())
      for (const auto& [key, child] : value.items()) self(self, child, at / key);
    if (value.is_array())
      for (size_t i = 0; i < value.size(); ++i) self(self, value[i], at / i);
  };
  collect(collect, object, Json::json_pointer());
  std::vector<OddJson> versions;
  for (const Json::json_pointer& place : places)
    for (const Json& value : strange) {
      OddJson odd{place.to_string() + " = " + value.dump().substr(0, 20), object};
      odd.object[place] = value;
      if (odd.object != object) versions.push_back(std::move(odd));
    }
  return versions;
}

}  // namespace saccade::test
