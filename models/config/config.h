#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/settings.h"

namespace saccade {

/// Section "data" of a config.
struct DataConfig {
  std::string corpus = "local-text";
  std::vector<std::string> train = {"prose"};
  std::vector<std::string> ood;
  std::string tokenizer =
      "bytes";  ///< bytes, bpe:N or unigram:N (trained here on the training domains), or a path to a SentencePiece .model
  int64_t sequence_length = 512;
};

/// Section "training".
struct TrainingConfig {
  int64_t steps = 1000;
  int64_t batch_tokens = 8192;  ///< tokens per optimizer step; a multiple of sequence_length
  int64_t accumulate = 1;       ///< micro-batches per step
  bool recompute = false;       ///< keep the input of every block only, and run the block again in backward
  double learning_rate = 1e-3;
  int64_t warmup_steps = 100;
  std::string schedule = "cosine";   ///< cosine, linear, constant
  double final_learning_rate = 0.1;  ///< fraction of the peak at the end (cosine, linear)
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, clip = 1.0;
  double max_logit_penalty = 0;  ///< of linear_cross_entropy; 0 in RWKV's presets too, whose papers name none
  int64_t seed = 1;              ///< initialisation and data order; evaluation batches never depend on it
  int64_t evaluate_every = 50, evaluation_batches = 4;
  int64_t probe_every = 200;
  int64_t capture_every = 0;     ///< 0: at every checkpoint
  int64_t capture_tokens = 256;  ///< length of a captured sample
  int64_t checkpoint_every = 500;
};

extern const Schema<DataConfig> data_schema;
extern const Schema<TrainingConfig> training_schema;

/// A whole run. `architecture` is resolved (every default filled in).
struct RunConfig {
  std::string name;
  nlohmann::json architecture;
  DataConfig data;
  TrainingConfig training;
  std::string device = "auto";
  std::string precision = "auto";  ///< f32 on both, f64 on the CPU, bf16 on CUDA; auto: f32 on the CPU, bf16 on CUDA
  int64_t threads = 0;             ///< CPU threads, 0: all cores
};

/// What stands beside the three sections: name, device, precision, threads.
extern const Schema<RunConfig> run_schema;

/// Reads JSON text. `origin` names the file in messages ("run.json:12:5: …" for syntax, "run.json: /training/steps …" for
/// values). Duplicate keys are errors. `overrides` are "training.seed=2" assignments; values are read as JSON, else as text.
/// Throws UsageError.
RunConfig parse_config(const std::string& text, const std::string& origin, const std::vector<std::string>& overrides = {});
RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});
/// Checks and resolves an already parsed object.
RunConfig resolve_config(const nlohmann::json& object, const std::string& origin);
/// The resolved form; parse_config(to_json(c).dump()) == c.
nlohmann::json to_json(const RunConfig& config);

/// What a stored config says of the model and of how it is trained: every setting that is not a Setting::repetition, with its default
/// where the config, of another version, lacks it. Equal for runs that repeat one experiment. `config` is an object.
nlohmann::json experiment_of(const nlohmann::json& config);

}  // namespace saccade
