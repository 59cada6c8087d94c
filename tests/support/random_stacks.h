#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/random.h"
#include "models/architectures/registry.h"
#include "models/json.h"

/// Hybrid stacks drawn from the registry with a fixed seed, the same list for the CPU's tests and for those on GPUs (no Qt here).
namespace saccade::test {

class StackDrawer {
 public:
  StackDrawer(uint64_t seed, int64_t width) : random_(seed, "stacks"), width_(width) {}

  nlohmann::json stack() {
    nlohmann::json config{{"width", width_}, {"heads", 2}, {"layers", nlohmann::json::array()}};
    if (below(3) == 0) config["block"] = one_of(ids(Architecture::Kind::block));
    const uint64_t groups = 2 + below(3);
    int64_t once = 0, last = 0;
    for (uint64_t g = 0; g < groups; ++g) {
      config["layers"].push_back(group(config));
      last = config["layers"].back()["repeat"];
      once += last;
    }
    // Once and a part of it again at most, so that a test stays quick.
    if (below(2) == 0) config["depth"] = once - last + 1 + static_cast<int64_t>(below(static_cast<uint64_t>(last) + 2));
    return config;
  }

 private:
  nlohmann::json group(const nlohmann::json& config) {
    nlohmann::json group{{"mixer", one_of(ids(Architecture::Kind::mixer))}, {"repeat", 1 + static_cast<int64_t>(below(2))}};
    if (below(3) == 0) group["block"] = one_of(ids(Architecture::Kind::block));
    const std::string mixer = group["mixer"];
    const std::string block = group.value("block", config.value("block", architecture(mixer).home));
    for (const Setting& s : settings_of(block, mixer)) {
      if (s.name == "block" || s.name == "mixer" || s.name == "width" || s.name == "layers" || !s.of_layer) continue;
      vary(group, s);
    }
    return group;
  }

  /// Small sizes, and now and then another value than the default.
  void vary(nlohmann::json& group, const Setting& s) {
    for (const auto& [name, size] :
         {std::pair("mlp_width", 24), std::pair("chunk", 5), std::pair("state", 6), std::pair("top_k", 1), std::pair("decay_rank", 4),
          std::pair("rate_rank", 4), std::pair("value_rank", 4), std::pair("gate_rank", 4), std::pair("mix_rank", 4),
          std::pair("step_rank", 3), std::pair("feature_width", 4)})
      if (s.name == name) group[s.name] = size;
    if (s.kind == Setting::Kind::mixer) group[s.name] = part();
    if (below(4) != 0) return;
    if (s.name == "heads") group[s.name] = one_of(std::vector<int>{1, 2, 4});
    if (s.name == "window") group[s.name] = 3 + static_cast<int64_t>(below(9));
    if (s.kind == Setting::Kind::boolean) group[s.name] = !s.default_value.get<bool>();
    if (s.kind == Setting::Kind::choice) group[s.name] = one_of(s.choices);
    if (s.name == "layout") group[s.name] = nlohmann::json::array({"linear", "conv", "window"});
  }

  std::string part() {
    std::vector<std::string> simple;
    for (const std::string& id : ids(Architecture::Kind::mixer))
      if (!architecture(id).holds) simple.push_back(id);
    const std::string id = one_of(simple);
    if (id == "top1_chunk") return "top1_chunk(chunk=5)";
    return id == "attention" && below(2) == 0 ? "attention(window=4, heads=4)" : id;
  }

  static std::vector<std::string> ids(Architecture::Kind kind) {
    std::vector<std::string> list;
    for (const Architecture* a : architectures())
      if (a->kind == kind) list.push_back(a->id);
    return list;
  }
  uint64_t below(uint64_t n) { return random_.below(n, next_++); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  Random random_;
  uint64_t next_ = 0;
  int64_t width_;
};

/// 30 of them that hold together, with names; those that are refused (an RWKV stem with absolute positions …) are drawn anew.
inline std::vector<std::pair<std::string, nlohmann::json>> random_stacks(int64_t sequence_length, int64_t width = 16) {
  StackDrawer drawer(7, width);
  std::vector<std::pair<std::string, nlohmann::json>> stacks;
  while (stacks.size() < 30) {
    const nlohmann::json config = drawer.stack();
    try {
      const nlohmann::json resolved = resolve_architecture(config, sequence_length);
      if (resolved.at("layers").is_array())
        stacks.emplace_back("stack " + std::to_string(stacks.size()) + ": " + architecture_title(resolved), config);
    } catch (const UsageError&) {
      continue;
    }
  }
  return stacks;
}

}  // namespace saccade::test
