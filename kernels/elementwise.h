#pragma once
#include <string>

#include "kernels/tape.h"

namespace saccade {

enum class Activation { none, gelu, relu, relu2, silu, sigmoid, tanh };  ///< gelu is exact (erf); relu2(x) = max(x, 0)²
Activation parse_activation(const std::string& name);
/// FLOPs of one value or slope, counting an exponential or a division as one.
double flops_of(Activation f);

/// y = x1 + x2, equal shapes.
Tensor add(Tape& tape, const Tensor& x1, const Tensor& x2);
/// y = f(x).
Tensor activate(Tape& tape, const Tensor& x, Activation f);
/// y = f(gate) * up, equal shapes (GeGLU, SwiGLU, receptance gates).
Tensor gated(Tape& tape, const Tensor& gate, const Tensor& up, Activation f);

}  // namespace saccade
