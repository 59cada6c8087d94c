// saccade architectures [NAME]: what can be built, and every setting with range, default, help and source; --presets: configs by name.
#include <exception>
#include <utility>

#include "app/cli/command.h"
#include "app/cli/output.h"
#include "models/architectures/registry.h"
#include "models/config/presets.h"

namespace saccade::cli {
namespace {

const char* kind_name(Architecture::Kind kind) {
  switch (kind) {
    case Architecture::Kind::block: return "block";
    case Architecture::Kind::mixer: return "mixer";
    case Architecture::Kind::whole: return "whole";
  }
  return "";
}

std::string range(const Setting& s) {
  if (s.kind == Setting::Kind::choice) {
    std::string text;
    for (const std::string& choice : s.choices) text += (text.empty() ? "" : " | ") + choice;
    return text;
  }
  if (s.kind == Setting::Kind::boolean) return "true | false";
  if (s.kind == Setting::Kind::text || s.kind == Setting::Kind::text_list) return "text";
  if (s.kind == Setting::Kind::mixer) return "a mixer";
  const auto bound = [](double v) { return std::isfinite(v) ? human(v) : std::string("…"); };
  return bound(s.minimum) + " … " + bound(s.maximum) + (s.kind == Setting::Kind::layers ? ", or groups of layers" : "");
}

nlohmann::json describe(const Setting& s) {
  nlohmann::json j{{"name", s.name}, {"default", s.default_value}, {"help", s.help}, {"source", s.source}};
  if (!s.choices.empty()) j["choices"] = s.choices;
  if (std::isfinite(s.minimum)) j["minimum"] = s.minimum;
  if (std::isfinite(s.maximum)) j["maximum"] = s.maximum;
  return j;
}

std::string describe_text(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& s : settings) {
    text += "  " + s.name + " = " + s.default_value.dump() + "   (" + range(s) + ")\n      " + s.help +
            (s.source.empty() ? "" : "  [" + s.source + "]") + "\n";
  }
  return text;
}

int run(const std::string& name) {
  nlohmann::json json = nlohmann::json::array();
  std::string text;
  if (name.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const Architecture* a : architectures()) {
      rows.push_back({a->id, a->title, kind_name(a->kind)});
      json.push_back({{"id", a->id}, {"kind", kind_name(a->kind)}, {"title", a->title}, {"paper", a->paper}});
    }
    text = table({"id", "title", "kind"}, rows) +
           "\nA model is a block with a mixer, or a whole architecture. saccade architectures NAME lists the settings.\nA hybrid stack has "
           "groups of layers with mixers of their own: \"layers\": \"3 gated_deltanet, 1 attention(window=64)\", \"depth\": 8.\n";
  } else {
    const Architecture& a = architecture(name);
    text = a.title + " (" + kind_name(a.kind) + " \"" + a.id + "\")\n" + a.paper + "\n\n" + describe_text(a.settings);
    if (a.kind != Architecture::Kind::mixer) text += "\nSettings that every architecture has:\n" + describe_text(common_settings());
    json = {{"id", a.id}, {"kind", kind_name(a.kind)}, {"title", a.title}, {"paper", a.paper}, {"settings", nlohmann::json::array()}};
    for (const Setting& s : a.settings) json["settings"].push_back(describe(s));
    if (a.looks_ahead) {
      nlohmann::json defaults = nlohmann::json::object();
      for (const Setting& s : a.settings) defaults[s.name] = s.default_value;
      const std::string sentence = a.looks_ahead(defaults);
      json["looks_ahead"] = sentence;
      if (!sentence.empty()) text += "\nNot causal with its defaults: " + sentence + "\n";
    }
  }
  print_result(json, text);
  return 0;
}

/// "llama with attention", "avey", or the groups of a hybrid stack.
std::string what_is_built(const nlohmann::json& architecture) {
  const auto text = [&](const char* key) { return architecture.value(key, std::string()); };
  const bool hybrid = architecture.contains("layers") && architecture.at("layers").is_string();
  const std::string mixer = hybrid ? text("layers") : text("mixer"), block = text("block");
  return block.empty() || mixer.empty() ? block + mixer : block + " with " + mixer;
}

/// What it builds and learns, or why a preset of the user's own cannot be read.
std::pair<std::string, std::string> describe_preset(const std::string& name) try {
  const nlohmann::json config = preset_config(name);
  const nlohmann::json data = config.value("data", nlohmann::json::object());
  return {what_is_built(config.value("architecture", nlohmann::json::object())),
          data.contains("task") ? data.at("task").get<std::string>() : data.value("corpus", std::string())};
} catch (const std::exception& error) {
  return {std::string("cannot be read: ") + error.what(), ""};
}

int list_presets() {
  nlohmann::json json = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : preset_names()) {
    const auto [built, learned] = describe_preset(name);
    rows.push_back({name, built, learned});
    json.push_back({{"name", name}, {"architecture", built}, {"data", learned}, {"file", preset_file(name).string()}});
  }
  print_result(json, table({"preset", "architecture", "trained on"}, rows) + "\nsaccade plan PRESET tells its size and its cost.\n");
  return 0;
}

const RegisterCommand command{
    {"architectures", "Blocks, mixers and whole architectures, and their settings.", "saccade architectures top1_chunk", [](CLI::App& app) {
       auto name = std::make_shared<std::string>();
       auto presets = std::make_shared<bool>(false);
       CLI::Option* named = app.add_option("NAME", *name, "Show the settings of this one");
       app.add_flag("--presets", *presets, "List the presets that train and plan take by name")->excludes(named);
       return [name, presets] { return *presets ? list_presets() : run(*name); };
     }}};

}  // namespace
}  // namespace saccade::cli
