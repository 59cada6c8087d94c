#include "models/config/old_names.h"

#include <algorithm>
#include <cmath>

#include "kernels/engine/error.h"
#include "models/architectures/registry.h"
#include "models/config/config.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

/// The value under the new name; `config` is the whole config, still with the old name.
using Conversion = Json (*)(const Json& value, const Json& config);

/// `evaluation_batches` counted pieces of 4096 tokens, each cut down to whole sequences and at least one sequence long.
Json batches_to_tokens(const Json& batches, const Json& config) {
  constexpr int64_t kBatch = 4096;
  int64_t length = DataConfig{}.sequence_length;
  const Json data = config.value("data", Json());
  if (const Json given = data.is_object() ? data.value("sequence_length", Json()) : Json(); given.is_number())
    length = std::llround(std::clamp(given.get<double>(), 1.0, 1e9));
  const double tokens = static_cast<double>(std::max<int64_t>(1, kBatch / length) * length);
  if (batches.is_number_integer() && std::abs(batches.get<double>()) < 1e6) return batches.get<int64_t>() * static_cast<int64_t>(tokens);
  return batches.is_number() ? Json(batches.get<double>() * tokens) : batches;
}

struct OldName {
  const char *section, *old_name, *name;
  Conversion convert;  ///< null: the value stays as it is
};

/// Every setting that had another name before: the one table of them.
constexpr OldName kOldNames[] = {
    {"architecture", "host", "block", nullptr},
    {"training", "accumulate", "gradient_accumulation", nullptr},
    {"training", "recompute", "activation_checkpointing", nullptr},
    {"training", "clip", "max_grad_norm", nullptr},
    {"training", "final_learning_rate", "min_lr_ratio", nullptr},
    {"training", "evaluation_batches", "evaluation_tokens", batches_to_tokens},
};

/// A setting that was added, and what had been done before: in an architecture, or with another default.
struct OldDefault {
  const char *section, *name, *value;  ///< value: JSON text
  const char *where, *is;              ///< only where this setting of the section has this value
};

/// Every such setting: the one table of them.
constexpr OldDefault kOldDefaults[] = {
    {"architecture", "initialisation", R"("xavier")", "block", "avey"},
    {"architecture", "mixer_inputs", R"("plain")", "block", "rwkv"},
    {"architecture", "negative_eigenvalues", "false", "mixer", "deltanet"},
    {"architecture", "negative_eigenvalues", "false", "mixer", "gated_deltanet"},
};

/// Whether an architecture has the setting: a block may offer it to some mixers only.
bool has_setting(const Json& architecture, const std::string& name) {
  try {
    const std::vector<Setting> settings = settings_of(architecture.at("block"), architecture.value("mixer", "attention"));
    return std::any_of(settings.begin(), settings.end(), [&](const Setting& s) { return s.name == name; });
  } catch (const std::exception&) {
    return false;  // names or values that are none: for the schemas to say
  }
}

/// Settings that came later, with a default that is what had been done before: configs without them are equal to those with it.
constexpr std::pair<const char*, const char*> kAdded[] = {
    {"data", "vocabulary_multiple"},
    {"data", "weights"},
    {"data", "min_document_tokens"},
    {"data", "max_document_tokens"},
    {"data", "packing"},
    {"data", "task"},
    {"training", "optimizer"},
    {"training", "learning_rate_multipliers"},
    {"training", "warmup_share"},
    {"training", "batch_warmup_steps"},
    {"training", "batch_warmup_tokens"},
    {"training", "keep_checkpoints"},
    {"training", "evaluate_at_start"},
    {"training", "initialisation"},
    {"training", "initial_deviation"},
    {"training", "mup_base_width"},
    {"training", "final_evaluation_tokens"},
    {"training", "stop_at_accuracy"},
};

void fill_added(Json& config, const std::string& section, const std::vector<Setting>& settings) {
  if (!config.contains(section) || !config.at(section).is_object()) return;
  for (const auto& [where, name] : kAdded)
    for (const Setting& s : settings)
      if (where == section && s.name == name && !config.at(section).contains(name)) config[section][name] = s.default_value;
}

std::string dotted(const OldName& entry, const char* name) { return std::string(entry.section) + "." + name; }

}  // namespace

std::vector<std::string> rename_settings(Json& config) {
  std::vector<std::string> renamed;
  if (!config.is_object()) return renamed;
  const Json given = config;
  for (const OldName& entry : kOldNames) {
    if (!given.contains(entry.section) || !given.at(entry.section).is_object()) continue;
    const Json& section = given.at(entry.section);
    if (!section.contains(entry.old_name)) continue;
    const std::string old_pointer = std::string("/") + entry.section + "/" + entry.old_name;
    if (section.contains(entry.name))
      throw UsageError(old_pointer + " is the old name of /" + entry.section + "/" + entry.name + "; both are given, expected one");
    const Json& value = section.at(entry.old_name);
    config[entry.section].erase(entry.old_name);
    config[entry.section][entry.name] = entry.convert ? entry.convert(value, given) : value;
    renamed.push_back(dotted(entry, entry.old_name) + " is now " + dotted(entry, entry.name) +
                      (entry.convert ? " (" + value.dump() + " reads as " + config[entry.section][entry.name].dump() + ")" : ""));
  }
  return renamed;
}

std::string rename_settings(Json& config, const std::string& origin) {
  std::string line;
  for (const std::string& renamed : rename_settings(config)) line += (line.empty() ? origin + ": " : "; ") + renamed;
  return line;
}

void fill_old_defaults(Json& config) {
  if (!config.is_object()) return;
  for (const OldDefault& entry : kOldDefaults) {
    if (!config.contains(entry.section) || !config.at(entry.section).is_object()) continue;
    Json& section = config.at(entry.section);
    if (section.contains(entry.where) && section.at(entry.where) == entry.is && !section.contains(entry.name) &&
        has_setting(section, entry.name))
      section[entry.name] = Json::parse(entry.value);
  }
  fill_added(config, "data", data_schema.settings());
  fill_added(config, "training", training_schema.settings());
  if (config.contains("training") && !config.contains("description")) config["description"] = "";
}

void remove_other_name(Json& config, const std::string& path) {
  for (const OldName& entry : kOldNames) {
    const bool is_old = path == dotted(entry, entry.old_name), is_new = path == dotted(entry, entry.name);
    if ((is_old || is_new) && config.is_object() && config.contains(entry.section) && config.at(entry.section).is_object())
      config[entry.section].erase(is_old ? entry.name : entry.old_name);
  }
}

std::string current_setting_name(const std::string& name) {
  for (const OldName& entry : kOldNames)
    if (name == entry.old_name) return entry.name;
  return name;
}

}  // namespace saccade
