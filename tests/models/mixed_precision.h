#pragma once
#include <functional>

#include "kernels/engine/transfer.h"
#include "models/model.h"

namespace saccade::test {

/// Makes tapes compute as a run of this precision does. bf16 (CUDA): bf16 activations and copies of matrices, f32 parameters. The copies
/// are made once: a step that is captured as a graph may not wait for the device.
inline std::function<void(Tape&)> computing_in(Arena& arena, const std::vector<Parameter>& parameters, DType dtype) {
  if (dtype != DType::bf16) return [](Tape&) {};
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const Parameter& p : parameters) {
    if (p.value.rank() != 2) continue;
    const Tensor copy = arena.allocate(p.value.shape(), dtype);
    from_doubles(copy, to_doubles(p.value));
    copies.emplace_back(p.value, copy);
  }
  return [copies, dtype](Tape& tape) {
    tape.set_activation_dtype(dtype);
    for (const auto& [value, copy] : copies) tape.bind_compute_copy(value, copy);
  };
}

inline void compute_in(Tape& tape, Arena& arena, const std::vector<Parameter>& parameters, DType dtype) {
  computing_in(arena, parameters, dtype)(tape);
}

}  // namespace saccade::test
