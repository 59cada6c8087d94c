#pragma once
#include "models/layers/low_rank.h"
#include "models/mixer.h"

namespace saccade {

/// What RWKV-7's time mix does around its recurrence (arXiv:2503.14456, section 3), here around a mixer that has queries, keys and values
/// (arXiv:2505.18522, section 5.3, replaces "only the sequence modeling" of that block):
///   x_• = x + (x⁻ − x) ∘ μ_•   for queries, keys and values, and where full for the gate
///   full: v ← v + (v_first − v) ∘ σ(v0 + V2 V1 x_v),   out = W_o( groupnorm(o) ∘ g ),   g = G2 σ(G1 x_g)
/// Decay, in-context learning rate, removal key and bonus belong to the recurrence and are not here. Initial values as in RWKV-7.
class TimeMix {
 public:
  TimeMix() = default;  ///< plain: there is none
  /// As shape.mixer_inputs says. Parameters layerN.mix_query, .mix_key, .mix_value [C]; where full also .mix_gate [C], .value_blend … but
  /// in layer 0, .output_gate_down, .output_gate_up, .group_gain and .group_bias [C].
  TimeMix(const ModelShape& shape, ParameterMaker& make, int64_t layer);

  explicit operator bool() const { return !blends_.empty(); }

  struct Inputs {
    Tensor query, key, value;  ///< [B, T, C]
    Tensor gate;               ///< g, where full
  };
  /// x [B, T, C]; before [B, C]: the token in front of the first, empty at the start of a sequence.
  Inputs inputs(Tape& tape, const Tensor& x, const Tensor& before) const;
  /// v [B, T, C] made of x_v, blended with those of layer 0 where full.
  Tensor values(Tape& tape, const Tensor& v, const Tensor& x_v, Pass& pass) const;
  /// groupnorm(o) ∘ g, [B, T, C].
  Tensor gated_output(Tape& tape, const Tensor& o, const Tensor& gate) const;

 private:
  int64_t heads_ = 1;
  std::vector<Tensor> blends_;      // of query, key, value and gate
  LowRank value_blend_, gate_;      // value_blend_: not in layer 0
  Tensor group_gain_, group_bias_;  // [C]
};

}  // namespace saccade
