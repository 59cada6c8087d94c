#pragma once
#include <optional>

#include "analysis/studies/report/entries.h"

namespace saccade {

/// OOD losses of a study's cells at equal pre-training loss.

/// What the losses of a comparison are, in words.
struct LossWords {
  std::string unit = "nats per token";  ///< or bits per byte, where tokenizers differ
  PretrainingLoss pretraining = {};
};
/// "mean of the validation losses …" of what is read from a split: "test split".
std::string pretraining_words(const LossWords& words, const std::string& split);

/// What the first cell and the most others have passed together (widest_common_loss).
std::optional<double> equal_loss(const std::vector<CellNumbers>& cells);
/// The lowest pre-training loss that all seeds of both cells have passed.
std::optional<double> equal_loss(const CellNumbers& a, const CellNumbers& b);
/// "branch ends", "mid-schedule", "partly mid-schedule"; a dash without seeds.
std::string read_from(const CellNumbers& cell);
/// The points that a seed is read between.
std::string equal_source(const SeedNumbers& seed);
std::vector<std::string> equal_sources(const CellNumbers& cell);
/// The split that losses at equal pre-training loss are of: "test", "validation", or both.
std::string equal_split(const std::vector<CellNumbers>& cells);

ReportTable equal_loss_table(const std::vector<CellNumbers>& cells, const LossWords& words_of);

}  // namespace saccade
