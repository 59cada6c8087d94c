#pragma once
#include "kernels/ops/delta_rule/delta_rule.h"
#include "models/layers/short_conv.h"
#include "models/layers/stateful_mixer.h"

namespace saccade {

/// What DeltaNet and Gated DeltaNet share: q, k, v = silu(conv(W x)), q and k made unit vectors head by head, β = σ(W_β x), or
/// 2 σ(W_β x), and the state of decoding. A token multiplies the state by I − β k kᵀ, whose eigenvalue along k is 1 − β.
class DeltaHeads {
 public:
  struct Sizes {
    int64_t width, heads, keys, values, filter;  ///< keys, values: of one head; filter 0: no convolution
    bool negative_eigenvalues;                   ///< β in (0, 2), so that eigenvalues are in (−1, 1) (arXiv:2411.12537, section 4.1)
  };
  struct State : LayerState {
    Tensor query, key, value;  ///< last inputs of the convolutions
    Tensor s;                  ///< [B, H, K, V]

    void each(const std::function<void(Tensor&, Kept)>& f) override {
      for (Tensor* x : {&query, &key, &value, &s}) f(*x, Kept::sum);
    }
    std::unique_ptr<LayerState> sequences(int64_t first, int64_t count) const override { return part_of(*this, first, count); }
  };

  /// Parameters layerN.query, .key [H K, D], .value [H V, D], .beta [H, D] and .conv_query, .conv_key, .conv_value [·, W].
  DeltaHeads(const Sizes& sizes, ParameterMaker& make, int64_t layer);

  /// The rule's arguments without decay. `more`: further projections of x, run together with these. Takes the pass's counterfactual.
  DeltaRule operator()(Tape& tape, const Tensor& x, const Pass& pass, State* state, std::vector<Tensor>& more) const;

  std::unique_ptr<State> begin(Arena& arena, DType dtype, int64_t batch) const;
  /// Numbers kept of a sequence.
  double kept() const;
  void report(Tape& tape, const DeltaRule& rule, Probe& probe) const;

 private:
  Tensor unit_heads(Tape& tape, const Tensor& x) const;

  Sizes sizes_;
  int64_t layer_;
  Tensor query_, key_, value_, beta_;
  ShortConv conv_query_, conv_key_, conv_value_;
};

/// A mixer with such heads.
class DeltaMixer : public StatefulMixer<DeltaHeads::State> {
 public:
  std::unique_ptr<LayerState> begin(Arena& arena, DType dtype, int64_t batch, int64_t) const final {
    return heads_.begin(arena, dtype, batch);
  }
  double state_values_per_token() const final { return heads_.kept() / static_cast<double>(length_); }

 protected:
  DeltaMixer(int64_t sequence_length, DeltaHeads heads) : heads_(std::move(heads)), length_(sequence_length) {}

  DeltaHeads heads_;

 private:
  int64_t length_;
};

}  // namespace saccade
