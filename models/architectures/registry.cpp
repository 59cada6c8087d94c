#include "models/architectures/registry.h"

#include <algorithm>
#include <set>

#include "models/architectures/stack.h"
#include "models/entries.h"

namespace saccade {
namespace {

using Json = nlohmann::json;
using Kind = Architecture::Kind;

Entries<Architecture>& entries() {
  static Entries<Architecture> list;
  return list;
}

std::vector<std::string> ids(std::initializer_list<Kind> kinds) {
  std::vector<std::string> names;
  for (const Architecture* a : architectures())
    if (std::find(kinds.begin(), kinds.end(), a->kind) != kinds.end()) names.push_back(a->id);
  return names;
}

/// "block" and "mixer" are read before all other settings because those depend on them.
std::string chosen(const Json& config, const char* key, const std::string& pointer) {
  for (const Setting& s : common_settings())
    if (s.name == key) {
      if (!config.contains(key)) return s.default_value.get<std::string>();
      check_setting(s, config.at(key), pointer + "/" + key);
      return config.at(key).get<std::string>();
    }
  return {};
}

/// The block that is chosen, else the usual one of the mixer that is.
std::string chosen_block(const Json& config, const std::string& pointer) {
  const bool by_mixer = !config.contains("block") && config.contains("mixer");
  return by_mixer ? architecture(chosen(config, "mixer", pointer)).home : chosen(config, "block", pointer);
}

const Architecture* mixer_of(const Architecture& block, const std::string& mixer) {
  return block.kind == Kind::block ? &architecture(mixer) : nullptr;
}

void check_shape(const ModelShape& shape, bool own_head_width, const std::string& pointer) {
  if (!own_head_width && shape.width % shape.heads != 0)
    throw UsageError(pointer + "/heads is " + std::to_string(shape.heads) + ", which does not divide the width " +
                     std::to_string(shape.width));
  if (shape.position == "rotary" && shape.head_width() % 2 != 0)
    throw UsageError(pointer + "/position is \"rotary\", which needs heads of even width; width " + std::to_string(shape.width) + " in " +
                     std::to_string(shape.heads) + " heads makes them " + std::to_string(shape.head_width()) + " wide");
}

/// How many layers in front of each hold which mixers.
std::vector<std::map<std::string, int64_t>> earlier_mixers(const std::vector<Json>& layers) {
  std::vector<std::map<std::string, int64_t>> list;
  std::map<std::string, int64_t> counted;
  for (const Json& values : layers) {
    list.push_back(counted);
    const Architecture& mixer = architecture(values.at("mixer"));
    std::vector<std::string> held{mixer.id};
    if (mixer.holds) held = mixer.holds(values), held.push_back(mixer.id);
    bool blends_values = values.value("mixer_inputs", "") == "full";
    for (const std::string& id : held) ++counted[id], blends_values |= architecture(id).blends_values;
    if (blends_values) ++counted[kBlendedValues];
  }
  // A mixer that is in no layer so far has none in front, which is not the same as standing everywhere.
  for (auto& before : list)
    for (const auto& [id, count] : counted) before.emplace(id, 0);
  return list;
}

}  // namespace

RegisterArchitecture::RegisterArchitecture(Architecture entry) {
  entries().add(std::move(entry), [](const Architecture& a) { return std::pair(a.kind, a.id); });
}

const std::vector<const Architecture*>& architectures() { return entries().all(); }

const Architecture& architecture(const std::string& id) { return entries().find("architecture", id); }

std::vector<Setting> common_settings() {
  using SettingKind = Setting::Kind;
  std::vector<Setting> list(7);
  list[0] = {"block",
             SettingKind::choice,
             "llama",
             {},
             {},
             ids({Kind::block, Kind::whole}),
             "Pre-norm block that carries the mixer, or a whole architecture, which takes no mixer.",
             "arXiv:2505.18522, section 5.3"};
  list[1] = {"mixer",
             SettingKind::choice,
             "attention",
             {},
             {},
             ids({Kind::mixer}),
             "What moves information between positions.",
             "arXiv:2505.18522, section 3"};
  list[2] = {"width", SettingKind::integer, 256, 1, 65536, {}, "Model width D.", ""};
  list[3] = {"layers",
             SettingKind::layers,
             4,
             1,
             1024,
             {},
             "Layers L; or groups with mixers of their own, repeated to `depth` layers: \"3 gated_deltanet, 1 attention(window=64)\".",
             ""};
  list[4] = {"heads", SettingKind::integer, 4, 1, 1024, {}, "Heads H; divides the width.", ""};
  list[5] = {"position",
             SettingKind::choice,
             "rotary",
             {},
             {},
             {"none", "absolute", "alibi", "alibi-released", "rotary"},
             "Position encoding. ALiBi's slope of head h of H is 2^(-8h/H); alibi-released takes those of its released code, which differ "
             "where H is no power of two.",
             "arXiv:2505.18522, section 3.1.2, figure 3c; arXiv:2108.12409, section 3"};
  list[6] = {"rotary_base",
             SettingKind::real,
             10000.0,
             1,
             1e9,
             {},
             "Base of the rotary angles; 1 000 000 at 100 000 tokens.",
             "arXiv:2505.18522, appendix A"};
  return list;
}

std::vector<Setting> settings_of(const std::string& block_id, const std::string& mixer_id) {
  const Architecture& block = architecture(block_id);
  const Architecture* mixer = mixer_of(block, mixer_id);
  std::vector<Setting> list;
  for (Setting& s : common_settings()) {
    const bool whole_lacks_it = s.name != "block" && s.name != "width" && s.name != "layers" && !block.defaults.contains(s.name);
    if (block.kind == Kind::whole && whole_lacks_it) continue;
    if (s.name == "block") s.default_value = block_id;
    if (s.name == "mixer") s.default_value = mixer_id;
    if (block.defaults.contains(s.name)) s.default_value = block.defaults.at(s.name);
    list.push_back(std::move(s));
  }
  list.insert(list.end(), block.settings.begin(), block.settings.end());
  if (!mixer) return list;
  for (Setting& s : list)
    if (mixer->defaults.contains(s.name)) s.default_value = mixer->defaults.at(s.name);
  std::erase_if(list,
                [&](const Setting& s) { return s.default_value.is_null() || (s.name == "mixer_inputs" && !mixer->takes_block_inputs); });
  list.insert(list.end(), mixer->settings.begin(), mixer->settings.end());
  return list;
}

bool is_mixer_setting(const std::string& common) { return common == "heads" || common == "position" || common == "rotary_base"; }

ModelShape shape_of(const Json& values, int64_t vocabulary, int64_t sequence_length) {
  ModelShape shape;
  shape.vocabulary = vocabulary;
  shape.sequence_length = sequence_length;
  shape.width = values.at("width");
  shape.layers = values.at("layers");
  shape.heads = values.value("heads", int64_t{1});
  shape.rotary_base = values.value("rotary_base", shape.rotary_base);
  shape.position = values.value("position", std::string("none"));
  shape.biases = values.value("biases", false);
  shape.mixer_inputs = values.value("mixer_inputs", shape.mixer_inputs);
  shape.scaled_residual = values.value("scaled_residual", true);
  return shape;
}

Json checked_value(const Setting& s, const Json& value, const std::string& pointer) {
  check_setting(s, value, pointer);
  if (s.kind == Setting::Kind::integer || (s.kind == Setting::Kind::layers && value.is_number())) return value.get<int64_t>();
  return s.kind == Setting::Kind::real ? Json(value.get<double>()) : value;
}

void check_heads(const ModelShape& shape, const Architecture& mixer, const std::string& pointer) {
  if (!mixer.holds) check_shape(shape, mixer.own_head_width, pointer);  // else each of its parts has heads of its own
}

void check_layer(Json& values, int64_t sequence_length, const std::string& pointer) {
  const ModelShape shape = shape_of(values, ModelShape{}.vocabulary, sequence_length);
  const Architecture& block = architecture(values.at("block"));
  const Architecture* mixer = mixer_of(block, values.value("mixer", std::string()));
  if (mixer)
    check_heads(shape, *mixer, pointer);
  else
    check_shape(shape, false, pointer);
  if (block.check) block.check(shape, values, pointer);
  if (mixer && mixer->complete) mixer->complete(values, shape, pointer);
  if (mixer && mixer->check) mixer->check(shape, values, pointer);
}

Json resolve_architecture(const Json& config, int64_t sequence_length, const std::string& pointer) {
  if (!config.is_object()) check_known_keys(config, {}, pointer);
  if (is_stack(config)) return resolve_stack(config, sequence_length, pointer);
  const Architecture& block = architecture(chosen_block(config, pointer));
  const std::string mixer_id = block.kind == Kind::whole ? "" : chosen(config, "mixer", pointer);
  const std::vector<Setting> settings = settings_of(block.id, mixer_id);
  std::vector<std::string> names;
  for (const Setting& s : settings) names.push_back(s.name);
  check_known_keys(config, names, pointer);

  Json resolved = Json::object();
  for (const Setting& s : settings) {
    resolved[s.name] = s.default_value;
    if (!config.contains(s.name)) continue;
    resolved[s.name] = checked_value(s, config.at(s.name), pointer + "/" + s.name);
  }
  check_layer(resolved, sequence_length, pointer);
  return resolved;
}

bool is_usual(const Json& values, const std::string& name) {
  for (const Setting& s : settings_of(values.at("block"), values.value("mixer", "")))
    if (s.name == name) return values.at(name) == s.default_value;
  throw std::logic_error(name + " is no setting here");
}

std::string architecture_title(const Json& resolved) {
  if (is_stack(resolved)) return stack_title(resolved);
  const Architecture& block = architecture(resolved.at("block"));
  const Architecture* mixer = mixer_of(block, resolved.value("mixer", std::string()));
  // The plain mixer is the block's own; any other gives the model its name.
  const bool named_by_block = !mixer || (mixer->id == "attention" && block.gives_attention_title);
  std::string title = named_by_block ? block.title : mixer->title;
  if (mixer && mixer->variant) add_words(title, mixer->variant(resolved));
  if (block.variant) add_words(title, block.variant(resolved));
  if (!named_by_block && block.id != mixer->home) add_words(title, "in " + block.title);
  for (const Setting& s : settings_of(block.id, mixer ? mixer->id : ""))
    if (s.name == "position" && resolved.at("position") != s.default_value)
      add_words(title, "position " + resolved.at("position").get<std::string>());
  return title;
}

std::unique_ptr<Model> make_model(const Json& resolved, int64_t vocabulary, int64_t sequence_length, Arena& arena, DType dtype,
                                  uint64_t seed, bool training) {
  const Architecture& block = architecture(resolved.at("block"));
  ParameterMaker maker(arena, dtype, seed, training);
  if (block.kind == Kind::whole) return block.make_model(shape_of(resolved, vocabulary, sequence_length), resolved, maker);

  const std::vector<Json> layers = layers_of(resolved);
  const auto earlier = earlier_mixers(layers);
  ModelShape around = shape_of(layers.front(), vocabulary, sequence_length);
  const bool absolute = std::any_of(layers.begin(), layers.end(), [](const Json& v) { return v.value("position", "") == "absolute"; });
  around.position = absolute ? "absolute" : "none";
  return std::make_unique<BlockModel>(
      block.make_stem(around, resolved, maker), static_cast<int64_t>(layers.size()), maker, [&](ParameterMaker& make, int64_t layer) {
        const Json& values = layers[static_cast<size_t>(layer)];
        ModelShape shape = shape_of(values, vocabulary, sequence_length);
        shape.earlier = earlier[static_cast<size_t>(layer)];
        const Architecture& mixer = architecture(values.at("mixer"));
        return architecture(values.at("block")).make_block(shape, values, make, layer, [&](ParameterMaker& m, int64_t l) {
          return mixer.make_mixer(shape, values, m, l);
        });
      });
}

}  // namespace saccade
