#pragma once
#include <filesystem>
#include <string>

#include "models/training/trainer.h"

namespace saccade {

/// What a step that gave a non-finite loss or gradient norm leaves behind: the first tensor that is not finite, and the batch.
struct Divergence {
  std::string what;            ///< "the loss became NaN at step 86"; empty when the step is finite
  std::string where;           ///< "first in the gradient of blocks.1.mlp.up (layer 1)"
  std::filesystem::path file;  ///< RUN/diverged-step-86.json: position, tokens and targets of the batch, and a row per tensor
};

/// Says in one line what became of a step; empty when all is finite.
std::string describe_divergence(const StepRecord& step);

/// Looks for the first tensor and writes RUN/diverged-step-N.json. Weights come first (a run may go on from bad ones), in the order of
/// the model. Then gradients: when all of them are not finite, the forward pass gave none that is; when some are, the first is the
/// one that the backward pass reached first, the last in the order of the model. Throws DataError.
Divergence record_divergence(Trainer& trainer, const StepRecord& step, const std::filesystem::path& directory);

/// Data position of the batch that a run diverged on at a step, from that file. Throws DataError.
uint64_t diverged_position(const std::filesystem::path& directory, int64_t step);

/// What somebody can do with a run that diverged, in one line: its checkpoints and the commands that go back to them.
std::string way_back(const std::filesystem::path& directory);

}  // namespace saccade
