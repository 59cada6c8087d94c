#pragma once
#include <functional>

#include "kernels/ops/avey/layout.h"
#include "kernels/ops/avey/ranker.h"

namespace saccade::avey {

/// For inspection: where every token read from in one layer.
///
/// What a processor gives: the weights [H, own rows, rows of the context] with which the own tokens of context (b, i) take in
/// the rows of that context. They become shares of source positions: padding has no source and counts nothing, a row of
/// chosen split p counts w_p times, absolute values, every token's shares sum to one.
using ContextWeights = std::function<Tensor(int64_t b, int64_t i)>;

/// Of the own tokens of context (b, i), [1, own, n] (arXiv:2506.11305, section 2.2.2):
///   weight = |tril(A) * Cos(Z)|, or |tril(A)| when not `dynamic`
/// Throws nothing of its own; nor do the others here.
Tensor contextualizer_weights(Tape& tape, const Tensor& Z, const Tensor& A, const ContextLayout& layout, bool dynamic, int64_t b,
                              int64_t i);

/// Shares of sequence b: [H, T, T], zero above the diagonal.
Tensor read_map(Tape& tape, const ContextWeights& weights, const Ranked& ranked, const ContextLayout& layout, int64_t heads, int64_t b);

/// −Σ share ln share in nats: [B, H, T]; NaN where a token reads nothing. In memory of one context at a time.
Tensor read_entropy(Tape& tape, const ContextWeights& weights, const Ranked& ranked, const ContextLayout& layout, int64_t heads);

/// Best rejected score below the least chosen one, averaged over the splits that had more than k candidates; NaN without any.
double ranker_margin(const Ranked& ranked);

}  // namespace saccade::avey
