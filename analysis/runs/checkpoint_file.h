#pragma once
#include <filesystem>
#include <string>

#include "models/json.h"
#include "models/probe.h"
#include "models/training/trainer.h"

namespace saccade {

/// What was chosen at the last probe of statistics, which the next one is compared with: a list for each sequence it looked at.
using ProbedChoices = std::vector<std::vector<ChosenSources>>;

/// Everything a run needs to go on, or to be looked at on another machine.
struct Checkpoint {
  nlohmann::json config;  ///< resolved
  std::string corpus_hash, tokenizer_name, tokenizer_hash;
  std::string tokenizer_model;  ///< content of the model file; empty for tokenizers without one
  TrainingState state;          ///< tensors on the CPU
  ProbedChoices choices = {};   ///< empty where nothing is chosen or nothing was probed; files of earlier versions have none
};

/// Written aside, read back, its contents' SHA-256 compared, then renamed. Throws DataError; nothing written before is harmed.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// The SHA-256 written with a checkpoint's contents. Throws DataError.
std::string checkpoint_hash(const std::filesystem::path& path);

/// Throws DataError when anything is missing, unreadable or differs from the SHA-256 written with it.
Checkpoint read_checkpoint(const std::filesystem::path& path);

}  // namespace saccade
