#pragma once
#include "kernels/decoding.h"
#include "models/model.h"

namespace saccade {

/// Keys and values of the tokens that a layer has seen, ready to be scored. Rows behind them hold nothing.
struct HeadCache : LayerState {
  Tensor k;  ///< [B, capacity, H, d]; [1, …] for constant keys
  Tensor v;  ///< [B, capacity, H, d]

  void append(Tape& tape, const Tensor& new_k, const Tensor& new_v, const TokenPosition& position) {
    append_rows(tape, new_k, k, position);
    append_rows(tape, new_v, v, position);
  }
};

}  // namespace saccade
