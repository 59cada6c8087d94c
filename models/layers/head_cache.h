#pragma once
#include "kernels/ops/decoding/decoding.h"
#include "models/model.h"

namespace saccade {

/// Keys and values of the tokens that a layer has seen, ready to be scored. Rows behind them hold nothing.
struct HeadCache : LayerState {
  Tensor k;            ///< [B, capacity, H, d]; [1, …] for constant keys
  Tensor v;            ///< [B, capacity, H, d]
  Tensor before = {};  ///< [B, D], the last input, where the block shifts tokens; else empty

  /// Rows first … first + n − 1 of k or v of one sequence, sharing memory.
  static Tensor rows(const Tensor& cache, int64_t first, int64_t n) {
    const Shape& s = cache.shape();
    return cache.reshape({s[1], s[2], s[3]}).slice(first, first + n).reshape({1, n, s[2], s[3]});
  }

  void each(const std::function<void(Tensor&, Kept)>& f) override {
    f(k, Kept::tokens), f(v, Kept::tokens);
    f(before, Kept::sum);
  }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }

  void append(Tape& tape, const Tensor& new_k, const Tensor& new_v, const TokenPosition& position) {
    append_rows(tape, new_k, k, position);
    append_rows(tape, new_v, v, position);
  }
};

}  // namespace saccade
