#include "analysis/comparison/run_settings.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "analysis/comparison/group_names.h"

namespace saccade {
namespace {

using nlohmann::json;

struct Usual {
  const char *key, *title;
};
constexpr std::array kUsual{Usual{"architecture", "architecture"},
                            Usual{"/architecture/mixer", "mixer"},
                            Usual{"/architecture/width", "width"},
                            Usual{"/architecture/layers", "layers"},
                            Usual{"/architecture/heads", "heads"},
                            Usual{"/training/learning_rate", "learning rate"},
                            Usual{"/training/optimizer", "optimizer"},
                            Usual{"/training/steps", "steps"},
                            Usual{"/training/seed", "seed"},
                            Usual{"/data/corpus", "corpus"},
                            Usual{"/data/tokenizer", "tokenizer"},
                            Usual{"/data/sequence_length", "sequence length"},
                            Usual{"tag", "tag"},
                            Usual{"study", "study"},
                            Usual{"state", "state"},
                            Usual{"host", "host"}};

/// A key as a part of a pointer.
std::string escaped(const std::string& key) {
  std::string part;
  for (const char c : key) part += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return part;
}

/// Settings of a config by their pointers; groups of layers are gone into.
void flatten(const json& value, const std::string& pointer, std::vector<std::pair<std::string, const json*>>& flat) {
  const bool groups = value.is_array() && !value.empty() && value.front().is_object();
  if (!groups && !value.is_object()) return flat.emplace_back(pointer, &value), void();
  for (const auto& [key, child] : value.items()) flatten(child, pointer + "/" + escaped(key), flat);
}

std::string words_of(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  std::replace(text.begin(), text.end(), '/', ' ');
  return text;
}

std::string last_word(const std::string& key) { return words_of(key.substr(key.rfind('/') + 1)); }

/// How many runs have a setting, and whether with several values.
struct Spread {
  const json* first = nullptr;
  size_t count = 0;
  bool differs = false;
};

std::map<std::string, Spread> spreads_of(const std::vector<RunFacts>& runs) {
  std::unordered_map<std::string, Spread> found;
  std::vector<std::pair<std::string, const json*>> flat;
  for (const RunFacts& run : runs) {
    flat.clear();
    flatten(run.info.config, "", flat);
    for (const auto& [pointer, value] : flat) {
      Spread& spread = found[pointer];
      if (!spread.first) spread.first = value;
      spread.differs = spread.differs || *spread.first != *value;
      ++spread.count;
    }
  }
  return {found.begin(), found.end()};
}

bool has_any(const std::vector<RunFacts>& runs, const std::string& key) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunFacts& run) { return values_of(run, key).front().set; });
}

bool differ(const std::vector<RunFacts>& runs, const std::string& key) {
  if (key == "tag" || key == "study" || key == "host") return has_any(runs, key);
  if (runs.empty()) return false;
  const std::string first = values_of(runs.front(), key).front().text;
  return std::any_of(runs.begin(), runs.end(), [&](const RunFacts& run) { return values_of(run, key).front().text != first; });
}

SettingValue of_text(const std::string& text, const char* otherwise) {
  return text.empty() ? SettingValue{otherwise, {}, false} : SettingValue{text};
}

}  // namespace

bool operator<(const SettingValue& a, const SettingValue& b) {
  if (a.set != b.set) return a.set;
  if (a.number && b.number) return *a.number < *b.number;
  if (a.number.has_value() != b.number.has_value()) return a.number.has_value();
  return a.text < b.text;
}

std::vector<SettingValue> values_of(const RunFacts& run, const std::string& key) {
  if (key == "architecture") return {of_text(run.info.title, "not named")};
  if (key == "state") return {of_text(run.state, "not known")};
  if (key == "study") return {of_text(run.study, "no study")};
  if (key == "host") return {of_text(run.info.host, "this machine")};
  if (key == "tag") {
    std::vector<SettingValue> tags;
    if (run.notes)
      for (const std::string& tag : run.notes->tags) tags.push_back({tag});
    return tags.empty() ? std::vector<SettingValue>{{"no tag", {}, false}} : tags;
  }
  if (!key.starts_with('/')) return {{"not set", {}, false}};
  const json::json_pointer pointer(key);
  if (!run.info.config.contains(pointer)) return {{"not set", {}, false}};
  const json& value = run.info.config.at(pointer);
  if (value.is_number()) return {{plain_text(value), value.get<double>()}};
  return {{plain_text(value)}};
}

RunSetting setting_of(const std::string& key) {
  for (const Usual& usual : kUsual)
    if (key == usual.key) return {key, usual.title, true};
  return {key, last_word(key)};
}

std::vector<RunSetting> differing_settings(const std::vector<RunFacts>& runs) {
  const std::map<std::string, Spread> spreads = spreads_of(runs);
  const auto spreads_out = [&](const Spread& spread) { return spread.differs || spread.count < runs.size(); };
  std::vector<RunSetting> found;
  for (const Usual& usual : kUsual) {
    const auto spread = spreads.find(usual.key);
    const bool of_config = usual.key[0] == '/';
    if (of_config ? spread != spreads.end() && spreads_out(spread->second) : differ(runs, usual.key))
      found.push_back(setting_of(usual.key));
  }
  const auto first_other = static_cast<std::ptrdiff_t>(found.size());
  std::map<std::string, int> words;
  for (const auto& [pointer, spread] : spreads) {
    const RunSetting setting = setting_of(pointer);
    if (setting.usual || pointer == "/name" || pointer == "/description" || !spreads_out(spread)) continue;
    found.push_back(setting);
  }
  for (const RunSetting& setting : found) ++words[setting.title];
  for (RunSetting& setting : found)
    if (!setting.usual && words[setting.title] > 1) setting.title = words_of(setting.key.substr(1));
  std::sort(found.begin() + first_other, found.end(), [](const RunSetting& a, const RunSetting& b) { return a.title < b.title; });
  return found;
}

}  // namespace saccade
