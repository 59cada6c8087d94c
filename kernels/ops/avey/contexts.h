#pragma once
#include "kernels/ops/avey/layout.h"
#include "kernels/ops/avey/ranker.h"

namespace saccade::avey {

/// The contexts of all splits as rows (see ContextLayout): zero padding, w_p X_p of every chosen split, X_i
/// (arXiv:2506.11305, section 2.1). x [B, T, D] → [layout.rows(), D]. Without chosen splits (top_k 0) `ranked` may be empty.
///   rows = [0 | w_p X_p of every chosen split p, split by split | X]
/// Throws std::invalid_argument where a shape does not fit the layout, as do the others here.
Tensor contexts(Tape& tape, const Tensor& x, const Ranked& ranked, const ContextLayout& layout);

/// The rows as one rectangle per context, for a mixer that knows nothing of the layout.
/// rows [layout.rows(), W] → [B·N, C, W]; a context begins at position 0, with its padding where the layout keeps it, and
/// ends with zeros.
Tensor to_rectangles(Tape& tape, const Tensor& rows, const ContextLayout& layout);
/// The way back: [B·N, C, W] → [layout.rows(), W], or the own rows [B·T, W] only. Padding comes from the first context.
Tensor from_rectangles(Tape& tape, const Tensor& rectangles, const ContextLayout& layout, bool own_only);

}  // namespace saccade::avey
