#include "ui/configure/config_draft.h"

#include <algorithm>
#include <set>

#include "models/architectures/registry.h"
#include "models/architectures/stack.h"
#include "models/optimizers/registry.h"
#include "models/schedules/registry.h"
#include "models/tasks/symbol_task.h"
#include "ui/configure/json_position.h"

namespace saccade::ui {
namespace {

using Json = nlohmann::json;

const std::set<std::string> optimizer_settings{
    "gradient_accumulation", "activation_checkpointing",  "warmup_steps", "warmup_share", "batch_warmup_steps",
    "batch_warmup_tokens",   "learning_rate_multipliers", "schedule",     "min_lr_ratio", "optimizer",
    "max_grad_norm",         "max_logit_penalty"};
const std::set<std::string> saving_settings{"evaluate_at_start", "evaluate_every", "evaluation_tokens", "probe_every",
                                            "capture_every",     "capture_tokens", "checkpoint_every"};

std::string training_group(const std::string& name) {
  if (optimizer_settings.count(name)) return "Optimizer";
  return saving_settings.count(name) ? "Evaluation and saving" : "Training";
}

bool is_of_model(const std::string& pointer) {
  static const std::set<std::string> others{"/data/tokenizer", "/training/optimizer", "/training/initialisation", "/precision"};
  return pointer.rfind("/architecture/", 0) == 0 || others.count(pointer) > 0;
}

Json::json_pointer at(const std::string& pointer) { return Json::json_pointer(pointer); }

/// Groups in the order in which each is first met, their fields together.
std::vector<FormField> gathered(const std::vector<FormField>& fields) {
  std::vector<std::string> groups;
  for (const FormField& field : fields)
    if (std::find(groups.begin(), groups.end(), field.group) == groups.end()) groups.push_back(field.group);
  std::vector<FormField> sorted;
  for (const std::string& group : groups)
    std::copy_if(fields.begin(), fields.end(), std::back_inserter(sorted), [&](const FormField& field) { return field.group == group; });
  return sorted;
}

/// A value of a config as the form shows it.
Json shown(const Json& config, const FormField& field) {
  if (!config.contains(at(field.pointer))) return field.setting.default_value;
  const Json& value = config.at(at(field.pointer));
  try {
    if (field.setting.kind == Setting::Kind::layers && value.is_array()) return stack_text(config.at("architecture"));
    if (field.setting.kind == Setting::Kind::mixer && value.is_object()) return mixer_text(value);
  } catch (const Error&) {
    return value;  // resolve() says what is wrong with it
  }
  return value;
}

/// Whether the groups of a hybrid stack can be read at all.
bool readable_stack(const Json& architecture) {
  try {
    return is_stack(architecture) && !stack_settings(architecture).empty();
  } catch (const Error&) {
    return false;
  }
}

bool known(const std::string& id) {
  const auto& all = architectures();
  return std::any_of(all.begin(), all.end(), [&](const Architecture* a) { return a->id == id; });
}

}  // namespace

void ConfigDraft::start(const Json& preset) {
  preset_ = preset;
  json_ = preset;
  aside_ = Json::object();
}

std::string ConfigDraft::written_in_data(const char* key, const std::string& usual) const {
  const Json data = json_.value("data", Json::object());
  return data.is_object() && data.contains(key) && data.at(key).is_string() ? data.at(key).get<std::string>() : usual;
}

const SymbolTask* ConfigDraft::task() const {
  const auto& all = symbol_tasks();
  const auto found = std::find_if(all.begin(), all.end(), [name = task_name()](const SymbolTask* each) { return each->id == name; });
  return found == all.end() ? nullptr : *found;
}

std::string ConfigDraft::chosen(const char* key) const {
  const Json architecture = json_.value("architecture", Json::object());
  if (architecture.is_object() && architecture.contains(key) && architecture.at(key).is_string()) return architecture.at(key);
  if (key == std::string("block") && known(chosen("mixer"))) return saccade::architecture(chosen("mixer")).home;
  for (const Setting& setting : common_settings())
    if (setting.name == key) return setting.default_value;
  return {};
}

/// Of a hybrid stack: what is the same for all its groups. The rest stands in the groups.
std::vector<FormField> ConfigDraft::stackFields(const Json& architecture) const {
  std::vector<FormField> list;
  std::set<std::string> common{"depth"}, of_stem;
  for (const Setting& setting : common_settings()) common.insert(setting.name);
  const std::vector<StackSetting> settings = stack_settings(architecture);
  const Architecture& stem = saccade::architecture(architecture.value("block", settings.front().setting.default_value.get<std::string>()));
  for (const Setting& setting : stem.settings) of_stem.insert(setting.name);
  for (const StackSetting& each : settings) {
    const std::string& name = each.setting.name;
    if (name == "mixer" || (!each.shared && !architecture.contains(name))) continue;
    const std::string group = common.count(name) ? "Architecture" : of_stem.count(name) ? stem.title : "All groups of layers";
    list.push_back({each.setting, "/architecture/" + name, group});
  }
  return list;
}

std::string ConfigDraft::chosen_in_training(const char* key) const {
  const TrainingConfig usual;
  const Json training = json_.value("training", Json::object());
  for (const Setting& setting : training_settings(usual.optimizer, usual.schedule)) {
    if (setting.name != key) continue;
    const bool given = training.is_object() && training.contains(key) && training.at(key).is_string();
    const std::string name = given ? training.at(key) : setting.default_value;
    const bool known_name = std::find(setting.choices.begin(), setting.choices.end(), name) != setting.choices.end();
    return known_name ? name : setting.default_value.get<std::string>();  // resolve() reports a name mistyped in the JSON view
  }
  return {};
}

std::vector<FormField> ConfigDraft::architectureFields() const {
  if (const Json given = json_.value("architecture", Json::object()); readable_stack(given)) return stackFields(given);
  std::vector<FormField> list;
  std::string block = chosen("block"), mixer = chosen("mixer");
  if (!known(block) || !known(mixer)) block = "llama", mixer = "attention";  // a name mistyped in the JSON view; resolve() reports it
  std::set<std::string> common;
  Json chosen_by_default = Json::object();  // settings_of() calls whatever is chosen the default
  for (const Setting& setting : common_settings()) {
    common.insert(setting.name);
    if (setting.name == "block" || setting.name == "mixer") chosen_by_default[setting.name] = setting.default_value;
  }
  chosen_by_default["block"] = architecture(mixer).home;
  std::set<std::string> of_block;
  for (const Setting& setting : architecture(block).settings) of_block.insert(setting.name);
  for (Setting& setting : settings_of(block, mixer)) {
    const std::string group = common.count(setting.name)     ? "Architecture"
                              : of_block.count(setting.name) ? architecture(block).title
                                                             : architecture(mixer).title;
    const std::string pointer = "/architecture/" + setting.name;
    if (chosen_by_default.contains(setting.name)) setting.default_value = chosen_by_default.at(setting.name);
    list.push_back({std::move(setting), pointer, group});
  }
  return list;
}

/// A generated task takes the place of a corpus and has domains, symbols and a length of its own as defaults.
std::vector<FormField> ConfigDraft::dataFields() const {
  static const std::set<std::string> of_text{"corpus", "packing", "min_document_tokens", "max_document_tokens"};
  static const std::set<std::string> by_task{"train", "ood", "sequence_length", "tokenizer"};
  const SymbolTask* chosen_task = task();
  Json usual = Json::object();
  if (chosen_task) {
    Json domains = json_.at("data");
    for (const char* follows : {"sequence_length", "tokenizer"}) domains.erase(follows);
    try {
      usual = with_task_defaults(domains);
    } catch (const Error&) {  // a difficulty mistyped; resolve() reports it
    }
    usual["train"] = chosen_task->train;
    usual["ood"] = chosen_task->test;
  }
  std::vector<FormField> list;
  for (Setting& setting : data_schema.settings()) {
    if (chosen_task && of_text.count(setting.name)) continue;
    if (by_task.count(setting.name) && usual.contains(setting.name)) setting.default_value = usual.at(setting.name);
    const std::string pointer = "/data/" + setting.name;
    list.push_back({std::move(setting), pointer, "Data"});
  }
  return list;
}

std::vector<FormField> ConfigDraft::fields() const {
  std::vector<FormField> list = architectureFields();
  for (FormField& field : dataFields()) list.push_back(std::move(field));
  const std::string optimizer_id = chosen_in_training("optimizer"), schedule_id = chosen_in_training("schedule");
  std::set<std::string> of_entries;
  for (const Setting& setting : optimizer(optimizer_id).settings) of_entries.insert(setting.name);
  for (const Setting& setting : schedule(schedule_id).settings) of_entries.insert(setting.name);
  for (Setting& setting : training_settings(optimizer_id, schedule_id)) {
    const std::string pointer = "/training/" + setting.name;
    const std::string group = of_entries.count(setting.name) ? "Optimizer" : training_group(setting.name);
    list.push_back({std::move(setting), pointer, group});
  }
  for (Setting& setting : run_schema.settings()) {
    const std::string pointer = "/" + setting.name;
    list.push_back({std::move(setting), pointer, "Run"});
  }
  if (keeps_model_) std::erase_if(list, [](const FormField& field) { return is_of_model(field.pointer); });
  return gathered(list);
}

Json ConfigDraft::value(const FormField& field) const { return shown(json_, field); }

Json ConfigDraft::preset_value(const FormField& field) const { return shown(preset_, field); }

void ConfigDraft::put(const std::string& pointer, const Json& value, const Json& default_value) {
  if (value != default_value || preset_.contains(at(pointer))) {
    json_[at(pointer)] = value;
    return;
  }
  const Json::json_pointer place = at(pointer), section = place.parent_pointer();
  if (!json_.contains(place)) return;
  json_[section].erase(place.back());
  if (!section.empty() && json_[section].empty()) json_.erase(section.back());
}

void ConfigDraft::set(const FormField& field, const Json& value) {
  const std::string task_before = task_name();
  put(field.pointer, value, field.setting.default_value);
  if (field.pointer == "/architecture/block" || field.pointer == "/architecture/mixer" || field.pointer == "/architecture/layers")
    keep_fitting_settings("architecture");
  if (field.pointer == "/training/optimizer" || field.pointer == "/training/schedule") keep_fitting_settings("training");
  if (field.pointer == "/data/task" && task_name() != task_before) exchange_data(task_before);
}

/// Text and a task have no domains in common, nor have two tasks: what each had is put aside under its name, and comes back with it.
void ConfigDraft::exchange_data(const std::string& task_before) {
  Json data = json_.value("data", Json::object());
  const Json named = data.contains("task") ? Json{{"task", data.at("task")}} : Json::object();
  data.erase("task");
  aside_["data"][task_before] = data;
  Json now = aside_["data"].value(task_name(), Json::object());
  now.update(named);
  if (now.empty())
    json_.erase("data");
  else
    json_["data"] = now;
}

void ConfigDraft::keep_fitting_settings(const std::string& section) {
  if (!json_.contains(section)) return;
  std::set<std::string> fitting;
  const Json architecture = json_.value("architecture", Json::object());
  if (section == "architecture" && readable_stack(architecture)) {
    for (const StackSetting& each : stack_settings(architecture)) fitting.insert(each.setting.name);
  } else {
    if (section == "architecture" && is_stack(architecture)) return;  // half written
    for (const FormField& field : fields())
      if (field.pointer.rfind("/" + section + "/", 0) == 0) fitting.insert(field.setting.name);
  }
  Json all = aside_.value(section, Json::object());
  all.update(json_.at(section));
  Json kept = Json::object(), aside = Json::object();
  for (const auto& [name, value] : all.items()) (fitting.count(name) || name == "block" ? kept : aside)[name] = value;
  json_[section] = kept;
  aside_[section] = aside;
}

int ConfigDraft::changes() const {
  int count = 0;
  for (const FormField& field : fields()) count += changed(field) ? 1 : 0;
  return count;
}

std::string pointer_in(const std::string& message, const std::vector<FormField>& fields) {
  for (std::string candidate : pointers_in(message))
    for (; !candidate.empty(); candidate.erase(candidate.rfind('/')))
      if (std::any_of(fields.begin(), fields.end(), [&](const FormField& field) { return field.pointer == candidate; })) return candidate;
  return {};
}

std::optional<RunConfig> resolve(const ConfigDraft& draft, ConfigProblem* problem) {
  const std::string origin = "config";
  try {
    return resolve_config(draft.json(), origin);
  } catch (const Error& error) {
    std::string message = error.what();
    if (message.rfind(origin + ": ", 0) == 0) message.erase(0, origin.size() + 2);
    *problem = {message, pointer_in(message, draft.fields())};
    return {};
  }
}

std::string causality_warning(const RunConfig& config) {
  const Json& values = config.architecture;
  for (const char* key : {"block", "mixer"}) {
    if (!values.contains(key)) continue;
    const Architecture& part = architecture(values.at(key));
    if (const std::string warning = part.looks_ahead ? part.looks_ahead(values) : std::string(); !warning.empty()) return warning;
  }
  return {};
}

}  // namespace saccade::ui
