#include "models/architectures/stack.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "models/architectures/registry.h"

namespace saccade {
namespace {

using Json = nlohmann::json;
using Kind = Architecture::Kind;

constexpr int64_t kMostLayers = 1024;

const Setting repeat_setting{"repeat", Setting::Kind::integer, 1, 1, kMostLayers, {}, "Layers of the group in a row.", ""};
const Setting depth_setting{
    "depth", Setting::Kind::integer, 0, 1, kMostLayers, {}, "Layers of a hybrid stack: its groups are repeated up to here.", ""};

/// Reads the short form: groups "3 gated_deltanet", "attention(window=64, heads=2)" with commas between.
class ShortForm {
 public:
  ShortForm(const std::string& text, const std::string& pointer) : text_(text), pointer_(pointer) {}

  Json groups() {
    Json list = Json::array();
    do list.push_back(group(true));
    while (take(','));
    end();
    return list;
  }
  Json one() {
    Json mixer = group(false);
    end();
    return mixer;
  }

 private:
  Json group(bool counted) {
    Json group = Json::object();
    skip();
    const size_t digits = at_;
    while (counted && at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ > digits) {
      if (at_ - digits > 4) fail(digits, "a number of layers up to 1024");
      group["repeat"] = std::stoll(text_.substr(digits, at_ - digits));
    }
    group["mixer"] = word("the name of a mixer");
    if (!take('(')) return group;
    do {
      skip();
      const size_t begin = at_;
      const std::string name = word("the name of a setting");
      if (group.contains(name)) fail(begin, "each setting once");
      if (!take('=')) fail(at_, "\"=\" and a value");
      group[name] = value();
    } while (take(','));
    if (!take(')')) fail(at_, "\",\" or \")\"");
    return group;
  }

  /// Up to the next comma or bracket that belongs to none inside: JSON where it is, else text.
  Json value() {
    skip();
    const size_t begin = at_;
    int depth = 0;
    for (bool quoted = false; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted) {
        if (c == '\\') ++at_;
        if (c == '"') quoted = false;
        continue;
      }
      if (c == '"') quoted = true;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (depth == 0 && (c == ',' || c == ')')) break;
      if (c == ')' || c == ']' || c == '}') --depth;
    }
    at_ = std::min(at_, text_.size());
    std::string found = text_.substr(begin, at_ - begin);
    while (!found.empty() && found.back() == ' ') found.pop_back();
    if (found.empty()) fail(begin, "a value");
    return Json::accept(found) ? Json::parse(found) : Json(found);
  }

  /// Letters that names have; ':', '.' and '/' are those of files.
  std::string word(const char* expected) {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::strchr("_-.:/", text_[at_]))) ++at_;
    if (at_ == begin) fail(begin, expected);
    return text_.substr(begin, at_ - begin);
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    const bool there = at_ < text_.size() && text_[at_] == c;
    if (there) ++at_;
    return there;
  }
  void end() {
    skip();
    if (at_ < text_.size()) fail(at_, "\",\" or the end");
  }
  [[noreturn]] void fail(size_t at, const std::string& expected) const {
    throw UsageError(pointer_ + " is " + Json(text_).dump(-1, ' ', false, Json::error_handler_t::replace) + ", which has " +
                     (at < text_.size() ? Json(text_.substr(at, 1)).dump(-1, ' ', true, Json::error_handler_t::replace) : "its end") +
                     " at character " + std::to_string(at + 1) + "; expected " + expected +
                     ", as in \"3 gated_deltanet, 1 attention(window=64)\"");
  }

  const std::string text_, pointer_;
  size_t at_ = 0;
};

const Setting& common(const std::string& name) {
  static const std::vector<Setting> list = common_settings();
  return *std::find_if(list.begin(), list.end(), [&](const Setting& s) { return s.name == name; });
}

std::string block_id(const Json& holder, const std::string& pointer) {
  const std::string at = pointer + "/block";
  const std::string id = checked_value(common("block"), holder.at("block"), at);
  if (architecture(id).kind == Kind::whole)
    throw UsageError(at + " is \"" + id + "\", a whole architecture, whose layers stand in no stack; expected a block");
  return id;
}

std::vector<Setting> stem_settings(const std::string& block, const std::string& mixer) {
  std::vector<Setting> list;
  for (Setting& s : settings_of(block, mixer))
    if (s.of_stem) list.push_back(std::move(s));
  return list;
}

/// A group as it is given.
struct Group {
  Json given;
  std::string pointer, block, mixer;
  int64_t repeat = 1;
  std::vector<Setting> settings;
};

Group read_group(const Json& config, const Json& given, const std::string& architecture_pointer, size_t index) {
  Group group{given, architecture_pointer + "/layers/" + std::to_string(index), {}, {}, 1, {}};
  if (!given.is_object()) check_known_keys(given, {}, group.pointer);
  if (!given.contains("mixer") && !config.contains("mixer"))
    throw UsageError(group.pointer + " names no mixer; expected \"mixer\": " + alternatives(common("mixer").choices));
  const bool own = given.contains("mixer");
  group.mixer = checked_value(common("mixer"), (own ? given : config).at("mixer"), (own ? group.pointer : architecture_pointer) + "/mixer");
  group.block = given.contains("block")    ? block_id(given, group.pointer)
                : config.contains("block") ? block_id(config, architecture_pointer)
                                           : architecture(group.mixer).home;
  if (given.contains("repeat")) group.repeat = checked_value(repeat_setting, given.at("repeat"), group.pointer + "/repeat");
  group.settings = layer_settings(group.block, group.mixer);
  std::vector<std::string> names{"repeat", "mixer", "block"};
  for (const Setting& s : group.settings) names.push_back(s.name);
  for (const auto& [key, value] : given.items()) {
    const std::vector<Setting> of_block = stem_settings(group.block, group.mixer);
    const bool of_stem = std::any_of(of_block.begin(), of_block.end(), [&, k = key](const Setting& s) { return s.name == k; });
    const bool of_model = key == "width" || key == "layers" || key == "depth" || of_stem;
    if (of_model && std::find(names.begin(), names.end(), key) == names.end())
      throw UsageError(group.pointer + "/" + key + " is a setting of the whole model; expected it at " + architecture_pointer + "/" + key);
  }
  check_known_keys(given, names, group.pointer);
  return group;
}

std::vector<Group> read_groups(const Json& config, const std::string& pointer) {
  const Json given = stack_groups(config.at("layers"), pointer + "/layers");
  std::vector<Group> groups;
  for (size_t i = 0; i < given.size(); ++i) groups.push_back(read_group(config, given[i], pointer, i));
  return groups;
}

std::string stem_block(const Json& config, const std::vector<Group>& groups, const std::string& pointer) {
  return config.contains("block") ? block_id(config, pointer) : groups.front().block;
}

int64_t depth_of(const Json& config, const std::vector<Group>& groups, const std::string& pointer) {
  int64_t once = 0;
  for (const Group& g : groups) once += g.repeat;
  const int64_t depth =
      config.contains("depth") ? checked_value(depth_setting, config.at("depth"), pointer + "/depth").get<int64_t>() : once;
  const int64_t least = once - groups.back().repeat + 1;
  if (depth < least)
    throw UsageError(pointer + "/depth is " + std::to_string(depth) + ", which leaves no layer for " + groups.back().pointer + " (" +
                     groups.back().mixer + "); expected at least " + std::to_string(least));
  if (depth > kMostLayers)
    throw UsageError(pointer + "/layers are " + std::to_string(depth) + " layers; expected at most " + std::to_string(kMostLayers));
  return depth;
}

/// The resolved form before what no single setting can tell is checked.
Json written_out(const Json& config, const std::vector<Group>& groups, const std::string& pointer) {
  const std::string stem = stem_block(config, groups, pointer);
  Json resolved{{"block", stem}, {"depth", depth_of(config, groups, pointer)}, {"layers", Json::array()}};
  const auto put = [&](Json& to, const Setting& s, const Json& own, const std::string& own_pointer) {
    const bool given = own.contains(s.name), above = config.contains(s.name);
    to[s.name] = given   ? checked_value(s, own.at(s.name), own_pointer + "/" + s.name)
                 : above ? checked_value(s, config.at(s.name), pointer + "/" + s.name)
                         : s.default_value;
  };
  put(resolved, common("width"), config, pointer);
  for (const Setting& s : stem_settings(stem, groups.front().mixer)) put(resolved, s, config, pointer);
  for (const Group& g : groups) {
    Json group{{"repeat", g.repeat}, {"mixer", g.mixer}, {"block", g.block}};
    for (const Setting& s : g.settings) put(group, s, g.given, g.pointer);
    resolved["layers"].push_back(std::move(group));
  }
  return resolved;
}

/// Values of the layers of one group, as of an architecture with this block and this mixer alone.
Json values_of_group(const Json& resolved, const Json& group) {
  Json values = resolved;
  values.erase("depth");
  values["layers"] = resolved.at("depth");
  if (group.at("block") != resolved.at("block"))  // its own stem does not stand here
    for (const Setting& s : stem_settings(group.at("block"), group.at("mixer"))) values[s.name] = s.default_value;
  values.update(group);
  values.erase("repeat");
  return values;
}

std::string block_words(const Json& values) {
  const Architecture& block = architecture(values.at("block"));
  return block.variant ? block.variant(values) : std::string();
}

std::string group_title(const Json& values) {
  const Architecture& mixer = architecture(values.at("mixer"));
  std::string title = mixer.title;
  if (mixer.variant) add_words(title, mixer.variant(values));
  if (values.contains("position") && !is_usual(values, "position"))
    add_words(title, "position " + values.at("position").get<std::string>());
  if (values.at("block") != mixer.home) add_words(title, "in " + architecture(values.at("block")).title);
  return title;
}

/// Words that a text takes back as this value.
std::string short_value(const Json& value);
std::string short_mixer(const Json& group, const std::vector<std::string>& shown) {
  std::string text;
  for (const std::string& name : shown) text += (text.empty() ? "" : ", ") + name + "=" + short_value(group.at(name));
  return group.at("mixer").get<std::string>() + (text.empty() ? "" : "(" + text + ")");
}
std::string short_value(const Json& value) {
  if (value.is_object() && value.contains("mixer")) {
    std::vector<std::string> names;
    for (const auto& [key, inner] : value.items())
      if (key != "mixer") names.push_back(key);
    return short_mixer(value, names);
  }
  if (!value.is_string()) return value.dump();
  const std::string text = value;
  const bool plain = !text.empty() && text.find_first_of(" ,()[]{}\"=") == std::string::npos && !Json::accept(text);
  return plain ? text : value.dump();
}

std::vector<Setting> part_settings(const Json& layer, const std::string& mixer) {
  std::vector<Setting> list;
  const auto& own = architecture(mixer).settings;
  for (Setting& s : settings_of(layer.at("block"), mixer)) {
    const bool of_mixer = std::any_of(own.begin(), own.end(), [&](const Setting& o) { return o.name == s.name; });
    if (!of_mixer && !is_mixer_setting(s.name)) continue;
    if (!of_mixer && layer.contains(s.name)) s.default_value = layer.at(s.name);
    list.push_back(std::move(s));
  }
  return list;
}

}  // namespace

std::vector<Setting> layer_settings(const std::string& block, const std::string& mixer) {
  std::vector<Setting> list;
  for (Setting& s : settings_of(block, mixer)) {
    const bool whole = s.name == "block" || s.name == "mixer" || s.name == "width" || s.name == "layers";
    if (!whole && s.of_layer) list.push_back(std::move(s));
  }
  return list;
}

bool is_stack(const Json& architecture) {
  return architecture.is_object() && architecture.contains("layers") &&
         (architecture.at("layers").is_array() || architecture.at("layers").is_string());
}

Json stack_groups(const Json& layers, const std::string& pointer) {
  const Json groups = layers.is_string() ? ShortForm(layers, pointer).groups() : layers;
  if (groups.empty())
    throw UsageError(pointer + " is empty; expected groups of layers like {\"repeat\": 3, \"mixer\": \"gated_deltanet\"}");
  return groups;
}

Json resolve_stack(const Json& config, int64_t sequence_length, const std::string& pointer) {
  const std::vector<Group> groups = read_groups(config, pointer);
  std::vector<std::string> names;
  for (const StackSetting& s : stack_settings(config, pointer)) names.push_back(s.setting.name);
  check_known_keys(config, names, pointer);
  Json resolved = written_out(config, groups, pointer);
  const bool absolute = std::any_of(resolved.at("layers").begin(), resolved.at("layers").end(),
                                    [](const Json& g) { return g.value("position", "") == "absolute"; });
  for (size_t i = 0; i < groups.size(); ++i) {
    Json& group = resolved["layers"][i];
    Json values = values_of_group(resolved, group);
    check_layer(values, sequence_length, groups[i].pointer);
    for (auto& [key, value] : group.items())
      if (key != "repeat") value = values.at(key);
    const Architecture& stem = architecture(resolved.at("block"));
    ModelShape shape = shape_of(values, ModelShape{}.vocabulary, sequence_length);
    if (absolute && shape.position == "absolute" && stem.check) stem.check(shape, values, groups[i].pointer);
  }
  if (groups.size() > 1) return resolved;
  Json plain = values_of_group(resolved, resolved.at("layers").front());
  if (plain.at("block") == resolved.at("block")) return resolve_architecture(plain, sequence_length, pointer);
  throw UsageError(pointer + "/block is " + resolved.at("block").dump() + ", but the only group of layers names " +
                   plain.at("block").dump() + "; expected one block");
}

std::vector<Json> layers_of(const Json& resolved) {
  if (!is_stack(resolved)) return std::vector<Json>(resolved.at("layers").get<size_t>(), resolved);
  std::vector<Json> once, all;
  for (const Json& group : resolved.at("layers"))
    once.insert(once.end(), group.at("repeat").get<size_t>(), values_of_group(resolved, group));
  const auto depth = resolved.at("depth").get<size_t>();
  for (size_t l = 0; l < depth; ++l) all.push_back(once[l % once.size()]);
  return all;
}

std::vector<std::string> layer_titles(const Json& resolved) {
  std::vector<std::string> titles;
  if (!is_stack(resolved)) return titles;
  for (const Json& values : layers_of(resolved)) titles.push_back(group_title(values));
  return titles;
}

std::string stack_title(const Json& resolved) {
  std::string title;
  std::vector<std::string> words;
  for (const Json& group : resolved.at("layers")) {
    const Json values = values_of_group(resolved, group);
    title += (title.empty() ? "" : " : ") + std::to_string(group.at("repeat").get<int64_t>()) + " " + group_title(values);
    if (const std::string more = block_words(values); !more.empty() && std::find(words.begin(), words.end(), more) == words.end())
      words.push_back(more);
  }
  for (const std::string& more : words) add_words(title, more);
  if (resolved.at("block") != resolved.at("layers").front().at("block"))
    add_words(title, "stem of " + architecture(resolved.at("block")).title);
  return title;
}

std::string stack_text(const Json& config) {
  std::string text;
  const std::vector<Group> groups = read_groups(config, "/architecture");
  for (const Group& g : groups) {
    std::vector<std::string> shown;
    const std::string usual = config.contains("block") ? config.at("block").get<std::string>() : architecture(g.mixer).home;
    if (g.block != usual) shown.emplace_back("block");
    for (const Setting& s : g.settings) {
      const Json other = config.contains(s.name) ? config.at(s.name) : s.default_value;
      if (g.given.contains(s.name) && g.given.at(s.name) != other) shown.push_back(s.name);
    }
    Json named = g.given;
    named["mixer"] = g.mixer;
    text += (text.empty() ? "" : ", ") + std::to_string(g.repeat) + " " + short_mixer(named, shown);
  }
  return text;
}

std::string mixer_text(const Json& mixer) { return mixer.is_string() ? mixer.get<std::string>() : short_value(mixer); }

std::vector<StackSetting> stack_settings(const Json& config, const std::string& pointer) {
  const std::vector<Group> groups = read_groups(config, pointer);
  std::vector<StackSetting> list;
  for (const char* name : {"block", "mixer", "width", "layers"}) list.push_back({common(name), true});
  list.front().setting.default_value = groups.front().block;
  Setting depth = depth_setting;
  int64_t once = 0;
  for (const Group& g : groups) once += g.repeat;
  depth.default_value = once;
  list.push_back({depth, true});
  const auto add = [&](const Setting& s) {
    const auto known = std::find_if(list.begin(), list.end(), [&](const StackSetting& other) { return other.setting.name == s.name; });
    if (known == list.end())
      list.push_back({s, true});
    else
      known->shared &= known->setting.default_value == s.default_value;
  };
  for (const Setting& s : stem_settings(stem_block(config, groups, pointer), groups.front().mixer)) add(s);
  for (const Group& g : groups)
    for (const Setting& s : g.settings) add(s);
  return list;
}

Json resolve_part(const Json& part, const Json& layer, const ModelShape& shape, const std::string& pointer) {
  const Json given = part.is_string() ? ShortForm(part, pointer).one() : part;
  if (!given.is_object()) check_known_keys(given, {}, pointer);
  if (!given.contains("mixer")) throw UsageError(pointer + " names no mixer; expected \"mixer\": " + alternatives(common("mixer").choices));
  const std::string id = checked_value(common("mixer"), given.at("mixer"), pointer + "/mixer");
  const Architecture& mixer = architecture(id);
  if (mixer.holds) throw UsageError(pointer + "/mixer is \"" + id + "\", which holds mixers itself; expected one that does not");
  const std::vector<Setting> settings = part_settings(layer, id);
  std::vector<std::string> names{"mixer"};
  for (const Setting& s : settings) names.push_back(s.name);
  check_known_keys(given, names, pointer);
  Json resolved{{"mixer", id}};
  for (const Setting& s : settings)
    resolved[s.name] = given.contains(s.name) ? checked_value(s, given.at(s.name), pointer + "/" + s.name) : s.default_value;
  const ModelShape own = shape_of_part(shape, resolved);
  if (own.position == "absolute" && shape.position != "absolute")
    throw UsageError(pointer +
                     "/position is \"absolute\"; expected none, alibi or rotary: absolute positions are added for the whole model");
  check_heads(own, mixer, pointer);
  if (mixer.complete) mixer.complete(resolved, own, pointer);
  if (mixer.check) mixer.check(own, resolved, pointer);
  return resolved;
}

ModelShape shape_of_part(const ModelShape& layer, const Json& part) {
  ModelShape shape = layer;
  shape.heads = part.value("heads", layer.heads);
  shape.position = part.value("position", std::string("none"));
  shape.rotary_base = part.value("rotary_base", layer.rotary_base);
  return shape;
}

}  // namespace saccade
