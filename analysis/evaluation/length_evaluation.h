#pragma once
#include "analysis/comparison/length_losses.h"
#include "analysis/evaluation/run_evaluation.h"

namespace saccade {

/// To which lengths documents are read.
struct LengthOptions {
  std::vector<int64_t> lengths;  ///< tokens; none is less than half of the trained length T
  int64_t least_tokens = 0;      ///< documents have so many at least, without end-of-text; 0: as the greatest length
  bool stepwise = false;         ///< also token by token, as generation reads: LengthLosses::Stepwise
};

/// Losses of the same documents at several lengths, one document a sequence, with nothing changed in the model's positions. Of every domain
/// as many documents as `options.tokens` hold at the greatest length, spread over the split by a fixed order; `options.length` counts for
/// nothing. For each length L two passes:
///   end-of-text and the document's first tokens, L in all      the loss of the whole, and by position
///   the L tokens before the greatest length's last target      the loss of the last T/2 targets, the same for every length
/// A model whose positions end at T is evaluated at the lengths up to T, at T where there is none, on the same documents and targets as
/// others; LengthLosses::not_read says which were left out. The result is kept in RUN/evaluations (length_losses_file). Throws what
/// evaluate_run throws; UsageError also for lengths that are too small, documents shorter than the greatest, or a run on a generated task,
/// and with `stepwise` a model that does not decode so many tokens; DataError where no domain has a document that is long enough.
LengthLosses evaluate_lengths(const std::filesystem::path& directory, const RunEvaluationOptions& options, const LengthOptions& lengths,
                              const EvaluationProgress& progress = {});

}  // namespace saccade
