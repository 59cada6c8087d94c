#include "models/config/config.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

#include "models/architectures/registry.h"
#include "models/config/old_names.h"
#include "models/config_text.h"

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
  if (data.corpus.empty()) throw UsageError("/data/corpus is empty; expected the name of a corpus");
  if (data.tokenizer.empty()) throw UsageError("/data/tokenizer is empty; expected bytes, bpe:N, unigram:N or a path to a .model");
}

void check_training(const TrainingConfig& t, const DataConfig& data) {
  if (t.batch_tokens % data.sequence_length != 0)
    throw UsageError("/training/batch_tokens is " + text(t.batch_tokens) + "; expected a multiple of /data/sequence_length, " +
                     text(data.sequence_length));
  if (const int64_t sequences = t.batch_tokens / data.sequence_length; sequences % t.gradient_accumulation != 0)
    throw UsageError("/training/gradient_accumulation is " + text(t.gradient_accumulation) + ", which does not divide the " +
                     text(sequences) + " sequences of a step (batch_tokens / sequence_length)");
  if (t.warmup_steps > t.steps)
    throw UsageError("/training/warmup_steps is " + text(t.warmup_steps) + "; expected at most /training/steps, " + text(t.steps));
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
  if (d != "auto" && d != "cpu" && d != "cuda" && !numbered)
    throw UsageError("/device is " + Json(d).dump() + "; expected auto, cpu, cuda or cuda:N");
  if (config.precision == "bf16" && d == "cpu")
    throw UsageError("/precision is \"bf16\", which the CPU does not compute in; expected f32 or f64");
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

template <class S>
std::vector<std::string> names_of(const Schema<S>& schema) {
  std::vector<std::string> names;
  for (const Setting& s : schema.settings()) names.push_back(s.name);
  return names;
}

template <class S>
S read_section(const Json& object, const char* key, const Schema<S>& schema) {
  const std::string pointer = std::string("/") + key;
  const Json section = object.value(key, Json::object());
  check_known_keys(section, names_of(schema), pointer);
  return schema.read(section, pointer);
}

RunConfig resolve(const Json& object) {
  std::vector<std::string> names = names_of(run_schema);
  names.insert(names.end(), {"architecture", "data", "training"});
  check_known_keys(object, names, "");
  RunConfig config = run_schema.read(object, "");
  config.data = read_section(object, "data", data_schema);
  config.training = read_section(object, "training", training_schema);
  const bool capture_given = object.contains("training") && object.at("training").contains("capture_tokens");
  if (!capture_given) config.training.capture_tokens = std::min(config.training.capture_tokens, config.data.sequence_length);
  check_data(config.data);
  check_training(config.training, config.data);
  config.architecture = resolve_architecture(object.value("architecture", Json::object()), config.data.sequence_length);
  if (!object.contains("name")) config.name = default_name(config.architecture);
  check_run(config);
  return config;
}

/// Of one section: the settings that are no repetition, as given or else their default, and whatever this version does not know.
template <class S>
Json experiment_section(Json section, const Schema<S>& schema) {
  if (!section.is_object()) return section;
  for (const Setting& s : schema.settings()) {
    if (s.repetition)
      section.erase(s.name);
    else if (!section.contains(s.name))
      section[s.name] = s.default_value;
  }
  return section;
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

const Schema<DataConfig> data_schema{
    text_field("corpus", &DataConfig::corpus, "An imported corpus, or local-text, task-copy, task-mqar, task-passkey."),
    list_field("train", &DataConfig::train, "Domains to train on.", "arXiv:2505.18522, section 2.1"),
    list_field("ood", &DataConfig::ood, "Domains to evaluate on that are not trained on.", "arXiv:2505.18522, section 2.1"),
    text_field("tokenizer", &DataConfig::tokenizer, "bytes, bpe:N or unigram:N (trained here), or a path to a SentencePiece .model."),
    field("sequence_length", &DataConfig::sequence_length, {1, 1 << 20}, "Tokens in a sequence."),
};

const Schema<TrainingConfig> training_schema{
    field("steps", &TrainingConfig::steps, {1, 1e9}, "Optimizer steps."),
    field("batch_tokens", &TrainingConfig::batch_tokens, {1, 1e9}, "Tokens in an optimizer step; a multiple of sequence_length."),
    repetition(field("gradient_accumulation", &TrainingConfig::gradient_accumulation, {1, 1e6},
                     "Micro-batches per optimizer step, whose gradients are added up; more of them need less memory.")),
    repetition(field(
        "activation_checkpointing", &TrainingConfig::activation_checkpointing,
        "Keep only the input of every block and run the block again in the backward pass: much less memory, about a third more work.")),
    field("learning_rate", &TrainingConfig::learning_rate, {0, 100}, "Peak learning rate."),
    field("warmup_steps", &TrainingConfig::warmup_steps, {0, 1e9}, "Steps of linear rise to the peak."),
    choice_field("schedule", &TrainingConfig::schedule, {"cosine", "linear", "constant"}, "Learning rate after the warm-up."),
    field("min_lr_ratio", &TrainingConfig::min_lr_ratio, {0, 1}, "Learning rate at the last step over its peak (cosine, linear)."),
    field("weight_decay", &TrainingConfig::weight_decay, {0, 100}, "AdamW's decoupled decay, on matrices only."),
    field("beta1", &TrainingConfig::beta1, {0, 0.999999}, "AdamW's decay of the first moment."),
    field("beta2", &TrainingConfig::beta2, {0, 0.999999}, "AdamW's decay of the second moment."),
    field("epsilon", &TrainingConfig::epsilon, {1e-20, 1}, "AdamW's epsilon."),
    field("max_grad_norm", &TrainingConfig::max_grad_norm, {0, kMany}, "Gradients are clipped to this global norm, 0: not clipped."),
    field("max_logit_penalty", &TrainingConfig::max_logit_penalty, {0, 100},
          "Penalty c on large logits, in 1/nats: half of c times the mean square of each position's largest, in the gradient only (the "
          "reported loss stays the cross-entropy). 0: off; RWKV-LM, the official training of RWKV, has 1e-4."),
    repetition(field("seed", &TrainingConfig::seed, {0, 1e15}, "Initial weights and data order.")),
    repetition(field("evaluate_every", &TrainingConfig::evaluate_every, {1, kMany}, "Steps between evaluations.")),
    field("evaluation_tokens", &TrainingConfig::evaluation_tokens, {1, kMany},
          "Tokens of every domain to evaluate on, rounded up to whole sequences; the same ones in every run."),
    repetition(field("probe_every", &TrainingConfig::probe_every, {1, kMany}, "Steps between statistics of attention and selection.")),
    repetition(
        field("capture_every", &TrainingConfig::capture_every, {0, kMany}, "Steps between captures for the inspector, 0: at checkpoints.")),
    repetition(
        field("capture_tokens", &TrainingConfig::capture_tokens, {2, 1 << 16}, "Tokens of a captured sample; at most sequence_length.")),
    repetition(field("checkpoint_every", &TrainingConfig::checkpoint_every, {1, kMany}, "Steps between checkpoints.")),
};

const Schema<RunConfig> run_schema{
    repetition(text_field("name", &RunConfig::name, "What the run is called in lists and legends.")),
    repetition(text_field("device", &RunConfig::device, "auto, cpu, cuda or cuda:N.")),
    choice_field(
        "precision", &RunConfig::precision, {"auto", "f32", "f64", "bf16"},
        "Numbers to compute in: f64 on the CPU only, bf16 (with f32 sums and weights) on CUDA only; auto: f32 on the CPU, bf16 on CUDA."),
    repetition(field("threads", &RunConfig::threads, {0, 1024}, "CPU threads, at most one a core; 0: all cores.")),
};

int64_t evaluation_sequences(const TrainingConfig& training, int64_t length) { return (training.evaluation_tokens + length - 1) / length; }

RunConfig resolve_config(const Json& object, const std::string& origin, std::string* note) {
  try {
    Json renamed = object;
    const std::string line = rename_settings(renamed, origin);
    if (note) *note = line;
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

RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides, std::string* note) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  const bool empty = file.peek() == EOF && !file.bad();  // of which nothing can be copied
  if (!file.is_open() || (!empty && !(content << file.rdbuf()))) throw UsageError(path + " cannot be read; expected a config in JSON");
  return parse_config(content.str(), path, overrides, note);
}

Json to_json(const RunConfig& config) {
  Json object = run_schema.write(config);
  object["architecture"] = config.architecture;
  object["data"] = data_schema.write(config.data);
  object["training"] = training_schema.write(config.training);
  return object;
}

Json experiment_of(const Json& config) {
  Json current = config;
  rename_settings(current);
  fill_old_defaults(current);
  Json experiment = experiment_section(current, run_schema);
  experiment["data"] = experiment_section(current.value("data", Json::object()), data_schema);
  experiment["training"] = experiment_section(current.value("training", Json::object()), training_schema);
  return experiment;
}

}  // namespace saccade
