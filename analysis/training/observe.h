#pragma once
#include <functional>

#include "analysis/runs/checkpoint_file.h"
#include "analysis/runs/run_records.h"
#include "models/corpus/tokenizer.h"

namespace saccade {

/// What is measured on frozen text while a model trains. No effect on training; the same text gives the same numbers.

/// Losses on every frozen batch with their standard errors; the domains that were not trained on are OOD.
EvaluationRecord evaluate_domains(Trainer& trainer, const std::vector<FrozenBatch>& batches, const Position& at);

/// Of a trainer whose domains have weights.
DataRecord data_use(const Trainer& trainer, const Position& at);

/// Per layer and head, the mean over sequences of a frozen batch (4096 tokens of it at most). `last` is what was chosen at the probe
/// before, which `churn` is told from (no churn where it is empty), and afterwards what is chosen now.
StatisticsRecord probe_statistics(Trainer& trainer, const FrozenBatch& batch, const Position& at, ProbedChoices& last);

/// What the run takes now.
MemoryRecord memory_use(Trainer& trainer, const Position& at);

/// Maps of the first `capture_tokens` of one sequence, the first that is so long, of the first training domain and of each OOD domain:
/// those of the weights as they are now. Called once, on any thread, which may be while training goes on.
std::function<std::vector<Capture>()> capture_samples(Trainer& trainer, const std::vector<FrozenBatch>& batches, const Tokenizer& tokenizer,
                                                      const Position& at);

}  // namespace saccade
