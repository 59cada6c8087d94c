#include "models/layers/short_conv.h"

#include "kernels/engine/transfer.h"
#include "kernels/ops/decoding/decoding.h"

namespace saccade {

Tensor ShortConv::begin(Arena& arena, DType dtype, int64_t batch) const {
  return weight_ ? zero_state(arena, {batch, weight_.dim(1) - 1, weight_.dim(0)}, dtype) : Tensor();
}

Tensor zero_state(Arena& arena, const Shape& shape, DType dtype) {
  const Tensor state = arena.allocate(shape, dtype);
  if (!arena.device().is_plan()) fill_zero(state);
  return state;
}

void replace_state(Tape& tape, const Tensor& state, const Tensor& next) {
  const Shape row{state.dim(0), 1, state.size() / state.dim(0)};
  append_rows(tape, next.reshape(row), state.reshape(row), {});
}

}  // namespace saccade
