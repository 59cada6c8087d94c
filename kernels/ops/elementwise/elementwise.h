#pragma once
#include <string>

#include "kernels/engine/tape.h"

namespace saccade {

/// gelu(x) = x Φ(x), exact, and silu(x) = x σ(x) (arXiv:1606.08415, section 2); relu2(x) = max(x, 0)² (arXiv:2109.08668, section 3).
enum class Activation { none, gelu, relu, relu2, silu, sigmoid, tanh };
/// The activation of that name, as spelled above. Throws UsageError on another.
Activation parse_activation(const std::string& name);
/// FLOPs of one value or slope, counting an exponential or a division as one.
double flops_of(Activation f);

/// y = x1 + x2. All three of one shape and dtype. Throws std::invalid_argument where those of x1 and x2 differ.
Tensor add(Tape& tape, const Tensor& x1, const Tensor& x2);
/// y = factor · x, of x's shape and dtype, f32 or f64. factor [1] of that dtype, a number that is known only when the op runs; it takes no
/// gradient. Throws std::invalid_argument where a dtype or the size of factor differs.
Tensor scaled(Tape& tape, const Tensor& x, const Tensor& factor);
/// y = f(x), of x's shape and dtype.
Tensor activate(Tape& tape, const Tensor& x, Activation f);
/// y = f(gate) ∘ up, the gate of GeGLU and SwiGLU (arXiv:2002.05202, section 2) and of RWKV's receptance. All three of one shape and dtype.
/// Throws std::invalid_argument where those of gate and up differ or both are one tensor.
Tensor gated(Tape& tape, const Tensor& gate, const Tensor& up, Activation f);

}  // namespace saccade
