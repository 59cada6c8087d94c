#pragma once
#include "models/mixer.h"

namespace saccade {

/// The feed-forward half of an RWKV block (arXiv:2404.05892, section 3; arXiv:2503.14456, section 3), on the token-shifted input:
///   5, 6:  out = σ(W_r x_r) ∘ W_v relu(W_k x_k)²      7:  out = W_v relu(W_k x_k)²
/// In form 5 the blends hold the weight of the current token, in 6 and 7 that of the previous one.
class ChannelMix {
 public:
  enum class Form { rwkv5, rwkv6, rwkv7 };
  static Form parse(const std::string& number);
  /// 32 ⌊3.5 C / 32⌋ for forms 5 and 6 (at least 32), 4 C for form 7.
  static int64_t usual_width(Form form, int64_t width);

  /// Parameters layerN.channel_mix_key [C], .channel_key [F, C], .channel_value [C, F] and, in forms 5 and 6,
  /// .channel_mix_receptance [C], .channel_receptance [C, C].
  ChannelMix(const ModelShape& shape, Form form, int64_t inner, ParameterMaker& make, int64_t layer);

  /// x [B, T, C]; before [B, C]: the token in front of the first, empty at the start of a sequence.
  Tensor operator()(Tape& tape, const Tensor& x, const Tensor& before = {}) const;

 private:
  Form form_;
  Tensor mix_key_, mix_receptance_, key_, receptance_, value_;
};

}  // namespace saccade
