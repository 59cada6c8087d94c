#pragma once
#include <optional>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/json.h"
#include "models/settings.h"

namespace saccade {
struct SymbolTask;
}

namespace saccade::ui {

/// A setting at its place in the config.
struct FormField {
  Setting setting;
  std::string pointer;  ///< "/training/steps"
  std::string group;    ///< title of the group it stands in
};

/// A config being written: what was set, over a preset, over the registry's defaults.
class ConfigDraft {
 public:
  using Json = nlohmann::json;

  /// What was set, and nothing else; always an object of objects where sections stand.
  const Json& json() const { return json_; }
  const Json& preset() const { return preset_; }
  /// Starts over from a preset (or {}); "changed" then means: other than there.
  void start(const Json& preset);
  /// Takes a whole config over; "changed" stays measured against the preset.
  void replace(const Json& config) { json_ = config; }

  /// All fields of the chosen block and mixer, in form order; groups stand together.
  std::vector<FormField> fields() const;
  /// A fork keeps its parent's model, tokenizer, precision and optimizer: they are then no fields.
  void keepModel(bool keep) { keeps_model_ = keep; }
  /// As set, else the default. Mixers and groups of layers are in their short form, as a person writes them.
  Json value(const FormField& field) const;
  Json preset_value(const FormField& field) const;
  bool changed(const FormField& field) const { return value(field) != preset_value(field); }
  /// Settings that the new block, mixer, optimizer, schedule or task does not have are put aside, and come back with it.
  void set(const FormField& field, const Json& value);
  void reset(const FormField& field) { set(field, preset_value(field)); }
  int changes() const;
  /// Name of the generated task that is written, known or not; empty: text.
  std::string task_name() const { return written_in_data("task", {}); }
  const SymbolTask* task() const;  ///< null where there is none so called
  /// The corpus that is written, else the usual one.
  std::string corpus() const { return written_in_data("corpus", DataConfig{}.corpus); }

 private:
  std::string chosen(const char* key) const;
  std::string written_in_data(const char* key, const std::string& usual) const;
  std::vector<FormField> architectureFields() const;
  std::vector<FormField> stackFields(const Json& architecture) const;
  std::vector<FormField> dataFields() const;
  void put(const std::string& pointer, const Json& value, const Json& default_value);
  std::string chosen_in_training(const char* key) const;
  void keep_fitting_settings(const std::string& section);
  void exchange_data(const std::string& task_before);

  Json json_ = Json::object(), preset_ = Json::object(), aside_ = Json::object();  ///< aside_: by section, of "data" by task
  bool keeps_model_ = false;
};

/// Why a config is refused: the message without its origin, and the field it is about (empty: none of them).
struct ConfigProblem {
  std::string message, pointer;
};
/// The resolved config, or what is wrong with it.
std::optional<RunConfig> resolve(const ConfigDraft& draft, ConfigProblem* problem);
/// The field that a message names first by its JSON pointer, or empty.
std::string pointer_in(const std::string& message, const std::vector<FormField>& fields);

/// Where a position can see its future, or empty: the model is causal.
std::string causality_warning(const RunConfig& config);

}  // namespace saccade::ui
