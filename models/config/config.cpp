#include "models/config/config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "kernels/engine/device.h"
#include "models/architectures/registry.h"
#include "models/config/old_names.h"
#include "models/config_text.h"
#include "models/corpus/disk.h"
#include "models/optimizers/registry.h"
#include "models/schedules/registry.h"
#include "models/schedules/wsd.h"
#include "models/tasks/symbol_task.h"

namespace saccade {
namespace {

using Json = nlohmann::json;

constexpr double kMany = 1e12;

std::string text(int64_t number) { return std::to_string(number); }

/// What no single setting can tell.
void check_data(const DataConfig& data) {
  if (data.train.empty()) throw UsageError("/data/train is empty; expected at least one domain to train on");
  std::set<std::string> seen;
  const auto check = [&](const std::vector<std::string>& domains, const std::string& pointer) {
    for (const std::string& domain : domains) {
      if (domain.empty()) throw UsageError(pointer + " holds an empty name; expected names of domains");
      if (!seen.insert(domain).second) throw UsageError(pointer + " names the domain \"" + domain + "\", which /data names already");
    }
  };
  check(data.train, "/data/train");
  check(data.ood, "/data/ood");
  if (!data.weights.empty() && data.weights.size() != data.train.size())
    throw UsageError("/data/weights holds " + text(static_cast<int64_t>(data.weights.size())) +
                     " numbers; expected one for each domain of /data/train, " + text(static_cast<int64_t>(data.train.size())));
  if (!data.weights.empty() && std::all_of(data.weights.begin(), data.weights.end(), [](double w) { return w == 0; }))
    throw UsageError("/data/weights are all 0; expected at least one positive number");
  if (data.max_document_tokens > 0 && data.max_document_tokens < data.min_document_tokens)
    throw UsageError("/data/max_document_tokens is " + text(data.max_document_tokens) + "; expected at least /data/min_document_tokens, " +
                     text(data.min_document_tokens));
  if (data.corpus.empty() && data.task.empty()) throw UsageError("/data/corpus is empty; expected the name of a corpus");
  if (data.tokenizer.empty()) throw UsageError("/data/tokenizer is empty; expected bytes, bpe:N, unigram:N or the path of a file");
}

/// Domains of a generated task, as /data/train and /data/ood name them. Throws UsageError.
std::vector<SymbolDomain> task_domains(const SymbolTask& task, const Json& names, const std::string& pointer) {
  std::vector<SymbolDomain> domains;
  for (const std::string& name : names.get<std::vector<std::string>>()) domains.emplace_back(task, name, pointer);
  return domains;
}

bool names_task(const Json& section) {
  return section.is_object() && section.contains("task") && section.at("task").is_string() && section.at("task") != "";
}

/// Of a task: that nothing of text is given, and that sequences and symbols suffice.
void check_task(const DataConfig& data) {
  const SymbolTask& task = symbol_task(data.task);
  const DataConfig usual;
  if (!data.corpus.empty() || data.packing != usual.packing || data.min_document_tokens > 0 || data.max_document_tokens > 0)
    throw UsageError("/data/task is \"" + data.task +
                     "\", which takes the place of a corpus; expected no corpus, packing and document lengths beside it");
  for (const SymbolDomain& domain : task_domains(task, data.train, "/data/train"))
    if (domain.length() > data.sequence_length)
      throw UsageError("/data/sequence_length is " + text(data.sequence_length) + "; expected at least " + text(domain.length()) + " for " +
                       domain.name());
  for (const auto* names : {&data.train, &data.ood})
    for (const SymbolDomain& domain : task_domains(task, *names, "/data"))
      if (!domain.reads(data.tokenizer))
        throw UsageError("/data/tokenizer is \"" + data.tokenizer + "\"; expected " + domain.tokenizer() +
                         (domain.tokenizer() == "bytes" ? " for " : " or more for ") + domain.name());
}

void check_batch_warmup(const TrainingConfig& t) {
  if (t.batch_warmup_steps == 0) return;
  const int64_t start = t.batch_warmup_tokens, micro_batch = micro_batch_tokens(t);
  if (start == 0 || t.batch_tokens % start != 0)
    throw UsageError("/training/batch_warmup_tokens is " + text(start) + "; expected a divisor of /training/batch_tokens, " +
                     text(t.batch_tokens));
  if (start % micro_batch != 0)
    throw UsageError("/training/batch_warmup_tokens is " + text(start) + "; expected a multiple of the " + text(micro_batch) +
                     " tokens of a micro-batch (batch_tokens / gradient_accumulation)");
}

/// Branches begin where the learning rate is at its peak.
void check_branches(const TrainingConfig& t) {
  const std::vector<int64_t> starts = cooldown_steps_of(t);
  if (t.schedule != "wsd") return;
  const WsdSettings wsd = wsd_schema.read(t.schedule_settings, "/training");
  const int64_t stable = t.steps - wsd.cooldown(t.steps);
  if (!wsd.cooldown_at_loss.empty() && wsd.branch_cooldown(stable) < 1)
    throw UsageError(
        "/training/cooldown_at_loss needs a cooldown; set /training/cooldown_share below 1 or /training/cooldown_steps above 0");
  if (starts.empty()) return;
  if (starts.front() < warmup_steps(t) || starts.back() > stable)
    throw UsageError("/training/cooldown_at names step " + text(starts.front() < warmup_steps(t) ? starts.front() : starts.back()) +
                     "; expected steps between the warm-up and the cooldown, " + text(warmup_steps(t)) + " to " + text(stable));
  if (wsd.branch_cooldown(starts.front()) < 1)
    throw UsageError("/training/cooldown_at needs a cooldown; set /training/cooldown_share below 1 or /training/cooldown_steps above 0");
}

void check_training(const TrainingConfig& t, const DataConfig& data) {
  if (t.batch_tokens % data.sequence_length != 0)
    throw UsageError("/training/batch_tokens is " + text(t.batch_tokens) + "; expected a multiple of /data/sequence_length, " +
                     text(data.sequence_length));
  if (const int64_t sequences = t.batch_tokens / data.sequence_length; sequences % t.gradient_accumulation != 0)
    throw UsageError("/training/gradient_accumulation is " + text(t.gradient_accumulation) + ", which does not divide the " +
                     text(sequences) + " sequences of a step (batch_tokens / sequence_length)");
  if (warmup_steps(t) > t.steps)
    throw UsageError("/training/warmup_steps is " + text(t.warmup_steps) + "; expected at most /training/steps, " + text(t.steps));
  check_batch_warmup(t);
  if (t.stop_at_accuracy > 0 && data.task.empty())
    throw UsageError("/training/stop_at_accuracy needs answers that are right or wrong; expected a /data/task");
  steps_of(t.keep_checkpoints, t.steps, "/training/keep_checkpoints");
  parse_multipliers(t.learning_rate_multipliers, "/training/learning_rate_multipliers");
  if (const Schedule& chosen = schedule(t.schedule); chosen.check)
    chosen.check({t.steps, warmup_steps(t), t.steps}, t.schedule_settings, "/training");
  check_branches(t);
  if (t.capture_tokens > data.sequence_length)
    throw UsageError("/training/capture_tokens is " + text(t.capture_tokens) + "; expected at most /data/sequence_length, " +
                     text(data.sequence_length));
}

void check_run(const RunConfig& config) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
  if (config.name.empty() || config.name.size() > 200 || std::any_of(config.name.begin(), config.name.end(), control))
    throw UsageError("/name is empty, longer than 200 bytes or holds control characters; expected a short line of text");
  const std::string& d = config.device;
  const bool numbered =
      d.rfind("cuda:", 0) == 0 && d.size() > 5 && d.size() < 9 && d.find_first_not_of("0123456789", 5) == std::string::npos;
  if (d != "auto" && d != "cpu" && d != "cuda" && !numbered && !gpu_range(d))
    throw UsageError("/device is " + Json(d).dump() + "; expected auto, cpu, cuda, cuda:N or cuda:N-M");
  if (config.precision == "bf16" && d == "cpu")
    throw UsageError("/precision is \"bf16\", which the CPU does not compute in; expected f32 or f64");
}

/// The model that µP starts from must be one.
void check_initialisation(const RunConfig& config) {
  if (config.training.initialisation != "mup") return;
  const auto fail = [](const std::string& what) { throw UsageError("/training/initialisation is \"mup\"; expected " + what); };
  if (config.training.mup_base_width == 0) fail("/training/mup_base_width above 0");
  if (config.training.optimizer != "adamw") fail("/training/optimizer \"adamw\", whose learning rates it is made for");
  if (!config.architecture.contains("mixer") || !config.architecture.at("layers").is_number_integer())
    fail("a block with one mixer in all layers");
  Json base = config.architecture;
  base["width"] = config.training.mup_base_width;
  try {
    resolve_architecture(base, config.data.sequence_length);
  } catch (const UsageError& error) {
    throw UsageError("/training/mup_base_width is " + text(config.training.mup_base_width) +
                     ", and a model of that width is refused: " + error.what());
  }
}

/// A name for a run that has none: its architecture's, in file-name letters ("top-1-chunk-exact").
std::string default_name(const Json& architecture) {
  std::string name;
  for (char c : architecture_title(architecture)) {
    if (c == '+') {
      name += 'p';
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '.') {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

std::vector<std::string> names_of(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const Setting& s : settings) names.push_back(s.name);
  return names;
}
template <class S>
std::vector<std::string> names_of(const Schema<S>& schema) {
  return names_of(schema.settings());
}

template <class S>
S read_section(const Json& object, const char* key, const Schema<S>& schema) {
  const std::string pointer = std::string("/") + key;
  const Json section = object.value(key, Json::object());
  check_known_keys(section, names_of(schema), pointer);
  return schema.read(section, pointer);
}

/// Says whose a setting is that another optimizer or schedule has.
void check_not_of_another(const Json& section, const std::vector<Setting>& known, const std::string& optimizer_id,
                          const std::string& schedule_id) {
  const std::vector<std::string> names = names_of(known);
  const auto check = [&](const auto& entry, const char* kind, const std::string& chosen) {
    for (const Setting& s : entry.settings)
      if (section.contains(s.name) && std::find(names.begin(), names.end(), s.name) == names.end())
        throw UsageError("/training/" + s.name + " is a setting of the " + kind + " " + entry.id + "; /training/" + kind + " is \"" +
                         chosen + "\"");
  };
  for (const OptimizerEntry* entry : optimizers()) check(*entry, "optimizer", optimizer_id);
  for (const Schedule* entry : schedules()) check(*entry, "schedule", schedule_id);
}

/// "optimizer" and "schedule" are read before all other settings because those depend on them.
std::string chosen_entry(const Json& section, const char* key) {
  const TrainingConfig usual;
  for (const Setting& s : training_settings(usual.optimizer, usual.schedule)) {
    if (s.name != key) continue;
    if (!section.contains(key)) return s.default_value;
    check_setting(s, section.at(key), std::string("/training/") + key);
  }
  return section.at(key);
}

TrainingConfig read_training(const Json& object) {
  Json section = object.value("training", Json::object());
  if (!section.is_object()) check_known_keys(section, {}, "/training");
  const std::string optimizer_id = chosen_entry(section, "optimizer"), schedule_id = chosen_entry(section, "schedule");
  const std::vector<Setting> settings = training_settings(optimizer_id, schedule_id);
  check_not_of_another(section, settings, optimizer_id, schedule_id);
  check_known_keys(section, names_of(settings), "/training");
  for (const auto& [name, value] : schedule(schedule_id).defaults.items())
    if (!section.contains(name)) section[name] = value;
  TrainingConfig training = training_schema.read(section, "/training");
  training.optimizer_settings = resolved_values(optimizer(optimizer_id).settings, section, "/training");
  training.schedule_settings = resolved_values(schedule(schedule_id).settings, section, "/training");
  return training;
}

/// Of a config that another version may have written: what it says where that is known here, else the usual ones.
std::vector<Setting> settings_of_training(const Json& section) {
  const auto known = [&](const char* key, const auto& all, const std::string& usual) {
    const std::string given = section.is_object() && section.contains(key) && section.at(key).is_string() ? section.at(key) : Json(usual);
    return std::any_of(all.begin(), all.end(), [&](const auto* entry) { return entry->id == given; }) ? given : usual;
  };
  const TrainingConfig usual;
  return training_settings(known("optimizer", optimizers(), usual.optimizer), known("schedule", schedules(), usual.schedule));
}

RunConfig resolve(const Json& object) {
  std::vector<std::string> names = names_of(run_schema);
  names.insert(names.end(), {"architecture", "data", "training"});
  check_known_keys(object, names, "");
  RunConfig config = run_schema.read(object, "");
  Json given = object;
  if (given.contains("data")) given["data"] = with_task_defaults(given["data"]);
  config.data = read_section(given, "data", data_schema);
  config.training = read_training(object);
  const bool capture_given = object.contains("training") && object.at("training").contains("capture_tokens");
  if (!capture_given) config.training.capture_tokens = std::min(config.training.capture_tokens, config.data.sequence_length);
  check_data(config.data);
  if (!config.data.task.empty()) check_task(config.data);
  check_training(config.training, config.data);
  config.architecture = resolve_architecture(object.value("architecture", Json::object()), config.data.sequence_length);
  if (!object.contains("name")) config.name = default_name(config.architecture);
  check_run(config);
  check_initialisation(config);
  return config;
}

/// Of one section: the settings that are no repetition, as given or else their default, and whatever this version does not know.
Json experiment_section(Json section, const std::vector<Setting>& settings) {
  if (!section.is_object()) return section;
  for (const Setting& s : settings) {
    if (s.repetition)
      section.erase(s.name);
    else if (!section.contains(s.name))
      section[s.name] = s.default_value;
  }
  return section;
}

/// Types alone: ranges and choices have changed between versions.
template <class S>
void check_types(const Json& section, const Schema<S>& schema, const std::string& pointer) {
  for (Setting setting : schema.settings()) {
    if (!section.contains(setting.name)) continue;
    if (setting.kind == Setting::Kind::choice) setting.kind = Setting::Kind::text;
    setting.maximum = std::numeric_limits<double>::infinity(), setting.minimum = -setting.maximum;
    check_setting(setting, section.at(setting.name), pointer + "/" + setting.name);
  }
}

/// Throws UsageError when the file, or the overrides among themselves, give a setting under its old name and its new one.
void apply_overrides(Json& object, const std::vector<std::string>& overrides, const std::string& origin) {
  const auto check_names = [](Json config, const std::string& where) {
    try {
      rename_settings(config);
    } catch (const UsageError& error) {
      throw UsageError(where + ": " + error.what());
    }
  };
  check_names(object, origin);
  Json alone = Json::object();
  for (const std::string& assignment : overrides) {
    remove_other_name(object, assignment.substr(0, assignment.find('=')));
    apply_override(object, assignment);
    apply_override(alone, assignment);
  }
  check_names(alone, "--set");
}

}  // namespace

Json with_task_defaults(Json section) {
  if (!names_task(section)) return section;
  const auto is_list = [](const Json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& name) { return name.is_string(); });
  };
  const SymbolTask& task = symbol_task(section.at("task").get<std::string>());
  section.emplace("train", task.train);
  section.emplace("ood", task.test);
  section.emplace("corpus", "");
  if (!is_list(section.at("train")) || !is_list(section.at("ood"))) return section;  // the schema says so
  int64_t length = 0, vocabulary = 0;
  std::string tokenizer;
  for (const char* kind : {"train", "ood"})
    for (const SymbolDomain& domain : task_domains(task, section.at(kind), std::string("/data/") + kind)) {
      if (std::string(kind) == "train") length = std::max(length, domain.length());
      if (domain.vocabulary() > vocabulary) vocabulary = domain.vocabulary(), tokenizer = domain.tokenizer();
    }
  section.emplace("sequence_length", length);
  section.emplace("tokenizer", tokenizer);
  return section;
}

const Schema<DataConfig> data_schema{
    text_field("corpus", &DataConfig::corpus,
               "An imported corpus, or local-text, or text of a task to train on (task-copy, task-mqar, task-passkey; not the benchmarks "
               "called so), or the path of a folder of token shards as llm.c writes them (fineweb_train_000001.bin)."),
    list_field("train", &DataConfig::train, "Domains to train on.", "arXiv:2505.18522, section 2.1"),
    list_field("ood", &DataConfig::ood, "Domains to evaluate on that are not trained on.", "arXiv:2505.18522, section 2.1"),
    text_field("tokenizer", &DataConfig::tokenizer,
               "bytes, bpe:N or unigram:N (trained here), or the path of a SentencePiece .model, a tokenizer.json, a rank file "
               "(cl100k_base.tiktoken) or a vocab.json with merges.txt beside it."),
    field("vocabulary_multiple", &DataConfig::vocabulary_multiple, {1, 1 << 16},
          "Embedding and logits are padded to a multiple of so many tokens; padding is never a target.", "arXiv:2506.11305"),
    field("sequence_length", &DataConfig::sequence_length, {1, 1 << 20}, "Tokens in a sequence."),
    list_field("weights", &DataConfig::weights, {0, 1e6},
               "Shares of the training domains in the batches, one number for each, in any unit; none: by their size."),
    field("min_document_tokens", &DataConfig::min_document_tokens, {0, kMany}, "Training documents with fewer tokens are left out."),
    field("max_document_tokens", &DataConfig::max_document_tokens, {0, kMany},
          "Training documents with more tokens are left out, 0: none is."),
    choice_field("packing", &DataConfig::packing, {"packed", "document"},
                 "What a sequence holds: text across documents, or the beginning of one document, padded; no loss is counted of padding."),
    text_field("task", &DataConfig::task,
               "A generated task in place of text (saccade tasks lists them), of which answers alone are trained on; domains are then its "
               "difficulties, like length-64-pairs-4."),
};

const Schema<TrainingConfig> training_schema{
    field("steps", &TrainingConfig::steps, {1, 1e9}, "Optimizer steps."),
    field("batch_tokens", &TrainingConfig::batch_tokens, {1, 1e9}, "Tokens in an optimizer step; a multiple of sequence_length."),
    repetition(field("gradient_accumulation", &TrainingConfig::gradient_accumulation, {1, 1e6},
                     "Micro-batches per optimizer step, whose gradients are added up; more of them need less memory.")),
    repetition(field(
        "activation_checkpointing", &TrainingConfig::activation_checkpointing,
        "Keep only the input of every block and run the block again in the backward pass: much less memory, about a third more work.")),
    field("batch_warmup_steps", &TrainingConfig::batch_warmup_steps, {0, 1e7},
          "Steps in which the batch grows linearly from batch_warmup_tokens to batch_tokens, 0: none."),
    field("batch_warmup_tokens", &TrainingConfig::batch_warmup_tokens, {0, 1e9},
          "Tokens of the first batches, by multiples of which the batch grows; a divisor of batch_tokens and a multiple of a micro-batch."),
    field("learning_rate", &TrainingConfig::learning_rate, {0, 100}, "Peak learning rate."),
    list_field("learning_rate_multipliers", &TrainingConfig::learning_rate_multipliers,
               "Factors of the learning rate for tensors by name, like layer*.key=0.5 (* for any characters); the first that fits counts."),
    field("warmup_steps", &TrainingConfig::warmup_steps, {0, 1e9}, "Steps of linear rise to the peak."),
    field("warmup_share", &TrainingConfig::warmup_share, {0, 1}, "Share of all steps for the rise, in place of warmup_steps; 0: those."),
    text_field("schedule", &TrainingConfig::schedule, "Learning rate after the warm-up."),
    field("min_lr_ratio", &TrainingConfig::min_lr_ratio, {0, 1}, "Learning rate at the last step over its peak (unless it is constant)."),
    choice_field("initialisation", &TrainingConfig::initialisation, {"published", "normal", "mup"},
                 "Initial weights: as published with the architecture; every random matrix normal; or as published at mup_base_width and "
                 "from there to this width by µP, with its learning rates by tensor.",
                 "arXiv:2203.03466, section 4, tables 3 and 8"),
    field("initial_deviation", &TrainingConfig::initial_deviation, {1e-6, 10}, "Standard deviation where initialisation is normal."),
    field("mup_base_width", &TrainingConfig::mup_base_width, {0, 1 << 16},
          "Where initialisation is mup: the width from which learning rates are carried over."),
    text_field("optimizer", &TrainingConfig::optimizer, "How gradients change the weights."),
    field("max_grad_norm", &TrainingConfig::max_grad_norm, {0, kMany}, "Gradients are clipped to this global norm, 0: not clipped."),
    field("max_logit_penalty", &TrainingConfig::max_logit_penalty, {0, 100},
          "Penalty c on large logits, in 1/nats: half of c times the mean square of each position's largest, in the gradient only (the "
          "reported loss stays the cross-entropy). 0: off; RWKV-LM, the official training of RWKV, has 1e-4."),
    repetition(field("seed", &TrainingConfig::seed, {0, 1e15}, "Initial weights and data order.")),
    repetition(field("evaluate_at_start", &TrainingConfig::evaluate_at_start,
                     "Evaluate, probe and write a checkpoint before the first step, too: the initial weights at step 0.")),
    repetition(field("evaluate_every", &TrainingConfig::evaluate_every, {1, kMany}, "Steps between evaluations.")),
    field("evaluation_tokens", &TrainingConfig::evaluation_tokens, {1, kMany},
          "Tokens of every domain to evaluate on, rounded up to whole sequences; the same ones in every run."),
    repetition(field("final_evaluation_tokens", &TrainingConfig::final_evaluation_tokens, {-1, kMany},
                     "Validation tokens of every domain to evaluate on when the run, or a cooldown branch, has ended; 0: none but "
                     "evaluation_tokens; -1: 262144, or as many as those on the way leave of 2.5 % of the steps' work.")),
    repetition(field("probe_every", &TrainingConfig::probe_every, {1, kMany}, "Steps between statistics of attention and selection.")),
    repetition(
        field("capture_every", &TrainingConfig::capture_every, {0, kMany}, "Steps between captures for the inspector, 0: at checkpoints.")),
    repetition(
        field("capture_tokens", &TrainingConfig::capture_tokens, {2, 1 << 16}, "Tokens of a captured sample; at most sequence_length.")),
    repetition(field("checkpoint_every", &TrainingConfig::checkpoint_every, {1, kMany}, "Steps between checkpoints.")),
    repetition(list_field("keep_checkpoints", &TrainingConfig::keep_checkpoints, {0, 1e9},
                          "Steps (below 1: shares of all steps) whose checkpoints are written and never removed.")),
    field("stop_at_accuracy", &TrainingConfig::stop_at_accuracy, {0, 1},
          "Of a generated task: the run ends where every domain that it trains on has this share of answers right; 0: it does not.",
          "arXiv:2312.04927, appendix E"),
};

const Schema<RunConfig> run_schema{
    repetition(text_field("name", &RunConfig::name, "What the run is called in lists and legends.")),
    repetition(text_field("description", &RunConfig::description, "What the config is for. Nothing depends on it.")),
    repetition(text_field("device", &RunConfig::device, "auto, cpu, cuda, cuda:N, or cuda:0-3 for a rank on each of these GPUs.")),
    choice_field(
        "precision", &RunConfig::precision, {"auto", "f32", "f64", "bf16"},
        "Numbers to compute in: f64 on the CPU only, bf16 (with f32 sums and weights) on CUDA only; auto: f32 on the CPU, bf16 on CUDA."),
    repetition(field("threads", &RunConfig::threads, {0, 1024}, "CPU threads, at most one a core; 0: all cores.")),
};

std::vector<Setting> training_settings(const std::string& optimizer_id, const std::string& schedule_id) {
  const OptimizerEntry& chosen_optimizer = optimizer(optimizer_id);
  const Schedule& chosen_schedule = schedule(schedule_id);
  std::vector<Setting> list;
  const auto add = [&](Setting s, const auto& all, const std::vector<Setting>& its_settings) {
    s.kind = Setting::Kind::choice;
    for (const auto* entry : all) s.choices.push_back(entry->id);
    list.push_back(std::move(s));
    list.insert(list.end(), its_settings.begin(), its_settings.end());
  };
  for (Setting& s : training_schema.settings()) {
    if (chosen_schedule.defaults.contains(s.name)) s.default_value = chosen_schedule.defaults.at(s.name);
    if (s.name == "optimizer")
      add(std::move(s), optimizers(), chosen_optimizer.settings);
    else if (s.name == "schedule")
      add(std::move(s), schedules(), chosen_schedule.settings);
    else
      list.push_back(std::move(s));
  }
  return list;
}

int64_t warmup_steps(const TrainingConfig& training) {
  return training.warmup_share > 0 ? std::llround(training.warmup_share * static_cast<double>(training.steps)) : training.warmup_steps;
}

int64_t step_of_share(double share, int64_t steps) { return std::llround(share * static_cast<double>(steps)); }

std::vector<int64_t> steps_of(const std::vector<double>& points, int64_t steps, const std::string& pointer) {
  std::set<int64_t> found;
  for (const double point : points) {
    const int64_t step = point < 1 ? step_of_share(point, steps) : std::llround(point);
    if (step < 1 || step > steps || (point >= 1 && point != std::floor(point)))
      throw UsageError(pointer + " holds " + Json(point).dump() + "; expected steps from 1 to " + text(steps) +
                       ", or shares of them between 0 and 1");
    found.insert(step);
  }
  return {found.begin(), found.end()};
}

std::vector<int64_t> cooldown_steps_of(const TrainingConfig& training) {
  if (training.schedule != "wsd") return {};
  return steps_of(wsd_schema.read(training.schedule_settings, "/training").cooldown_at, training.steps, "/training/cooldown_at");
}

int64_t micro_batch_tokens(const TrainingConfig& training) { return training.batch_tokens / training.gradient_accumulation; }

int64_t micro_batches(const TrainingConfig& training, int64_t step) {
  if (step > training.batch_warmup_steps) return training.gradient_accumulation;
  const int64_t most = training.batch_tokens / training.batch_warmup_tokens;
  const int64_t multiple = 1 + (most - 1) * (step - 1) / training.batch_warmup_steps;
  return multiple * training.batch_warmup_tokens / micro_batch_tokens(training);
}

int64_t evaluation_sequences(const TrainingConfig& training, int64_t length) { return (training.evaluation_tokens + length - 1) / length; }

int64_t final_evaluation_sequences(const RunConfig& config, int64_t steps) {
  constexpr double kEnough = 262144, kShare = 0.025;
  constexpr double kForwardPasses = 3;  // of a step
  const TrainingConfig& training = config.training;
  const int64_t length = config.data.sequence_length;
  if (training.final_evaluation_tokens >= 0) return (training.final_evaluation_tokens + length - 1) / length;
  const int64_t on_the_way = evaluation_sequences(training, length),
                times = (steps + training.evaluate_every - 1) / training.evaluate_every;
  const auto domains = static_cast<double>(std::max<size_t>(1, config.data.train.size() + config.data.ood.size()));
  const double affordable = kShare * kForwardPasses * static_cast<double>(steps * training.batch_tokens) / domains;
  const double left = affordable - static_cast<double>(times) * static_cast<double>(on_the_way * length);
  const int64_t sequences = static_cast<int64_t>(std::clamp(left, 0.0, kEnough)) / length;
  return sequences > on_the_way ? sequences : 0;
}

namespace {

/// Shares by the names of the training domains become a list in their order.
void order_weights(Json& config) {
  const Json::json_pointer place("/data/weights"), train("/data/train");
  if (!config.contains(place) || !config.at(place).is_object()) return;
  const Json named = config.at(place), domains = config.contains(train) ? config.at(train) : Json(DataConfig{}.train);
  Json list = Json::array();
  for (const Json& domain : domains) {
    if (!domain.is_string() || !named.contains(domain.get<std::string>()))
      throw UsageError("/data/weights has no number for " + domain.dump() + " of /data/train");
    list.push_back(named.at(domain.get<std::string>()));
  }
  for (const auto& [name, share] : named.items())
    if (std::find(domains.begin(), domains.end(), Json(name)) == domains.end())
      throw UsageError("/data/weights names \"" + name + "\", which is no domain of /data/train");
  config.at(place) = std::move(list);
}

}  // namespace

RunConfig resolve_config(const Json& object, const std::string& origin, std::string* note) {
  try {
    Json renamed = object;
    const std::string line = rename_settings(renamed, origin);
    if (note) *note = line;
    order_weights(renamed);
    return resolve(renamed);
  } catch (const UsageError& error) {
    throw UsageError(origin + ": " + error.what());
  }
}

RunConfig parse_config(const std::string& text, const std::string& origin, const std::vector<std::string>& overrides, std::string* note) {
  Json object = parse_json_text(text, origin);
  apply_overrides(object, overrides, origin);
  return resolve_config(object, origin, note);
}

RunConfig override_config(Json stored, const std::string& origin, const std::vector<std::string>& overrides) {
  const Json before = stored;
  apply_overrides(stored, overrides, origin);
  rename_settings(stored);
  const Json::json_pointer place("/training/schedule");
  const std::string old_id = before.value(place, TrainingConfig{}.schedule);
  if (stored.contains(place) && stored.at(place) != old_id) {
    const auto given = [&](const std::string& name) {
      return std::any_of(overrides.begin(), overrides.end(),
                         [&](const std::string& o) { return o.substr(0, o.find('=')) == "training." + name; });
    };
    for (const Setting& s : schedule(old_id).settings)
      if (!given(s.name)) stored["training"].erase(s.name);
    for (const Setting& s : training_settings(TrainingConfig{}.optimizer, old_id))  // the new schedule may have another default
      if (s.name == "min_lr_ratio" && !given(s.name) && stored["training"].value(s.name, s.default_value) == s.default_value)
        stored["training"].erase(s.name);
  }
  return resolve_config(stored, origin);
}

RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides, std::string* note) {
  constexpr size_t kLargest = size_t{16} << 20;
  std::string content;
  try {
    content = read_file(path, kLargest);
  } catch (const DataError& error) {
    throw UsageError(path + " cannot be read; expected a config in JSON (" + error.what() + ")");
  }
  return parse_config(content, path, overrides, note);
}

Json to_json(const RunConfig& config) {
  Json object = run_schema.write(config);
  object["architecture"] = config.architecture;
  object["data"] = data_schema.write(config.data);
  object["training"] = training_schema.write(config.training);
  object["training"].update(config.training.optimizer_settings);
  object["training"].update(config.training.schedule_settings);
  return object;
}

void check_stored_types(const Json& config) {
  const auto require_object = [](const Json& value, const std::string& pointer) {
    if (!value.is_object()) throw UsageError(pointer + " is no object { … }");
  };
  require_object(config, "/config");
  for (const char* section : {"architecture", "data", "training"})
    if (config.contains(section)) require_object(config.at(section), std::string("/config/") + section);
  check_types(config, run_schema, "/config");
  check_types(config.value("data", Json::object()), data_schema, "/config/data");
  check_types(config.value("training", Json::object()), training_schema, "/config/training");
}

Json experiment_of(const Json& config) {
  Json current = config;
  rename_settings(current);
  fill_old_defaults(current);
  Json experiment = experiment_section(current, run_schema.settings());
  experiment["data"] = experiment_section(current.value("data", Json::object()), data_schema.settings());
  const Json training = current.value("training", Json::object());
  experiment["training"] = experiment_section(training, settings_of_training(training));
  return experiment;
}

}  // namespace saccade
