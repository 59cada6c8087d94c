#include "kernels/ops/avey/masked_split.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/ops/avey/context_weights.h"

namespace saccade::avey {
namespace {

/// Rows of the slot, first row of the context's own tokens in Z and in Y, and where they stand in the context.
struct Places {
  int64_t slot_row = 0, slot_position = 0, own_row = 0, own_position = 0, y_row = 0, own = 0, split = 0;
};

template <class T>
void take_away(const Places& at, const T* Z, const T* A, int64_t C, int64_t r, bool dynamic, T* Y) {
  const auto dot = [&](const T* a, const T* b) {
    T sum = 0;
    for (int64_t d = 0; d < r; ++d) sum += a[d] * b[d];
    return sum;
  };
  const auto norm = [&](const T* z) { return std::sqrt(dot(z, z) + static_cast<T>(kCosineEps)); };
  for (int64_t t = 0; t < at.own; ++t)
    for (int64_t j = 0; j < at.split; ++j) {
      const T *z_t = Z + (at.own_row + t) * r, *z_j = Z + (at.slot_row + j) * r;
      T weight = A[(at.own_position + t) * C + at.slot_position + j];
      if (dynamic) weight *= dot(z_t, z_j) / (norm(z_t) * norm(z_j));
      for (int64_t d = 0; d < r; ++d) Y[(at.y_row + t) * r + d] -= weight * z_j[d];
    }
}

}  // namespace

Tensor without_split(Tape& tape, const Tensor& Y, const Tensor& Z, const Tensor& A, const Ranked& ranked, const ContextLayout& layout,
                     const MaskedSplit& masked, bool dynamic) {
  const int64_t i = masked.i, p = masked.p;
  if (i < 0 || i >= layout.splits() || p < 0 || p >= i)
    throw UsageError("[avey.without_split] split " + std::to_string(i) + " reads no split " + std::to_string(p) +
                     "; expected an earlier one");
  if (tape.device().targets_cuda()) throw DeviceError("[avey.without_split] works on the CPU only");
  const Tensor out = tape.empty(Y.shape(), Y.dtype());
  tape.run("avey.without_split", {0, 2 * static_cast<double>(Y.bytes())}, [&] {
    dispatch(Y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::copy_n(Y.data<T>(), Y.size(), out.data<T>());
      const int32_t* chosen = ranked.chosen.data<int32_t>() + i * layout.top_k;
      const int64_t count = layout.chosen_count(i), slot = std::find(chosen, chosen + count, p) - chosen;
      if (slot == count) return;
      const ContextRows rows = context_rows(layout, 0, i);
      const int64_t before = rows.first_position + rows.runs[0].count, first = Y.dim(0) == layout.own_rows() ? 0 : layout.first_own_row();
      const Places at{rows.runs[1].row + slot * layout.split,
                      before + slot * layout.split,
                      rows.runs[2].row,
                      before + rows.runs[1].count,
                      first + i * layout.split,
                      rows.runs[2].count,
                      layout.split};
      take_away(at, Z.data<T>(), A.data<T>(), layout.context_width(), Z.dim(1), dynamic, out.data<T>());
    });
  });
  return out;
}

}  // namespace saccade::avey
