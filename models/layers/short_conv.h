#pragma once
#include "kernels/ops/causal_conv/causal_conv.h"
#include "kernels/ops/split/split.h"
#include "models/model.h"

namespace saccade {

/// A depthwise causal convolution with SiLU as mixers use it; without a filter only the SiLU is left.
class ShortConv {
 public:
  ShortConv() = default;
  ShortConv(Tensor weight, Tensor bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}

  /// Of a whole sequence, or of the tokens that follow those in `history`, which then holds them too.
  Tensor operator()(Tape& tape, const Tensor& x, const Tensor* history = nullptr) const {
    if (!weight_) return activate(tape, x, Activation::silu);
    return history ? causal_conv_next(tape, x, weight_, bias_, Activation::silu, *history)
                   : causal_conv(tape, x, weight_, bias_, Activation::silu);
  }
  /// The same, its channels apart.
  std::vector<Tensor> pieces(Tape& tape, const Tensor& x, const std::vector<int64_t>& widths, const Tensor* history = nullptr) const {
    return weight_ && !history ? causal_conv_pieces(tape, x, weight_, bias_, Activation::silu, widths)
                               : split(tape, (*this)(tape, x, history), widths);
  }

  /// The last inputs of no tokens; empty without a filter.
  Tensor begin(Arena& arena, DType dtype, int64_t batch) const;
  /// Numbers that it keeps of a sequence.
  int64_t kept() const { return weight_ ? weight_.dim(0) * (weight_.dim(1) - 1) : 0; }

 private:
  Tensor weight_, bias_;
};

/// Zeros in an arena; nothing is written on `plan`.
Tensor zero_state(Arena& arena, const Shape& shape, DType dtype);
/// state = next, in place: a recorded step of decoding finds it where it was. Both [B, …] of one shape and type.
void replace_state(Tape& tape, const Tensor& state, const Tensor& next);

}  // namespace saccade
