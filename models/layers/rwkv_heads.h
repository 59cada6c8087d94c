#pragma once
#include "models/layers/head_probe.h"
#include "models/layers/rwkv_depth.h"
#include "models/layers/stateful_mixer.h"

namespace saccade {

/// What RWKV keeps of a sequence in a time mix: the last input and the state.
struct RwkvState : LayerState {
  Tensor before;  ///< [B, C]
  Tensor state;   ///< [B, H, N, N]

  void each(const std::function<void(Tensor&, Kept)>& f) override { f(before, Kept::sum), f(state, Kept::sum); }
  std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
};

/// What the time mixes of RWKV-5, 6 and 7 share: heads, the group norm behind the recurrence, the output matrix.
class RwkvHeads {
 public:
  /// Parameters layerN.group_gain, .group_bias [C], .output [C, C].
  RwkvHeads(const ModelShape& shape, ParameterMaker& make, int64_t layer);

  const RwkvDepth& depth() const { return depth_; }
  int64_t width() const { return depth_.width; }
  Shape by_head() const { return {heads_, width() / heads_}; }  ///< [H, N] of a vector of channels
  Tensor split(const Tensor& x) const;                          ///< [B, T, C] → [B, T, H, N]
  Tensor norm(Tape& tape, const Tensor& y) const;               ///< [B, T, H, N] → [B, T, C]
  Tensor output(Tape& tape, const Tensor& y) const;             ///< W_o y
  Tensor formula(ParameterMaker& make, const std::string& name, const Shape& shape, const std::function<double(uint64_t)>& value) const;
  Tensor matrix(ParameterMaker& make, const std::string& name, double gain) const;  ///< [C, C], orthogonal
  std::string name(const std::string& part) const;                                  ///< "layer3.key"

  /// What is kept behind x [B, T, C]: its last token and the state after it.
  static void keep(Tape& tape, const RwkvState& state, const Tensor& x, const Tensor& end);
  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch) const;
  /// Numbers kept of a sequence, per token of one of `length` tokens.
  double state_values_per_token(int64_t length) const;

  /// Reports where y [B, T, H, N] reads from.
  void report(Tape& tape, Probe& probe, const Tensor& y, const HeadProbe::Weights& weights) const;

 private:
  RwkvDepth depth_;
  int64_t heads_;
  Tensor group_weight_, group_bias_, output_;
};

/// A time mix.
class RwkvMixer : public StatefulMixer<RwkvState> {
 public:
  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const final {
    return heads_.begin(arena, dtype, batch);
  }
  double state_values_per_token() const final { return heads_.state_values_per_token(length_); }

 protected:
  RwkvMixer(const ModelShape& shape, ParameterMaker& make, int64_t layer) : heads_(shape, make, layer), length_(shape.sequence_length) {}

  RwkvHeads heads_;

 private:
  int64_t length_;
};

}  // namespace saccade
