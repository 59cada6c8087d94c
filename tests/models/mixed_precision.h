#pragma once
#include "kernels/engine/transfer.h"
#include "models/model.h"

namespace saccade::test {

/// Makes a tape compute as a run of this precision does. bf16 (CUDA): bf16 activations and copies of matrices, f32 parameters.
inline void compute_in(Tape& tape, Arena& arena, const std::vector<Parameter>& parameters, DType dtype) {
  if (dtype != DType::bf16) return;
  tape.set_activation_dtype(dtype);
  for (const Parameter& p : parameters) {
    if (p.value.rank() != 2) continue;
    const Tensor copy = arena.allocate(p.value.shape(), dtype);
    from_doubles(copy, to_doubles(p.value));
    tape.bind_compute_copy(p.value, copy);
  }
}

}  // namespace saccade::test
