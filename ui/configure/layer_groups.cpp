#include "ui/configure/layer_groups.h"

#include <algorithm>
#include <set>

#include "analysis/figures/palette.h"
#include "models/architectures/registry.h"
#include "models/architectures/stack.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

const Architecture* entry(const std::string& id, Architecture::Kind kind) {
  for (const Architecture* each : architectures())
    if (each->id == id && each->kind == kind) return each;
  return nullptr;
}
const Architecture* mixer_entry(const std::string& id) { return entry(id, Architecture::Kind::mixer); }

Json default_of(const char* common) {
  for (const Setting& setting : common_settings())
    if (setting.name == common) return setting.default_value;
  return {};
}

std::string text_at(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>() : std::string();
}

int64_t repeat_of(const Json& group) {
  const auto repeat = group.find("repeat");
  return repeat != group.end() ? std::max<int64_t>(0, whole_number<int64_t>(*repeat).value_or(1)) : 1;
}

/// A plain architecture: its one group takes what belongs to the mixer, so that it keeps that when other groups come beside it.
LayerGroups of_plain(const Json& architecture) {
  LayerGroups stack;
  stack.shared = architecture;
  Json group{{"repeat", architecture.value("layers", default_of("layers"))}};
  stack.shared.erase("layers");
  if (const Architecture* whole = entry(text_at(architecture, "block"), Architecture::Kind::whole)) {
    stack.whole = whole->title;
    stack.groups.push_back(group);
    return stack;
  }
  group["mixer"] = architecture.value("mixer", default_of("mixer"));
  stack.shared.erase("mixer");
  if (const Architecture* mixer = mixer_entry(text_at(group, "mixer")))
    for (const Setting& setting : mixer->settings)
      if (architecture.contains(setting.name)) {
        group[setting.name] = architecture.at(setting.name);
        stack.shared.erase(setting.name);
      }
  stack.groups.push_back(group);
  return stack;
}

/// Of an architecture that is still written as it was: without what neither it nor its groups read.
void drop_what_nobody_reads(Json& architecture) {
  std::set<std::string> read;
  try {
    if (is_stack(architecture)) {
      for (const StackSetting& each : stack_settings(architecture)) read.insert(each.setting.name);
    } else {
      const std::string mixer = text_at(architecture, "mixer"), block = text_at(architecture, "block");
      for (const Setting& each : settings_of(block.empty() ? saccade::architecture(mixer).home : block, mixer)) read.insert(each.name);
    }
  } catch (const Error&) {
    return;  // resolve() says what is wrong
  }
  Json kept = Json::object();
  for (const auto& [name, value] : architecture.items())
    if (read.count(name)) kept[name] = value;
  architecture = kept;
}

/// The plain architecture whose layers are all like this group's.
Json alone(const LayerGroups& stack, size_t at) {
  Json architecture = stack.shared;
  architecture.update(stack.groups[at]);
  architecture["layers"] = 1;
  architecture.erase("repeat");
  drop_what_nobody_reads(architecture);
  return architecture;
}

std::string words_of(const std::string& name, const Json& value) {
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words + " " + (value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

LayerGroups LayerGroups::of(const Json& architecture) {
  if (!architecture.is_object()) throw UsageError("/architecture is " + architecture.dump() + "; expected an object");
  if (!is_stack(architecture)) return of_plain(architecture);
  LayerGroups stack;
  stack.shared = architecture;
  const Json groups = stack_groups(architecture.at("layers"), "/architecture/layers");
  const Json mixer = architecture.value("mixer", Json());
  for (const char* gone : {"layers", "depth", "mixer"}) stack.shared.erase(gone);
  for (Json group : groups) {
    if (!group.is_object()) throw UsageError("/architecture/layers holds " + group.dump() + "; expected groups of layers");
    if (!group.contains("mixer") && !mixer.is_null()) group["mixer"] = mixer;
    if (!group.contains("repeat")) group["repeat"] = 1;
    stack.groups.push_back(group);
  }
  if (architecture.contains("depth")) stack.depth = whole_number<int64_t>(architecture.at("depth")).value_or(stack.depth);
  if (stack.depth == stack.once()) stack.depth = 0;
  return stack;
}

Json LayerGroups::architecture() const {
  Json written = shared;
  if (groups.size() == 1) {
    written.update(groups.front());
    written["layers"] = depth > 0 ? Json(depth) : written.at("repeat");
    written.erase("repeat");
  } else {
    written["layers"] = groups;
    if (depth > 0) written["depth"] = depth;
  }
  drop_what_nobody_reads(written);
  return written;
}

int64_t LayerGroups::once() const {
  int64_t layers = 0;
  for (const Json& group : groups) layers += repeat_of(group);
  return layers;
}

std::vector<size_t> LayerGroups::order() const {
  constexpr int64_t kMost = 1024;
  std::vector<size_t> cycle, all;
  for (size_t at = 0; at < groups.size(); ++at) cycle.insert(cycle.end(), static_cast<size_t>(std::min(kMost, repeat_of(groups[at]))), at);
  const auto wanted = static_cast<size_t>(std::min(kMost, depth > 0 ? depth : once()));
  for (size_t layer = 0; layer < wanted && !cycle.empty(); ++layer) all.push_back(cycle[layer % cycle.size()]);
  return all;
}

std::string LayerGroups::mixer(size_t at) const { return text_at(groups[at], "mixer"); }

std::string LayerGroups::block(size_t at) const {
  for (const Json* from : {&groups[at], &shared})
    if (const std::string id = text_at(*from, "block"); entry(id, Architecture::Kind::block)) return id;
  const Architecture* own = mixer_entry(mixer(at));
  return own ? own->home : default_of("block").get<std::string>();
}

std::vector<Setting> settings_of_group(const LayerGroups& stack, size_t at) {
  if (!stack.whole.empty() || !mixer_entry(stack.mixer(at))) return {};
  std::vector<Setting> list;
  for (Setting setting : layer_settings(stack.block(at), stack.mixer(at))) {
    if (stack.shared.contains(setting.name)) setting.default_value = stack.shared.at(setting.name);
    list.push_back(std::move(setting));
  }
  return list;
}

Json with_other(const LayerGroups& stack, size_t at, const char* key, const std::string& id) {
  LayerGroups changed = stack;
  changed.groups[at][key] = id;
  std::set<std::string> fitting{"repeat", "mixer", "block"};
  for (const Setting& setting : settings_of_group(changed, at)) fitting.insert(setting.name);
  Json group = Json::object();
  for (const auto& [name, value] : changed.groups[at].items())
    if (fitting.count(name)) group[name] = value;
  return group;
}

std::string group_title(const LayerGroups& stack, size_t at) {
  if (!stack.whole.empty()) return stack.whole;
  const Architecture* mixer = mixer_entry(stack.mixer(at));
  return mixer ? mixer->title : stack.mixer(at).empty() ? "no mixer" : stack.mixer(at);
}

std::string group_words(const LayerGroups& stack, size_t at) {
  std::string words;
  for (const auto& [name, value] : stack.groups[at].items()) {
    if (name == "repeat" || name == "mixer") continue;
    if (!words.empty()) words += ", ";
    const Architecture* block = name == "block" ? entry(stack.block(at), Architecture::Kind::block) : nullptr;
    words += block ? "in " + block->title : words_of(name, value);
  }
  return words;
}

Colour group_colour(const LayerGroups& stack, size_t at) {
  if (!stack.whole.empty()) return architecture_colour(stack.whole);
  for (const Json& like : {alone(stack, at), Json{{"mixer", stack.mixer(at)}}}) try {  // faulty ones have the usual colour of their mixer
      return architecture_colour(architecture_title(resolve_architecture(like, int64_t{1} << 20)));
    } catch (const Error&) {
      continue;
    }
  return architecture_colour(group_title(stack, at));
}

std::string group_problem(const LayerGroups& stack, size_t at, int64_t sequence_length) {
  if (!stack.whole.empty()) return {};
  const std::string here = "/architecture/layers/" + std::to_string(at);
  try {
    const Json& group = stack.groups[at];
    Json one{{"layers", Json::array({group})}};
    one["block"] = stack.block(at);
    if (mixer_entry(stack.mixer(at)))
      for (const Setting& setting : settings_of(stack.block(at), stack.mixer(at)))
        if (stack.shared.contains(setting.name)) one[setting.name] = stack.shared.at(setting.name);
    if (group.contains("block")) one["block"] = group.at("block");
    resolve_stack(one, sequence_length, "/architecture");
    return {};
  } catch (const Error& error) {
    std::string why = error.what();
    for (const std::string& place :
         {std::string("/architecture/layers/0/"), std::string("/architecture/layers/0"), std::string("/architecture/")})
      if (why.rfind(place, 0) == 0) {
        why.erase(0, place.size());
        break;
      }
    return why;
  }
}

}  // namespace saccade::ui
