#pragma once
#include <string>
#include <vector>

#include "models/json.h"
#include "models/settings.h"

namespace saccade {

/// Section "data" of a config.
struct DataConfig {
  std::string corpus = "local-text";
  std::vector<std::string> train = {"prose"};
  std::vector<std::string> ood;
  std::string tokenizer =
      "bytes";  ///< bytes, bpe:N or unigram:N (trained here on the training domains), or the path of a file (open_tokenizer_file)
  int64_t vocabulary_multiple = 1;  ///< embedding and logits have this multiple of rows; those beyond the tokenizer's are never targets
  int64_t sequence_length = 512;
  std::vector<double> weights;                               ///< of the training domains, in their order; empty: by their size
  int64_t min_document_tokens = 0, max_document_tokens = 0;  ///< of training text; 0: no bound
  std::string packing = "packed";                            ///< or document: what a sequence holds (Packing)
  /// A generated task in place of text (models/tasks/symbol_task.h); empty: text. Domains are then its difficulties ("length-64-pairs-4"),
  /// the corpus is empty and the tokenizer "symbols:N", or "bytes" of a task on text.
  std::string task;
};

/// Section "training".
struct TrainingConfig {
  int64_t steps = 1000;
  int64_t batch_tokens = 8192;                              ///< tokens per optimizer step; a multiple of sequence_length
  int64_t gradient_accumulation = 1;                        ///< micro-batches per step
  bool activation_checkpointing = false;                    ///< keep the input of every block only, and run the block again in backward
  int64_t batch_warmup_steps = 0, batch_warmup_tokens = 0;  ///< the batch grows from so many tokens in the first steps
  double learning_rate = 1e-3;
  std::vector<std::string> learning_rate_multipliers;  ///< "pattern of tensor names=factor"
  int64_t warmup_steps = 100;
  double warmup_share = 0;          ///< of all steps, in place of warmup_steps; 0: those
  std::string schedule = "cosine";  ///< an entry of models/schedules/registry.h
  nlohmann::json schedule_settings = nlohmann::json::object();
  double min_lr_ratio = 0.1;                 ///< learning rate at the last step over its peak (not of a constant one)
  std::string initialisation = "published";  ///< published, normal or mup (models/training/initialisation.h)
  double initial_deviation = 0.02;           ///< of normal
  int64_t mup_base_width = 0;                ///< of mup: the width at which it is as published
  std::string optimizer = "adamw";           ///< an entry of models/optimizers/registry.h
  nlohmann::json optimizer_settings = nlohmann::json::object();
  double max_grad_norm = 1.0;
  double max_logit_penalty = 0;    ///< of linear_cross_entropy; 0 in RWKV's presets too, whose papers name none
  int64_t seed = 1;                ///< initialisation and data order; evaluation batches never depend on it
  bool evaluate_at_start = false;  ///< evaluate, probe, capture and write a checkpoint before the first step as well
  int64_t evaluate_every = 50;
  int64_t evaluation_tokens = 16384;  ///< of every domain, rounded up to whole sequences
  int64_t final_evaluation_tokens =
      -1;  ///< of every domain when the run has ended, kept in RUN/evaluations; see final_evaluation_sequences()
  int64_t probe_every = 200;
  int64_t capture_every = 0;     ///< 0: at every checkpoint
  int64_t capture_tokens = 256;  ///< length of a captured sample
  int64_t checkpoint_every = 500;
  std::vector<double> keep_checkpoints;  ///< steps (from 1), or shares of all steps (below 1), whose checkpoints are never removed
  double stop_at_accuracy = 0;           ///< of every domain of a generated task that is trained on, where an evaluation finds it; 0: never
};

extern const Schema<DataConfig> data_schema;
extern const Schema<TrainingConfig> training_schema;

/// Everything that can be set in section "training" with an optimizer and a schedule: training_schema's, with theirs behind their names and
/// the schedule's defaults. Throws UsageError when there is none of a name.
std::vector<Setting> training_settings(const std::string& optimizer, const std::string& schedule);

/// Steps of linear rise to the peak: warmup_share of all, else warmup_steps.
int64_t warmup_steps(const TrainingConfig& training);

/// The step at a share (0 to 1) of all steps: the nearest whole one, of two equally near the later. Checkpoints that are kept by a share
/// are found by the same share (`saccade evaluate --checkpoints 90%`).
int64_t step_of_share(double share, int64_t steps);

/// Steps that a list names: numbers below 1 are shares of `steps`. Ascending, each once. Throws UsageError for what is no step of the run.
std::vector<int64_t> steps_of(const std::vector<double>& points, int64_t steps, const std::string& pointer);

/// Where cooldown branches begin (setting cooldown_at of the schedule wsd).
std::vector<int64_t> cooldown_steps_of(const TrainingConfig& training);

/// Tokens in a micro-batch, and micro-batches at a step (from 1): fewer than gradient_accumulation while the batch grows, linearly and in
/// whole multiples of batch_warmup_tokens.
int64_t micro_batch_tokens(const TrainingConfig& training);
int64_t micro_batches(const TrainingConfig& training, int64_t step);

/// A whole run. `architecture` is resolved (every default filled in).
struct RunConfig {
  std::string name;
  std::string description;  ///< for people: what the config is, and for presets of papers what differs from them
  nlohmann::json architecture;
  DataConfig data;
  TrainingConfig training;
  std::string device = "auto";
  std::string precision = "auto";  ///< f32 on both, f64 on the CPU, bf16 on CUDA; auto: f32 on the CPU, bf16 on CUDA
  int64_t threads = 0;             ///< CPU threads, 0: all cores
};

/// What stands beside the three sections: name, description, device, precision, threads.
extern const Schema<RunConfig> run_schema;

/// Sequences of every domain to evaluate on: evaluation_tokens, rounded up to whole sequences.
int64_t evaluation_sequences(const TrainingConfig& training, int64_t length);

/// Sequences of every domain to evaluate on when a run, or a cooldown branch, has ended: final_evaluation_tokens, rounded up to whole
/// sequences. Where that is −1, 262 144 tokens, on which the standard error of a difference of two runs of one study was below 0.005 nats
/// in docs/figure-3-10m.md unless they lay far apart; or what the evaluations while training leave of 2.5 % of the work of `steps` steps, a
/// pass forward being a third of a step; 0 where that is no more than evaluation_tokens. `steps`: the run's own, of a branch those behind
/// its beginning.
int64_t final_evaluation_sequences(const RunConfig& config, int64_t steps);

/// Reads JSON text. `origin` names the file in messages ("run.json:12:5: …" for syntax, "run.json: /training/steps …" for
/// values). Duplicate keys are errors. `overrides` are "training.seed=2" assignments; values are read as JSON, else as text.
/// Old names of settings (models/config/old_names.h) are read too; `note`, unless null, is then set to one line that says so. Throws
/// UsageError, also when a setting is given under both names; an override may use either.
RunConfig parse_config(const std::string& text, const std::string& origin, const std::vector<std::string>& overrides = {},
                       std::string* note = nullptr);
/// Of a stored, resolved config: what the overrides set, without settings that only the schedule before had where they choose another one.
RunConfig override_config(nlohmann::json stored, const std::string& origin, const std::vector<std::string>& overrides);
RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {}, std::string* note = nullptr);
/// Checks and resolves an already parsed object.
RunConfig resolve_config(const nlohmann::json& object, const std::string& origin, std::string* note = nullptr);
/// A section "data" that names a generated task: with domains as usual for it, symbols and length as its domains need them, where the
/// section says nothing else. Any other section as it is. Throws UsageError where there is no such task or difficulty.
nlohmann::json with_task_defaults(nlohmann::json section);
/// The resolved form; parse_config(to_json(c).dump()) == c.
nlohmann::json to_json(const RunConfig& config);

/// What everyone who reads a stored config counts on, whatever version wrote it: it is an object, its sections are objects, and the
/// settings known today that are given are of their types (in whatever range). Throws UsageError naming the first that is not.
void check_stored_types(const nlohmann::json& config);

/// What a stored config says of the model and of how it is trained: every setting that is not a Setting::repetition, with its default
/// where the config, of another version, lacks it; old names and old defaults (old_names.h) count as what they mean today. Equal for runs
/// that repeat one experiment. `config` is an object. Throws UsageError as rename_settings does.
nlohmann::json experiment_of(const nlohmann::json& config);

}  // namespace saccade
